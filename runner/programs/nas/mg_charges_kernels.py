"""The search for the charges of MG (see :mod:`runner.runtimes.core.kernels`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

KERNELS = {"find_extremes": ("uint64", "uint64", "uint64")}

ZERO = np.uint64(0)
ONE = np.uint64(1)
TEN = np.uint64(10)
MASK = np.uint64((1 << 46) - 1)


def find_extremes(values: Any, places: Any, state: Any) -> None:
    """Find the ten largest and the ten smallest random numbers of a block of points.

    ``values`` (as integers) are filled from the most extreme on, the largest first. They must
    initially be 0 ten times and 2^46 - 1 ten times. ``places`` = indices in the block, x fastest.
    ``state`` = seed before the first point, multiplier, that of a row and of a plane of the whole
    grid, points along x, y, z.
    """
    s = carray(state, (7,))
    a, next_row, next_plane = s[1], s[2], s[3]
    value, place = carray(values, (20,)), carray(places, (20,))
    at = ZERO
    plane_seed = s[0]
    for _k in range(ZERO, s[6]):
        row_seed = plane_seed
        for _j in range(ZERO, s[5]):
            x = row_seed
            for _i in range(ZERO, s[4]):
                x = (x * a) & MASK
                if x > value[TEN - ONE]:
                    n = TEN - ONE
                    while n > ZERO and value[n - ONE] < x:
                        value[n] = value[n - ONE]
                        place[n] = place[n - ONE]
                        n -= ONE
                    value[n] = x
                    place[n] = at
                if x < value[TEN + TEN - ONE]:
                    n = TEN + TEN - ONE
                    while n > TEN and value[n - ONE] > x:
                        value[n] = value[n - ONE]
                        place[n] = place[n - ONE]
                        n -= ONE
                    value[n] = x
                    place[n] = at
                at += ONE
            row_seed = (row_seed * next_row) & MASK
        plane_seed = (plane_seed * next_plane) & MASK
