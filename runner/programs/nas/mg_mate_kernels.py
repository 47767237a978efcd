"""The sum over ranks of MG's norms, which the flat form leaves to MPI."""

from __future__ import annotations

from typing import Any

from numba import carray

KERNELS = {"merge_norms": ("float64", "float64")}


def merge_norms(norms: Any, others: Any) -> None:
    """``norms`` = the larger of the largest values, and the sum of the sums of squares."""
    own, other = carray(norms, (2,)), carray(others, (2,))
    own[0] = max(own[0], other[0])
    own[1] += other[1]
