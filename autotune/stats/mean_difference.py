"""Means: the total time of a setting against that of the default.

A setting may be faster in most launches and cost more in the mean, if some of its launches take
much longer. The median does not show it, but the bill for compute hours does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from autotune.stats.exact import Values

LEAST = 6
"""Smallest number of pairs from which means are compared."""
ERROR = 0.05
"""One-sided error probability of "slower in the mean"."""


@dataclass(frozen=True)
class MeanDifference:
    """``ratio`` is the mean time of the setting over that of the default, minus 1.

    ``at_least`` is its one-sided lower bound, with 95 %; ``pairs`` is the number of pairs.
    """

    ratio: float
    at_least: float
    pairs: int

    @property
    def slower(self) -> bool:
        """True if the setting provably takes longer in the mean."""
        return self.at_least > 0


def mean_difference(default: Values, candidate: Values) -> MeanDifference | None:
    """Compare the means of paired times in seconds; None for fewer than :data:`LEAST` pairs.

    Student's t of the differences. A long tail of slow launches makes it cautious: it widens the
    bound more than it moves the mean.
    """
    from scipy import special

    reference = np.asarray(default, dtype=np.float64)
    differences = np.asarray(candidate, dtype=np.float64) - reference
    n = differences.size
    if n < LEAST:
        return None
    mean, usual = float(differences.mean()), float(reference.mean())
    error = float(differences.std(ddof=1)) / math.sqrt(n)
    least = mean - float(special.stdtrit(n - 1, 1 - ERROR)) * error
    return MeanDifference(mean / usual, least / usual, n)
