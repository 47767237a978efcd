"""The setting that a contestant names, from what is known so far."""

from __future__ import annotations

from autotune.space import DEFAULT, Setting
from autotune.strategies import Strategy
from autotune.study.race import RaceEvidence, with_favourite
from benchmarks.search.peers import Peer


def named_setting(
    strategy: Strategy, known: RaceEvidence, favourite: Setting | None, min_gain: float
) -> Setting:
    """A matched peer's own recommendation; of any other what a study would take into its proof.

    ``favourite`` is that of the strategy, in the form that is launched.
    """
    if isinstance(strategy, Peer) and strategy.trials is not None:
        return strategy.recommendation() or DEFAULT
    hopeful = with_favourite(known.finalists(1, min_gain), favourite)
    return hopeful[0] if hopeful else DEFAULT
