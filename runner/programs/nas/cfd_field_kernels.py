"""Simple arithmetic on the fields of LU, SP and BT (see :mod:`runner.runtimes.core.kernels`).

A field is an array [z][y][x][5].
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

KERNELS = {
    "scale": ("float64", "float64", "uint64"),
    "update": ("float64", "float64", "float64", "uint64"),
    "squares": ("float64", "float64", "uint64"),
}

ONE = np.uint64(1)
TWO = np.uint64(2)
THREE = np.uint64(3)
FOUR = np.uint64(4)
FIVE = np.uint64(5)


def scale(rest: Any, factor: Any, state: Any) -> None:
    """v = factor v at inner points; ``state`` = first and end of z, y, x, extents x, y, z."""
    s = carray(state, (9,))
    v = carray(rest, FIVE * s[6] * s[7] * s[8])
    f = carray(factor, (1,))[0]
    for k in range(s[0], s[1]):
        for j in range(s[2], s[3]):
            base = FIVE * s[6] * (j + k * s[7])
            for n in range(base + FIVE * s[4], base + FIVE * s[5]):
                v[n] = f * v[n]


def update(field: Any, rest: Any, factor: Any, state: Any) -> None:
    """u = u + factor v at inner points; ``state`` as in :func:`scale`."""
    s = carray(state, (9,))
    u = carray(field, FIVE * s[6] * s[7] * s[8])
    v = carray(rest, FIVE * s[6] * s[7] * s[8])
    f = carray(factor, (1,))[0]
    for k in range(s[0], s[1]):
        for j in range(s[2], s[3]):
            base = FIVE * s[6] * (j + k * s[7])
            for n in range(base + FIVE * s[4], base + FIVE * s[5]):
                u[n] = u[n] + f * v[n]


def squares(rest: Any, sums: Any, state: Any) -> None:
    """The five sums of v^2 over inner points; ``state`` as in :func:`scale`."""
    s = carray(state, (9,))
    v = carray(rest, FIVE * s[6] * s[7] * s[8])
    result = carray(sums, (5,))
    s1, s2, s3, s4, s5 = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(s[0], s[1]):
        for j in range(s[2], s[3]):
            base = FIVE * s[6] * (j + k * s[7])
            for i in range(s[4], s[5]):
                at = base + FIVE * i
                s1 += v[at] * v[at]
                s2 += v[at + ONE] * v[at + ONE]
                s3 += v[at + TWO] * v[at + TWO]
                s4 += v[at + THREE] * v[at + THREE]
                s5 += v[at + FOUR] * v[at + FOUR]
    result[0], result[1], result[2], result[3], result[4] = s1, s2, s3, s4, s5
