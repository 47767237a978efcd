"""A search by ask and tell alone: no study, no race, no runs of the default."""

from __future__ import annotations

import math

import numpy as np

from autotune.space import DEFAULT, Setting
from autotune.strategies import Observation, Strategy
from benchmarks.search.landscapes import Land


def named_settings(
    land: Land, strategy: Strategy, seed: int, marks: tuple[int, ...]
) -> list[Setting]:
    """The setting that is named after each number of runs in ``marks`` (increasing).

    A run is a proposal; the default is known to have the ratio 1 and costs none. A strategy that
    has estimates of its own names its favourite. For any other the setting with the best run is
    named. If that is no better than the default, the default is named. A strategy that ends by
    itself keeps what it named last.
    """
    rng = np.random.default_rng([33, seed])
    own = strategy.estimates
    best, looks_best = 1.0, DEFAULT
    found: list[Setting] = []
    for number in range(marks[-1]):
        proposal = strategy.ask()
        if proposal is None:
            break
        ratio, state = land.draw(proposal.setting, rng)
        estimate = ratio if math.isfinite(ratio) else None
        strategy.tell(Observation(number, proposal.setting, estimate, state, proposal.attrs))
        if ratio < best:
            best, looks_best = ratio, proposal.setting
        if number + 1 in marks:
            found.append((strategy.favourite() or DEFAULT) if own else looks_best)
    last = (strategy.favourite() or DEFAULT) if own else looks_best
    return found + [last] * (len(marks) - len(found))
