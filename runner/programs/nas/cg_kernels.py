"""The arithmetic of CG (see :mod:`runner.runtimes.core.kernels`).

A matrix is in compressed rows: columns and values of row j are at ``starts[j]`` to
``starts[j + 1]``.  Columns, rows and starts are 32 bits wide.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

KERNELS = {
    "multiply": ("uint32", "uint32", "float64", "float64", "float64", "uint64"),
    "dot": ("float64", "float64", "float64", "uint64"),
    "advance": ("float64", "float64", "float64", "float64", "float64", "uint64"),
    "direct": ("float64", "float64", "float64", "uint64"),
    "distance": ("float64", "float64", "float64", "uint64"),
    "two_dots": ("float64", "float64", "float64", "uint64"),
}

ZERO = np.uint64(0)
ONE = np.uint64(1)


def multiply(starts: Any, columns: Any, values: Any, vector: Any, product: Any, state: Any) -> None:
    """product = matrix times vector.  ``state`` = rows, columns."""
    s = carray(state, (2,))
    rows, width = s[0], s[1]
    start = carray(starts, rows + ONE)
    x = carray(vector, width)
    y = carray(product, rows)
    elements = np.uint64(start[rows])
    column = carray(columns, elements)
    value = carray(values, elements)
    k = np.uint64(start[ZERO])
    for j in range(ZERO, rows):
        end = np.uint64(start[j + ONE])
        total = 0.0
        while k < end:
            total += value[k] * x[np.uint64(column[k])]
            k += ONE
        y[j] = total


def dot(left: Any, right: Any, result: Any, state: Any) -> None:
    """result[0] = left . right.  ``state`` = length."""
    count = carray(state, (1,))[0]
    a, b = carray(left, count), carray(right, count)
    total = 0.0
    for j in range(ZERO, count):
        total += a[j] * b[j]
    carray(result, (1,))[0] = total


def advance(z: Any, r: Any, p: Any, q: Any, scalars: Any, state: Any) -> None:
    """z += alpha p, r -= alpha q.  ``scalars`` = alpha; on return r . r.  ``state`` = length."""
    count = carray(state, (1,))[0]
    alpha = carray(scalars, (1,))[0]
    zz, rr = carray(z, count), carray(r, count)
    pp, qq = carray(p, count), carray(q, count)
    for j in range(ZERO, count):
        zz[j] += alpha * pp[j]
        rr[j] -= alpha * qq[j]
    total = 0.0
    for j in range(ZERO, count):
        total += rr[j] * rr[j]
    carray(scalars, (1,))[0] = total


def direct(p: Any, r: Any, scalars: Any, state: Any) -> None:
    """p = r + beta p.  ``scalars`` = beta.  ``state`` = length."""
    count = carray(state, (1,))[0]
    beta = carray(scalars, (1,))[0]
    pp, rr = carray(p, count), carray(r, count)
    for j in range(ZERO, count):
        pp[j] = rr[j] + beta * pp[j]


def distance(left: Any, right: Any, result: Any, state: Any) -> None:
    """result[0] = square of the length of left - right.  ``state`` = length."""
    count = carray(state, (1,))[0]
    a, b = carray(left, count), carray(right, count)
    total = 0.0
    for j in range(ZERO, count):
        d = a[j] - b[j]
        total += d * d
    carray(result, (1,))[0] = total


def two_dots(x: Any, z: Any, result: Any, state: Any) -> None:
    """result = x . z, z . z.  ``state`` = length."""
    count = carray(state, (1,))[0]
    a, b = carray(x, count), carray(z, count)
    first = second = 0.0
    for j in range(ZERO, count):
        first += a[j] * b[j]
        second += b[j] * b[j]
    total = carray(result, (2,))
    total[0] = first
    total[1] = second
