"""The two forms of runs compared: what the trials of a study show of its cheap and full runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from autotune.stats.cheap_runs import clear_step, rank_correlation
from autotune.strategies import SCATTER
from autotune.study.trial_store import CHEAP, Trial


def cheap_ratio(trial: Trial) -> float:
    """T / T_default of a trial in the cheap form; infinite if its cheap runs failed."""
    seen = trial.attrs.get(CHEAP)
    ratio = seen.get("ratio") if isinstance(seen, dict) else None
    return float(ratio) if isinstance(ratio, int | float) else math.inf


def shows_none(trial: Trial) -> bool:
    """Whether the cheap runs of a trial showed no gain."""
    seen = trial.attrs.get(CHEAP)
    return isinstance(seen, dict) and bool(seen.get("no_gain"))


def both_forms(trials: Sequence[Trial]) -> list[tuple[float, float]]:
    """Cheap and full ratio of each setting that was run in both forms; infinite if it failed."""
    return [
        (cheap_ratio(t), math.inf if t.estimate is None else t.estimate)
        for t in trials
        if CHEAP in t.attrs and t.measured and not t.reused
    ]


def agreement(pairs: Sequence[tuple[float, float]]) -> float | None:
    """The rank correlation of cheap and full ratios; None for less than two settings."""
    if len(pairs) < 2:
        return None
    return rank_correlation([cheap for cheap, _ in pairs], [full for _, full in pairs])


def missed_gain(trials: Sequence[Trial], min_gain: float) -> float | None:
    """The largest clear gain in full runs of a setting that shows none in cheap runs.

    A gain is clear if it is above ``min_gain`` by more than the scatter of the default explains
    (Student's t, one in a thousand). None if there is none, or if the scatter is not known yet.
    """
    scatter = scatter_of(trials)
    if scatter is None:
        return None
    bar = -math.log1p(min_gain) - clear_step(*scatter)
    ratios = [
        t.estimate
        for t in trials
        if t.state == "ok" and not t.reused and t.estimate is not None and shows_none(t)
    ]
    best = min(ratios, default=1.0)
    return 1 / best - 1 if math.log(best) < bar else None


def scatter_of(trials: Sequence[Trial]) -> tuple[float, int] | None:
    """Variance of one log time of the default in full runs, and its degrees of freedom."""
    known = [s for t in trials if isinstance(s := t.attrs.get(SCATTER), list | tuple)]
    if not known or len(known[-1]) != 2:
        return None
    variance, freedom = known[-1]
    return (float(variance), int(freedom)) if freedom >= 1 else None
