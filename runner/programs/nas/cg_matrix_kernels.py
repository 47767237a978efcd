"""The random sparse matrix of CG (see :mod:`runner.runtimes.core.kernels`).

The matrix is the sum of outer products of one sparse random vector per row. Each product is scaled
a little less than the one before. Every rank draws all vectors and keeps the elements of its block.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

KERNELS = {
    "draw_vectors": ("uint32", "float64", "uint32", "uint64"),
    "count_elements": ("uint32", "uint32", "uint32", "uint64"),
    "place_elements": (
        "uint32", "float64", "uint32", "uint32", "uint32", "float64", "float64", "uint64",
    ),
    "merge_rows": ("uint32", "uint32", "float64", "float64", "uint32", "uint64"),
}  # fmt: skip

ZERO = np.uint64(0)
ONE = np.uint64(1)
BITS = np.uint64(46)
MASK = np.uint64((1 << 46) - 1)
SCALE = 0.5**46
DIAGONAL = 0.5
ZERO32 = np.uint32(0)
ONE32 = np.uint32(1)


def draw_vectors(places: Any, values: Any, lengths: Any, state: Any) -> None:
    """For each i a vector with ``nonzeros`` random entries, then entry i set to 1/2.

    ``places`` and ``values`` have ``nonzeros`` + 1 columns.  ``state`` = seed, multiplier, order of
    the matrix, nonzeros, log2 of the smallest power of two not below the order.
    """
    s = carray(state, (5,))
    seed, a, n, nonzeros, log2 = s[0], s[1], s[2], s[3], s[4]
    width = nonzeros + ONE
    place = carray(places, n * width)
    value = carray(values, n * width)
    length = carray(lengths, n)
    for i in range(ZERO, n):
        row = i * width
        entries = ZERO
        while entries < nonzeros:
            seed = (seed * a) & MASK
            deviate = np.int64(seed) * SCALE
            seed = (seed * a) & MASK
            at = seed >> (BITS - log2)
            new = at < n
            for k in range(row, row + entries):
                if np.uint64(place[k]) == at:
                    new = False
            if new:
                place[row + entries] = np.uint32(at)
                value[row + entries] = deviate
                entries += ONE
        own = row + entries
        for k in range(row, row + entries):
            if np.uint64(place[k]) == i:
                own = k
        place[own] = np.uint32(i)
        value[own] = DIAGONAL
        length[i] = np.uint32(max(entries, own - row + ONE))


def count_elements(places: Any, lengths: Any, starts: Any, state: Any) -> None:
    """Count the elements: ``starts[j + 1]`` = those that place_elements puts in rows up to j.

    Duplicates are included. ``state`` = order of the matrix, columns of ``places``, first and end
    row, first and end column of the block.
    """
    s = carray(state, (6,))
    n, width, row0, row1, column0, column1 = s[0], s[1], s[2], s[3], s[4], s[5]
    place = carray(places, n * width)
    length = carray(lengths, n)
    rows = row1 - row0
    start = carray(starts, rows + ONE)
    for j in range(ZERO, rows + ONE):
        start[j] = ZERO32
    for i in range(ZERO, n):
        first = i * width
        end = first + np.uint64(length[i])
        inside = ZERO32
        for k in range(first, end):
            at = np.uint64(place[k])
            if column0 <= at < column1:
                inside += ONE32
        if inside > ZERO32:
            for k in range(first, end):
                at = np.uint64(place[k])
                if row0 <= at < row1:
                    start[at - row0 + ONE] += inside
    for j in range(row0, row1):
        if column0 <= j < column1:
            start[j - row0 + ONE] += ONE32
    for j in range(ZERO, rows):
        start[j + ONE] += start[j]


def place_elements(
    places: Any,
    values: Any,
    lengths: Any,
    next_places: Any,
    columns: Any,
    elements: Any,
    scalars: Any,
    state: Any,
) -> None:
    """Put every element of the block into its row; columns count from the block's first.

    ``next_places`` = the starts of the rows, on return their ends. ``scalars`` = factor from one
    outer product to the next, addend of the diagonal. ``state`` as in count_elements, then the
    number of elements.
    """
    s = carray(state, (7,))
    n, width, row0, row1, column0, column1 = s[0], s[1], s[2], s[3], s[4], s[5]
    place, value = carray(places, n * width), carray(values, n * width)
    length = carray(lengths, n)
    to = carray(next_places, row1 - row0)
    column, element = carray(columns, s[6]), carray(elements, s[6])
    ratio, diagonal = carray(scalars, (2,))[0], carray(scalars, (2,))[1]
    size = 1.0
    for i in range(ZERO, n):
        first = i * width
        end = first + np.uint64(length[i])
        for k in range(first, end):
            c = np.uint64(place[k])
            if column0 <= c < column1:
                factor = size * value[k]
                for m in range(first, end):
                    r = np.uint64(place[m])
                    if row0 <= r < row1:
                        slot = np.uint64(to[r - row0])
                        column[slot] = np.uint32(c - column0)
                        element[slot] = value[m] * factor
                        to[r - row0] += ONE32
        size *= ratio
    for j in range(row0, row1):
        if column0 <= j < column1:
            slot = np.uint64(to[j - row0])
            column[slot] = np.uint32(j - column0)
            element[slot] = diagonal
            to[j - row0] += ONE32


def merge_rows(starts: Any, columns: Any, elements: Any, sums: Any, order: Any, state: Any) -> None:
    """Add up elements of the same place and close the gaps, in place.

    ``sums`` (zero on entry and on return) and ``order`` have one entry per column. ``state`` =
    rows, columns, elements; on return the third is the number of elements left.
    """
    s = carray(state, (3,))
    rows, width = s[0], s[1]
    start = carray(starts, rows + ONE)
    column, element = carray(columns, s[2]), carray(elements, s[2])
    total = carray(sums, width)
    column_order = carray(order, width)
    out = begin = ZERO
    for j in range(ZERO, rows):
        end = np.uint64(start[j + ONE])
        distinct = ZERO
        for k in range(begin, end):
            c = np.uint64(column[k])
            # Elements are products of positive numbers, except one on the diagonal that no sum of
            # the others cancels. So a zero sum means that the column was not seen.
            if total[c] == 0.0:
                column_order[distinct] = column[k]
                distinct += ONE
            total[c] += element[k]
        for k in range(ZERO, distinct):
            c = np.uint64(column_order[k])
            column[out] = column_order[k]
            element[out] = total[c]
            total[c] = 0.0
            out += ONE
        begin = end
        start[j + ONE] = np.uint32(out)
    s[2] = out
