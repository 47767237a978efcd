"""The kernels: a diagonal block, and copies between blocks and panels.

A panel has only the nonzero rows (L) or columns (U). Tables have their places: addresses of
doubles, and distances in bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from runner.runtimes.core.atomic import load_real, store_real

KERNELS = {
    "factor": ("float64", "float64", "float64", "uint64"),
    "gather": ("float64", "int64"),
    "scatter": ("float64", "int64"),
    "subtract": ("float64", "int64"),
}
ZERO = np.uint64(0)
ONE = np.uint64(1)


def gather(panel: Any, table: Any) -> None:
    """Fill a panel, line by line, from the lines' first entries.

    ``table``: lines, entries of a line, and for both the distance of neighbours in the panel in
    doubles, then for each line the address of its first entry and the distance to the next one.
    """
    head = carray(table, (4,))
    lines, length, down, along = head[0], head[1], head[2], head[3]
    t = carray(table, (4 + 2 * lines,))
    p = carray(panel, (lines * length,))
    for line in range(lines):
        address, step = t[4 + 2 * line], t[5 + 2 * line]
        for n in range(length):
            p[line * down + n * along] = load_real(address + n * step)


def scatter(panel: Any, table: Any) -> None:
    """The inverse of :func:`gather`."""
    head = carray(table, (4,))
    lines, length, down, along = head[0], head[1], head[2], head[3]
    t = carray(table, (4 + 2 * lines,))
    p = carray(panel, (lines * length,))
    for line in range(lines):
        address, step = t[4 + 2 * line], t[5 + 2 * line]
        for n in range(length):
            store_real(address + n * step, p[line * down + n * along])


def subtract(product: Any, table: Any) -> None:
    """Subtract a product from the blocks.

    ``table``: its rows and columns, the number of blocks down and across; for each block down the
    end of its rows in the product, for each block across the end of its columns and the bytes of
    one of its rows; for each row its number in its block, for each column the bytes before it in a
    row; then the addresses of the blocks, row by row.
    """
    head = carray(table, (4,))
    rows, columns, down, across = head[0], head[1], head[2], head[3]
    t = carray(table, (4 + down + 2 * across + rows + columns + down * across,))
    ends, widths = 4, 4 + down
    row_of = widths + 2 * across
    column_of = row_of + rows
    blocks = column_of + columns
    p = carray(product, (rows * columns,))
    row = 0
    for i in range(down):
        while row < t[ends + i]:
            column = 0
            for j in range(across):
                begin = t[blocks + i * across + j] + t[row_of + row] * t[widths + 2 * j + 1]
                while column < t[widths + 2 * j]:
                    place = begin + t[column_of + column]
                    store_real(place, load_real(place) - p[row * columns + column])
                    column += 1
            row += 1


def factor(block: Any, lower: Any, upper: Any, shape: Any) -> None:
    """Factor a square block in place; ``lower`` and ``upper`` become the inverses of its factors.

    ``shape``: its number of rows.
    """
    n = carray(shape, (1,))[ZERO]
    a = carray(block, (n, n))
    left, right = carray(lower, (n, n)), carray(upper, (n, n))
    k = ZERO
    while k < n:
        pivot = np.reciprocal(a[k, k])
        i = k + ONE
        while i < n:
            factor_ = a[i, k] * pivot
            a[i, k] = factor_
            j = k + ONE
            while j < n:
                a[i, j] -= factor_ * a[k, j]
                j += ONE
            i += ONE
        k += ONE
    i = ZERO
    while i < n:
        j = ZERO
        while j < n:
            left[i, j] = 1.0 if i == j else 0.0
            right[i, j] = 1.0 if i == j else 0.0
            j += ONE
        i += ONE
    # L X = 1, row by row from the top; U Y = 1, row by row from the bottom.
    i = ZERO
    while i < n:
        k = ZERO
        while k < i:
            value = a[i, k]
            j = ZERO
            while j <= k:
                left[i, j] -= value * left[k, j]
                j += ONE
            k += ONE
        i += ONE
    row = n
    while row > ZERO:
        row -= ONE
        k = row + ONE
        while k < n:
            value = a[row, k]
            j = k
            while j < n:
                right[row, j] -= value * right[k, j]
                j += ONE
            k += ONE
        pivot = np.reciprocal(a[row, row])
        j = row
        while j < n:
            right[row, j] *= pivot
            j += ONE
