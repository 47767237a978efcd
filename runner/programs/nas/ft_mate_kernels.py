"""The checksums of FT, which the flat form takes from numpy and MPI."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

KERNELS = {
    "sum_samples": ("float64", "uint64", "float64", "float64", "uint64"),
    "keep_sum": ("float64", "float64", "uint64"),
}

ZERO = np.uint64(0)
ONE = np.uint64(1)
TWO = np.uint64(2)


def sum_samples(field: Any, places: Any, result: Any, factor: Any, state: Any) -> None:
    """The sum of the points at ``places``, times a factor; ``state`` = how many, field's points."""
    s = carray(state, (2,))
    u, place = carray(field, TWO * s[1]), carray(places, s[0])
    re = im = 0.0
    for n in range(ZERO, s[0]):
        re += u[TWO * place[n]]
        im += u[TWO * place[n] + ONE]
    scale = carray(factor, (1,))[0]
    carray(result, (2,))[0] = re * scale
    carray(result, (2,))[1] = im * scale


def keep_sum(part: Any, sums: Any, counter: Any) -> None:
    """Store a sum as the next of ``sums``; ``counter`` = how many there are."""
    number = carray(counter, (1,))[0]
    kept = carray(sums, TWO * (number + ONE))
    kept[TWO * number] = carray(part, (2,))[0]
    kept[TWO * number + ONE] = carray(part, (2,))[1]
    carray(counter, (1,))[0] = number + ONE
