"""The chain, one task and the whole stencil as compiled code (see
:mod:`runner.runtimes.core.kernels`).
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import carray

from benchmarks.metg.chain import chain, combined

FUNCTIONS = {"chain": "float64(float64, int64)"}
KERNELS = {
    "task": ("float64", "float64", "float64", "float64", "int64"),
    "serial": ("float64", "float64", "int64"),
}

_chain = numba.njit(chain)
_combined = numba.njit(combined)


def task(left: Any, own: Any, right: Any, result: Any, steps: Any) -> None:
    """One task; each argument is an array of one element."""
    x = _combined(carray(left, (1,))[0], carray(own, (1,))[0], carray(right, (1,))[0])
    carray(result, (1,))[0] = _chain(x, carray(steps, (1,))[0])


def serial(values: Any, other: Any, sizes: Any) -> None:
    """All tasks in order: ``sizes`` = points, steps, iterations; ``values`` holds the result.

    ``other`` is a second array of the same length.
    """
    given = carray(sizes, (3,))
    width, steps, iterations = np.uint64(given[0]), given[1], given[2]
    old, new = carray(values, (width,)), carray(other, (width,))
    one = np.uint64(1)
    for _ in range(iterations):
        for n in range(np.uint64(0), width):
            left = old[n - one] if n > 0 else old[n]
            right = old[n + one] if n + one < width else old[n]
            new[n] = _chain(_combined(left, old[n], right), steps)
        for n in range(np.uint64(0), width):
            old[n] = new[n]
