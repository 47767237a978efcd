"""The arithmetic on numbers that the flat form of CG does in Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import carray

KERNELS = {
    "begin": ("float64", "float64", "float64", "float64", "uint64"),
    "first_length": ("float64", "float64"),
    "step_length": ("float64", "float64"),
    "new_direction": ("float64", "float64", "float64"),
    "normalise": ("float64", "float64", "float64", "float64", "uint64"),
}

ZERO = np.uint64(0)


def begin(x: Any, z: Any, r: Any, p: Any, state: Any) -> None:
    """z = 0, r = p = x; ``state`` = length."""
    count = carray(state, (1,))[0]
    xx, zz = carray(x, count), carray(z, count)
    rr, pp = carray(r, count), carray(p, count)
    for j in range(ZERO, count):
        zz[j] = 0.0
        rr[j] = xx[j]
        pp[j] = xx[j]


def first_length(sums: Any, numbers: Any) -> None:
    """Keep r . r, the first of ``sums``, as the first of ``numbers``."""
    carray(numbers, (1,))[0] = carray(sums, (1,))[0]


def step_length(sums: Any, numbers: Any) -> None:
    """alpha = r . r / p . q, in place of p . q."""
    carray(sums, (1,))[0] = np.divide(carray(numbers, (1,))[0], carray(sums, (1,))[0])


def new_direction(sums: Any, numbers: Any, factor: Any) -> None:
    """beta = the new r . r over the old one, which it replaces."""
    new = carray(sums, (1,))[0]
    carray(factor, (1,))[0] = np.divide(new, carray(numbers, (1,))[0])
    carray(numbers, (1,))[0] = new


def normalise(x: Any, z: Any, sums: Any, numbers: Any, state: Any) -> None:
    """x = z / |z|; ``sums`` = x . z and z . z, the first of which becomes the second number."""
    count = carray(state, (1,))[0]
    xx, zz = carray(x, count), carray(z, count)
    total = carray(sums, (2,))
    carray(numbers, (2,))[1] = total[0]
    factor = np.reciprocal(math.sqrt(total[1]))
    for j in range(ZERO, count):
        xx[j] = zz[j] * factor
