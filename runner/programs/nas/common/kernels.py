"""Compiled parts that several kernels share (see :mod:`runner.runtimes.core.kernels`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

KERNELS = {"fill_uniform": ("float64", "uint64")}

ZERO = np.uint64(0)
ONE = np.uint64(1)
MASK = np.uint64((1 << 46) - 1)
SCALE = 0.5**46


def fill_uniform(target: Any, state: Any) -> None:
    """Fill the target; ``state`` = seed (on return the last one), multiplier, target's length."""
    s = carray(state, (3,))
    x, a, count = s[0], s[1], s[2]
    values = carray(target, count)
    for i in range(ZERO, count):
        x = (x * a) & MASK
        # Signed: its conversion to a double is one instruction.
        values[i] = np.int64(x) * SCALE
    s[0] = x
