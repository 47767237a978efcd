"""The mean gain over several programs, with an interval."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from autotune.anova.result import ProgramEvidence


@dataclass(frozen=True)
class MeanGain:
    """Mean of T_default / T - 1 over programs and the ends of its 95 % interval.

    ``hi`` is infinite where the interval of a program is open above.
    """

    gain: float
    lo: float
    hi: float


def mean_gain(rows: Sequence[ProgramEvidence]) -> MeanGain | None:
    """The mean of the rows' gains; None without rows, or where one of them has no interval.

    The interval is made of the rows' own ones (MOVER; Zou and Donner, Statistics in Medicine 27,
    2008): programs are independent, so the mean of k gains lies below its estimate by no more than
    the root of the sum of squares of (gain - lo), divided by k.  The rows' intervals hold at all
    looks together, so this one does whenever the programs stopped; for one program it is the
    program's own.
    """
    gains, lower, upper = [], [], []
    for row in rows:
        if row.gain is None or row.lo is None:
            return None
        gains.append(row.gain)
        lower.append(row.gain - row.lo)
        upper.append(math.inf if row.hi is None else row.hi - row.gain)
    if not gains:
        return None
    middle = statistics.fmean(gains)
    below, above = (math.hypot(*arms) / len(gains) for arms in (lower, upper))
    return MeanGain(middle, middle - below, middle + above)
