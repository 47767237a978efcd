"""The memory bandwidth and arithmetic speed of one core of this machine, measured with numba.

Both are what a simple loop reaches, compiled as the kernels are (no fused or reordered arithmetic).
They are a reference for the kernels, not the processor's nominal figures.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

DOUBLES = 12_000_000
"""Doubles per array (96 MB): three arrays are far larger than the caches."""
INNER = 512
"""Doubles that the arithmetic loop works on; they stay in the first-level cache."""
STEPS = 16
ROUNDS = 4000
REPEATS = 7


@njit(nogil=True)  # type: ignore[untyped-decorator]
def _triad(a: Any, b: Any, c: Any, factor: float) -> None:
    for i in range(a.size):
        a[i] = b[i] + factor * c[i]


@njit(nogil=True)  # type: ignore[untyped-decorator]
def _polynomials(x: Any, y: Any, factor: float, rounds: int) -> None:
    # One polynomial per element: independent, so that the compiler makes vectors of them, and
    # enough of them to hide the latency of a multiplication and an addition.
    for _ in range(rounds):
        for i in range(x.size):
            v = x[i]
            v = v * factor + 0.1
            v = v * factor + 0.2
            v = v * factor + 0.3
            v = v * factor + 0.4
            v = v * factor + 0.5
            v = v * factor + 0.6
            v = v * factor + 0.7
            v = v * factor + 0.8
            v = v * factor + 0.9
            v = v * factor + 1.0
            v = v * factor + 1.1
            v = v * factor + 1.2
            v = v * factor + 1.3
            v = v * factor + 1.4
            v = v * factor + 1.5
            v = v * factor + 1.6
            y[i] = v


def best_seconds(work: Callable[[], None]) -> float:
    """Shortest of some repetitions; the first one compiles and is left out."""
    work()
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def bandwidth_gb_s() -> float:
    """GB/s of a triad a = b + s c, as STREAM counts (three arrays of doubles, once each)."""
    a, b, c = (np.full(DOUBLES, value) for value in (0.0, 1.0, 2.0))
    return 3 * 8 * DOUBLES / best_seconds(lambda: _triad(a, b, c, 3.0)) / 1e9


def peak_gflops() -> float:
    """10^9 multiplications and additions per second of doubles that stay in the cache."""
    x, y = np.full(INNER, 0.5), np.zeros(INNER)
    operations = 2 * STEPS * INNER * ROUNDS
    return operations / best_seconds(lambda: _polynomials(x, y, 0.25, ROUNDS)) / 1e9
