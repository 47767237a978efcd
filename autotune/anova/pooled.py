"""The mean gain over several programs, with an interval."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import numpy as np

RESAMPLES = 4000


def mean_gain(logs: Sequence[Sequence[float]], seed: int = 0) -> tuple[float, float, float]:
    """Mean over programs of the gain (median over pairs), with its 95 % interval.

    The interval is a bootstrap over the pairs of each program.  Raises ValueError for none.
    """
    if not logs or any(len(pairs) == 0 for pairs in logs):
        raise ValueError("every program needs pairs")
    rng = np.random.default_rng(seed)
    drawn = np.zeros(RESAMPLES)
    for pairs in logs:
        array = np.asarray(pairs, dtype=np.float64)
        picked = rng.integers(array.size, size=(RESAMPLES, array.size))
        drawn += np.expm1(np.median(array[picked], axis=1))
    drawn /= len(logs)
    middle = statistics.fmean(math.expm1(statistics.median(pairs)) for pairs in logs)
    lo, hi = np.quantile(drawn, [0.025, 0.975])
    return middle, float(lo), float(hi)
