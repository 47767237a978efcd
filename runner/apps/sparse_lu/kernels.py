"""The kernel of a diagonal block: L U without pivoting, and the inverses of both factors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

KERNELS = {"factor": ("float64", "float64", "float64", "uint64")}
ZERO = np.uint64(0)
ONE = np.uint64(1)


def factor(block: Any, lower: Any, upper: Any, shape: Any) -> None:
    """Factor a square block in place; ``lower`` and ``upper`` become the inverses of its factors.

    ``shape``: its number of rows.
    """
    n = carray(shape, (1,))[ZERO]
    a = carray(block, (n, n))
    left, right = carray(lower, (n, n)), carray(upper, (n, n))
    k = ZERO
    while k < n:
        pivot = np.reciprocal(a[k, k])
        i = k + ONE
        while i < n:
            factor_ = a[i, k] * pivot
            a[i, k] = factor_
            j = k + ONE
            while j < n:
                a[i, j] -= factor_ * a[k, j]
                j += ONE
            i += ONE
        k += ONE
    i = ZERO
    while i < n:
        j = ZERO
        while j < n:
            left[i, j] = 1.0 if i == j else 0.0
            right[i, j] = 1.0 if i == j else 0.0
            j += ONE
        i += ONE
    # L X = 1, row by row from the top; U Y = 1, row by row from the bottom.
    i = ZERO
    while i < n:
        k = ZERO
        while k < i:
            value = a[i, k]
            j = ZERO
            while j <= k:
                left[i, j] -= value * left[k, j]
                j += ONE
            k += ONE
        i += ONE
    row = n
    while row > ZERO:
        row -= ONE
        k = row + ONE
        while k < n:
            value = a[row, k]
            j = k
            while j < n:
                right[row, j] -= value * right[k, j]
                j += ONE
            k += ONE
        pivot = np.reciprocal(a[row, row])
        j = row
        while j < n:
            right[row, j] *= pivot
            j += ONE
