"""The arithmetic of FT (see :mod:`runner.runtimes.core.kernels`).

Grids of complex numbers are arrays of doubles, real and imaginary parts in turn; the first axis
varies fastest. Lines are transformed ``LANES`` at a time, after they were copied to a block
``[element][real, imaginary][line]``. Every step of the transform then works on short rows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import carray

from runner.programs.nas.common.jit import inline

KERNELS = {
    "transform_rows": ("float64", "float64", "float64", "float64", "uint64", "uint64"),
    "transform_columns": ("float64", "float64", "float64", "float64", "uint64", "uint64"),
    "decay": ("float64", "float64", "uint64"),
    "evolve": ("float64", "float64", "float64", "uint64"),
    "transpose": ("float64", "float64", "uint64"),
}

ZERO = np.uint64(0)
ONE = np.uint64(1)
TWO = np.uint64(2)
THREE = np.uint64(3)
FOUR = np.uint64(4)
LANES = np.uint64(16)
CELL = np.uint64(32)
"""Doubles of one element of all lines: real parts, then imaginary parts."""
TILE = np.uint64(16)


def transform_rows(
    source: Any, target: Any, roots: Any, scratch: Any, order: Any, state: Any
) -> None:
    """Transform along the first axis; ``source`` and ``target`` may be the same.

    ``roots`` = exp(+-2 pi i t / n) of all t < n. ``scratch`` holds n cells. ``order`` gives the
    frequency that each place holds after the transform in place. ``state`` = n, number of rows.
    """
    s = carray(state, (2,))
    n, rows = s[0], s[1]
    x, out = carray(source, TWO * n * rows), carray(target, TWO * n * rows)
    w, y, frequency = carray(roots, TWO * n), carray(scratch, CELL * n), carray(order, n)
    for first in range(ZERO, rows, LANES):
        last = min(first + LANES, rows) - ONE
        for lane in range(ZERO, LANES):
            # If lines are missing, the last one is computed again.
            base = TWO * n * min(first + lane, last)
            for e in range(ZERO, n):
                y[CELL * e + lane] = x[base + TWO * e]
                y[CELL * e + LANES + lane] = x[base + TWO * e + ONE]
        _in_place(y, w, n)
        for lane in range(ZERO, last - first + ONE):
            base = TWO * n * (first + lane)
            for e in range(ZERO, n):
                at = base + TWO * frequency[e]
                out[at] = y[CELL * e + lane]
                out[at + ONE] = y[CELL * e + LANES + lane]


def transform_columns(
    source: Any, target: Any, roots: Any, scratch: Any, order: Any, state: Any
) -> None:
    """Transform along the second or third axis; the other arrays as in :func:`transform_rows`.

    ``state`` = n, points of the first axis (divisible by ``LANES``), distance of the elements of a
    line, points of the remaining axis, their distance (distances in points).
    """
    s = carray(state, (5,))
    n, row, step, others, other_step = s[0], s[1], s[2], s[3], s[4]
    length = TWO * n * row * others
    x, out = carray(source, length), carray(target, length)
    w, y, frequency = carray(roots, TWO * n), carray(scratch, CELL * n), carray(order, n)
    for other in range(ZERO, others):
        for first in range(ZERO, row, LANES):
            base = TWO * (other * other_step + first)
            for e in range(ZERO, n):
                at = base + TWO * e * step
                for lane in range(ZERO, LANES):
                    y[CELL * e + lane] = x[at + TWO * lane]
                    y[CELL * e + LANES + lane] = x[at + TWO * lane + ONE]
            _in_place(y, w, n)
            for e in range(ZERO, n):
                at = base + TWO * frequency[e] * step
                for lane in range(ZERO, LANES):
                    out[at + TWO * lane] = y[CELL * e + lane]
                    out[at + TWO * lane + ONE] = y[CELL * e + LANES + lane]


@inline
def _in_place(y: Any, w: Any, n: Any) -> None:
    """Steps of radix 4, decimation in frequency; at the end one of radix 2 if n is no 4^k.

    In place: the compiler then has to distinguish four addresses, not eight, before it vectorises.
    """
    sign = w[n // TWO + ONE]
    length = n
    stride = ONE
    while length >= FOUR:
        quarter = length // FOUR
        for start in range(ZERO, n, length):
            for p in range(ZERO, quarter):
                t = TWO * p * stride
                _butterfly(
                    y, CELL * (start + p), CELL * quarter, sign,
                    w[t], w[t + ONE], w[t + t], w[t + t + ONE], w[t + t + t], w[t + t + t + ONE],
                )  # fmt: skip
        length = quarter
        stride = stride * FOUR
    if length == TWO:
        for start in range(ZERO, CELL * n, CELL + CELL):
            for k in range(start, start + CELL):
                a, b = y[k], y[k + CELL]
                y[k] = a + b
                y[k + CELL] = a - b


@inline
def _butterfly(
    y: Any, at: Any, step: Any, sign: Any, r1: Any, i1: Any, r2: Any, i2: Any, r3: Any, i3: Any
) -> None:
    """Four elements of all lines, ``step`` apart, times the powers r1 + i i1, ... of a root."""
    for k in range(at, at + LANES):
        ar, ai = y[k], y[k + LANES]
        br, bi = y[k + step], y[k + step + LANES]
        cr, ci = y[k + step + step], y[k + step + step + LANES]
        dr, di = y[k + step + step + step], y[k + step + step + step + LANES]
        sum_r, sum_i, difference_r, difference_i = ar + cr, ai + ci, ar - cr, ai - ci
        other_r, other_i = br + dr, bi + di
        turned_r, turned_i = sign * (di - bi), sign * (br - dr)
        y[k], y[k + LANES] = sum_r + other_r, sum_i + other_i
        ur, ui = difference_r + turned_r, difference_i + turned_i
        y[k + step], y[k + step + LANES] = ur * r1 - ui * i1, ur * i1 + ui * r1
        vr, vi = sum_r - other_r, sum_i - other_i
        y[k + step + step] = vr * r2 - vi * i2
        y[k + step + step + LANES] = vr * i2 + vi * r2
        zr, zi = difference_r - turned_r, difference_i - turned_i
        y[k + step + step + step] = zr * r3 - zi * i3
        y[k + step + step + step + LANES] = zr * i3 + zi * r3


def decay(factors: Any, squares: Any, state: Any) -> None:
    """exp(-4 pi^2 alpha |k|^2) for every point.

    ``squares`` = exponents of the first axis, then of the second, then of the third; ``state`` =
    points of the three axes.
    """
    s = carray(state, (3,))
    n1, n2, n3 = s[0], s[1], s[2]
    f, q = carray(factors, n1 * n2 * n3), carray(squares, n1 + n2 + n3)
    for k in range(ZERO, n3):
        for j in range(ZERO, n2):
            far = q[n1 + j] + q[n1 + n2 + k]
            base = (k * n2 + j) * n1
            for i in range(ZERO, n1):
                f[base + i] = math.exp(q[i] + far)


def evolve(field: Any, copy: Any, factors: Any, state: Any) -> None:
    """One time step in Fourier space, and a copy of the result; ``state`` = points."""
    points = carray(state, (1,))[0]
    u, v = carray(field, TWO * points), carray(copy, TWO * points)
    f = carray(factors, points)
    for n in range(ZERO, points):
        at = TWO * n
        re, im = u[at] * f[n], u[at + ONE] * f[n]
        u[at] = re
        u[at + ONE] = im
        v[at] = re
        v[at + ONE] = im


def transpose(source: Any, target: Any, state: Any) -> None:
    """Swap the first and third axis, by tiles; ``state`` = points of the source's axes."""
    s = carray(state, (3,))
    n1, n2, n3 = s[0], s[1], s[2]
    x, out = carray(source, TWO * n1 * n2 * n3), carray(target, TWO * n1 * n2 * n3)
    for j in range(ZERO, n2):
        for k0 in range(ZERO, n3, TILE):
            for i0 in range(ZERO, n1, TILE):
                for i in range(i0, min(i0 + TILE, n1)):
                    for k in range(k0, min(k0 + TILE, n3)):
                        to = TWO * (k + n3 * (j + n2 * i))
                        at = TWO * (i + n1 * (j + n2 * k))
                        out[to] = x[at]
                        out[to + ONE] = x[at + ONE]
