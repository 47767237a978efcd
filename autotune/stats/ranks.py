"""Rank tests in their normal approximation: signs that need no distribution of the run times.

Formulas: Hollander and Wolfe, *Nonparametric Statistical Methods*, 4.1 (rank sum) and 8.5
(Spearman); Bartels, "The Rank Version of von Neumann's Ratio Test for Randomness", 1982.  Ties get
their mean rank.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def ranks(values: Sequence[float]) -> NDArray[np.float64]:
    """The rank of each value, from 1; equal values share their mean rank."""
    _, place, size = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    last = np.cumsum(size)
    return (last - (size - 1) / 2.0)[place]


def spearman_z(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's rank correlation of pairs over its standard deviation; 0 if it is not defined."""
    a, b = ranks(first), ranks(second)
    if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1]) * math.sqrt(len(a) - 1)


def rank_sum_z(first: Sequence[float], second: Sequence[float]) -> float:
    """How far the values of ``second`` lie above those of ``first``, over the standard deviation; 0
    if one of them is empty."""
    m, n = len(first), len(second)
    if not m or not n:
        return 0.0
    excess = float(ranks([*first, *second])[m:].sum()) - n * (m + n + 1) / 2
    return excess / math.sqrt(m * n * (m + n + 1) / 12)


def neighbours_z(values: Sequence[float]) -> float:
    """How much closer neighbours lie than values at random, over the standard deviation.

    Large for values in spells or with drift; 0 for fewer than four, or if all are equal.
    """
    n = len(values)
    place = ranks(values) if n else np.zeros(0)
    if n < 4 or np.ptp(place) == 0:
        return 0.0
    ratio = float(np.sum(np.diff(place) ** 2) / np.sum((place - place.mean()) ** 2))
    variance = 4 * (n - 2) * (5 * n * n - 2 * n - 9) / (5 * n * (n + 1) * (n - 1) ** 2)
    return (2 - ratio) / math.sqrt(variance)
