"""The arithmetic of EP (see :mod:`runner.runtimes.core.kernels`)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import carray

KERNELS = {"tally_batch": ("float64", "uint64")}

ZERO = np.uint64(0)
MASK = np.uint64((1 << 46) - 1)
DOUBLE_SCALE = 0.5**45


def tally_batch(sums: Any, state: Any) -> None:
    """Draw a batch of pairs and add the accepted ones to ``sums``.

    ``sums`` = sum of |X|, sum of |Y|, ten counts by max(|X|, |Y|).  ``state`` = seed (on return
    the last one), multiplier, pairs.
    """
    s = carray(state, (3,))
    x, a, pairs = s[0], s[1], s[2]
    total = carray(sums, (12,))
    counts = carray(sums, (12,))[2:]
    sum_x, sum_y = total[0], total[1]
    for _ in range(ZERO, pairs):
        x = (x * a) & MASK
        x1 = np.int64(x) * DOUBLE_SCALE - 1.0
        x = (x * a) & MASK
        x2 = np.int64(x) * DOUBLE_SCALE - 1.0
        t = x1 * x1 + x2 * x2
        if 0.0 < t <= 1.0:
            factor = math.sqrt(-2.0 * math.log(t) / t)
            gx = abs(x1 * factor)
            gy = abs(x2 * factor)
            counts[np.uint64(np.int64(max(gx, gy)))] += 1.0
            sum_x += gx
            sum_y += gy
    total[0] = sum_x
    total[1] = sum_y
    s[0] = x
