"""Estimate of one setting's run time: median, distribution-free interval, warnings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from autotune.notes import Note
from autotune.stats.exact import Flags, Values, sign_rank, sign_tail
from autotune.stats.log_ratios import detect_resolution, flags, validate_times
from autotune.stats.uncertainty import mad_spread, run_warnings

MIN_RUNS = 6
"""Smallest number of runs with a 95 % order-statistic interval: 1 - 2 * 2^-6 = 96.9 %."""


@dataclass(frozen=True)
class Estimate:
    """A run time in seconds; ``interval`` False: too few runs, [lo, hi] is the observed range."""

    median: float
    lo: float
    hi: float
    """Ends of the interval; ``hi`` is ``inf`` if time limits leave it open."""
    level: float
    """Exact coverage of [lo, hi] by order statistics, also of the range."""
    n: int
    interval: bool
    spread: float
    """1.4826 * median absolute deviation / median, of the complete runs."""
    bound: Literal["exact", "at least"]
    """"at least" if half of the runs or more are censored."""
    censored_runs: int
    warnings: tuple[Note, ...]


def estimate(
    values: Values,
    *,
    walls: Values | None = None,
    censored_runs: Flags | None = None,
    resolution: float | None = None,
    min_time: float = 0.1,
    level: float = 0.95,
) -> Estimate:
    """Median and its exact order-statistic interval of run times in seconds.

    ``walls``: the wall times of the same runs; None if the values are wall times. A censored value
    is the time limit that ended the run: the true time is longer. ``resolution``: step of the
    metric, 0 for a clock, None to detect it. ``min_time``: a warning is given for runs whose wall
    time is shorter than this. Raises ``WorkError`` for invalid times, ``ValueError`` without values
    or for another number of wall times.
    """
    low = validate_times(values, "run time")
    if low.size == 0:
        raise ValueError("an estimate needs at least one run")
    wall_times = low if walls is None else validate_times(walls, "wall time")
    if wall_times.size != low.size:
        raise ValueError(f"{low.size} runs and {wall_times.size} wall times")
    cut = flags(censored_runs, low.size)
    whole, wall_times = low[~cut], wall_times[~cut]
    high = np.sort(np.where(cut, np.inf, low))
    low = np.sort(low)
    n = int(low.size)
    rank = sign_rank(n, (1 - level) / 2)
    end = max(rank, 1)
    median, upper = float(np.median(low)), float(np.median(high))
    if resolution is None:
        resolution = detect_resolution(whole) or 0.0
    return Estimate(
        median=median,
        lo=float(low[end - 1]),
        hi=float(high[-end]),
        level=1 - 2 * sign_tail(n, end),
        n=n,
        interval=rank > 0,
        spread=mad_spread(whole) / float(np.median(whole)) if whole.any() else 0.0,
        bound="exact" if math.isclose(median, upper) else "at least",
        censored_runs=int(cut.sum()),
        warnings=_warnings(low.size, rank, int(cut.sum()))
        + tuple(
            run_warnings(whole, wall_times, resolution=resolution, min_time=min_time)
            if whole.size
            else []
        ),
    )


def _warnings(n: int, rank: int, cut: int) -> tuple[Note, ...]:
    notes = []
    if rank == 0:
        runs = "1 run" if n == 1 else f"{n} runs"
        words = f"only {runs}: too few for an interval at the promised confidence level"
        notes.append(Note("runs.few", words, {"runs": n}))
    if cut:
        notes.append(
            Note(
                "runs.cut",
                f"{cut} of {n} runs were ended by the time limit; their true times are longer "
                "than shown",
                {"cut": cut, "runs": n},
            )
        )
    return tuple(notes)
