"""The steps of a rank on MATE: its calls of kernels one after the other, copies, sums."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from runner.runtimes.core.atomic import call_nothing_6, load

FUNCTIONS = {"perform": "void(int64, int64, int64)"}
KERNELS = {
    "copy": ("float64", "float64", "uint64"),
    "clear": ("float64", "uint64"),
    "add": ("float64", "float64", "uint64"),
}

WORDS = 7
"""Words of a call: the address of a kernel and up to six addresses of arrays."""
ZERO = np.uint64(0)
ONE = np.uint64(1)
FOUR = np.uint64(4)
EIGHT = np.uint64(8)


def perform(calls: int, first: int, end: int) -> None:
    """Make the calls ``first`` to ``end - 1`` of a table.

    A kernel ignores the registers of arguments that it does not have.
    """
    for n in range(first, end):
        call = calls + 8 * WORDS * n
        a, b, c = load(call + 8), load(call + 16), load(call + 24)
        d, e, f = load(call + 32), load(call + 40), load(call + 48)
        call_nothing_6(load(call), a, b, c, d, e, f)


def copy(source: Any, target: Any, state: Any) -> None:
    """Copy words of 8 bytes between arrays of four axes.

    ``state`` = points of the axes, the last one fastest; distances of the source's points along
    them; distances of the target's.
    """
    s = carray(state, (12,))
    n, x, y = s[:FOUR], s[FOUR:EIGHT], s[EIGHT:]
    # Only the elements that are copied are touched.
    one, other = carray(source, ONE << np.uint64(40)), carray(target, ONE << np.uint64(40))
    for i in range(ZERO, n[0]):
        for j in range(ZERO, n[1]):
            for k in range(ZERO, n[2]):
                at = i * x[0] + j * x[1] + k * x[2]
                to = i * y[0] + j * y[1] + k * y[2]
                if x[3] == ONE and y[3] == ONE:
                    for m in range(ZERO, n[3]):
                        other[to + m] = one[at + m]
                else:
                    for m in range(ZERO, n[3]):
                        other[to + m * y[3]] = one[at + m * x[3]]


def clear(field: Any, state: Any) -> None:
    """Set a field to zero; ``state`` = its length."""
    values = carray(field, carray(state, (1,))[0])
    for n in range(ZERO, carray(state, (1,))[0]):
        values[n] = 0.0


def add(total: Any, summand: Any, state: Any) -> None:
    """total += summand; ``state`` = length."""
    count = carray(state, (1,))[0]
    values, more = carray(total, count), carray(summand, count)
    for n in range(ZERO, count):
        values[n] += more[n]
