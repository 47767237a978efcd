"""Functions for compiled regions of any application: copies of boxes, faces, sums, products.

They are plain functions of the dialect (runner/runtimes/mate/README.md, "Compiled regions"), so
they run in Python, too, and accept arrays of any element type and strides. Those that call no other
function here may also be used in a kernel module, as ``inner(library.pack)``
(:mod:`runner.runtimes.core.atomic`).

A ``box`` is six whole numbers ``z0, z1, y0, y1, x0, x1``: indices of a 3-D array [z][y][x], upper
bounds excluded and not below the lower ones. It may be a tuple, an array or a list of the state. It
is not checked to lie in the array.

Indices are unsigned, because checks for negative values would prevent vectorisation. Sums consist
of eight partial sums by position, because a compiler may not reorder additions; the order is part
of the function, so equal input gives equal bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

ZERO, ONE, TWO, THREE = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
FOUR, FIVE, SIX, SEVEN = np.uint64(4), np.uint64(5), np.uint64(6), np.uint64(7)
EIGHT = np.uint64(8)
LEAST = -np.inf


def pack(field: Any, box: Any, buffer: Any) -> None:
    """Copy a box of a 3-D array to the beginning of a 1-D buffer, x fastest, then y, then z."""
    z0, z1, y0, y1 = np.uint64(box[0]), np.uint64(box[1]), np.uint64(box[2]), np.uint64(box[3])
    x0 = np.uint64(box[4])
    width = np.uint64(box[5]) - x0
    at = ZERO
    z = z0
    while z < z1:
        y = y0
        while y < y1:
            row = field[z, y]
            for x in range(width):
                buffer[at + x] = row[x0 + x]
            at += width
            y += ONE
        z += ONE


def unpack(field: Any, box: Any, buffer: Any) -> None:
    """The inverse of :func:`pack`: fill a box of a 3-D array from a 1-D buffer."""
    z0, z1, y0, y1 = np.uint64(box[0]), np.uint64(box[1]), np.uint64(box[2]), np.uint64(box[3])
    x0 = np.uint64(box[4])
    width = np.uint64(box[5]) - x0
    at = ZERO
    z = z0
    while z < z1:
        y = y0
        while y < y1:
            row = field[z, y]
            for x in range(width):
                row[x0 + x] = buffer[at + x]
            at += width
            y += ONE
        z += ONE


def face(
    field: Any, axis: int, side: int, depth: int, ghost: bool
) -> tuple[int, int, int, int, int, int]:
    """The box of a face of a 3-D array that has ``depth`` ghost layers on every side.

    ``axis`` counts the array's axes (0 is z), ``side`` is 0 for low, 1 for high. The box has
    ``depth`` layers: the ghosts behind the face (``ghost``), else the cells just inside. Along the
    other axes it has the cells without ghosts.
    """
    z0, z1 = depth, field.shape[0] - depth
    y0, y1 = depth, field.shape[1] - depth
    x0, x1 = depth, field.shape[2] - depth
    inside = 0 if ghost else depth
    first = inside if side == 0 else field.shape[axis] - inside - depth
    if axis == 0:
        z0, z1 = first, first + depth
    elif axis == 1:
        y0, y1 = first, first + depth
    else:
        x0, x1 = first, first + depth
    return z0, z1, y0, y1, x0, x1


def add_product(dgemm: Any, a: Any, b: Any, c: Any) -> None:
    """C += A B for matrices of doubles, by the BLAS library: ``dgemm`` is that of :mod:`.blas`.

    Rows of the matrices are contiguous; gaps between rows are allowed. ``dgemm`` comes from the
    state (``part.dgemm = blas.dgemm()``). The library decides the order of the additions.
    """
    rows, columns, depth = c.shape[0], c.shape[1], a.shape[1]
    pitch_a, pitch_b, pitch_c = a.strides[0] // 8, b.strides[0] // 8, c.strides[0] // 8
    order, plain = 101, 111  # of CBLAS: C's order of elements, not transposed
    dgemm(order, plain, plain, rows, columns, depth, 1.0, a, pitch_a, b, pitch_b, 1.0, c, pitch_c)


def vector_sum(a: Any, first: int, last: int) -> float:
    """Sum of ``a[first:last]`` of a 1-D array, as ``float64``; 0 if empty."""
    at, end = np.uint64(first), np.uint64(last)
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    while at + EIGHT <= end:
        s0 += a[at]
        s1 += a[at + ONE]
        s2 += a[at + TWO]
        s3 += a[at + THREE]
        s4 += a[at + FOUR]
        s5 += a[at + FIVE]
        s6 += a[at + SIX]
        s7 += a[at + SEVEN]
        at += EIGHT
    while at < end:
        s0 += a[at]
        at += ONE
    return ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))


def vector_dot(a: Any, b: Any, first: int, last: int) -> float:
    """Sum of ``a[k] * b[k]`` for ``first <= k < last``, as ``float64``; 0 if empty."""
    at, end = np.uint64(first), np.uint64(last)
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    while at + EIGHT <= end:
        s0 += a[at] * b[at]
        s1 += a[at + ONE] * b[at + ONE]
        s2 += a[at + TWO] * b[at + TWO]
        s3 += a[at + THREE] * b[at + THREE]
        s4 += a[at + FOUR] * b[at + FOUR]
        s5 += a[at + FIVE] * b[at + FIVE]
        s6 += a[at + SIX] * b[at + SIX]
        s7 += a[at + SEVEN] * b[at + SEVEN]
        at += EIGHT
    while at < end:
        s0 += a[at] * b[at]
        at += ONE
    return ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))


def vector_max(a: Any, first: int, last: int) -> float:
    """Largest of ``a[first:last]`` as ``float64``, without NaNs; -inf if empty."""
    at, end = np.uint64(first), np.uint64(last)
    m0 = m1 = m2 = m3 = LEAST
    while at + FOUR <= end:
        m0 = a[at] if a[at] > m0 else m0
        m1 = a[at + ONE] if a[at + ONE] > m1 else m1
        m2 = a[at + TWO] if a[at + TWO] > m2 else m2
        m3 = a[at + THREE] if a[at + THREE] > m3 else m3
        at += FOUR
    while at < end:
        m0 = a[at] if a[at] > m0 else m0
        at += ONE
    m0 = m1 if m1 > m0 else m0
    m2 = m3 if m3 > m2 else m2
    return m2 if m2 > m0 else m0


def box_sum(field: Any, box: Any) -> float:
    """Sum over a box of a 3-D array, as ``float64``: the sums of its rows one after the other."""
    total = 0.0
    for z in range(np.uint64(box[0]), np.uint64(box[1])):
        for y in range(np.uint64(box[2]), np.uint64(box[3])):
            total += vector_sum(field[z, y], box[4], box[5])
    return total


def box_dot(a: Any, b: Any, box: Any) -> float:
    """Sum of the products of two 3-D arrays over a box of both, as ``float64``, row by row."""
    total = 0.0
    for z in range(np.uint64(box[0]), np.uint64(box[1])):
        for y in range(np.uint64(box[2]), np.uint64(box[3])):
            total += vector_dot(a[z, y], b[z, y], box[4], box[5])
    return total


def box_max(field: Any, box: Any) -> float:
    """Largest value in a box of a 3-D array as ``float64``, without NaNs; -inf in an empty box."""
    largest = LEAST
    for z in range(np.uint64(box[0]), np.uint64(box[1])):
        for y in range(np.uint64(box[2]), np.uint64(box[3])):
            found = vector_max(field[z, y], box[4], box[5])
            largest = found if found > largest else largest
    return largest
