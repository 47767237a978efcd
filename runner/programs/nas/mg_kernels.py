"""The arithmetic of MG (see :mod:`runner.runtimes.core.kernels`).

A grid is an array [z][y][x] with one ghost point on every side. Rows of sums that several points
share are kept in ``rows``, as in the original: a point costs 4 multiplications, not 27.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from runner.programs.nas.common.jit import inline

KERNELS = {
    "smooth": ("float64", "float64", "float64", "float64", "uint64"),
    "residual": ("float64", "float64", "float64", "float64", "float64", "uint64"),
    "residual_in_place": ("float64", "float64", "float64", "float64", "uint64"),
    "restrict": ("float64", "float64", "float64", "uint64"),
    "interpolate": ("float64", "float64", "float64", "uint64"),
    "norms": ("float64", "float64", "uint64"),
}

ZERO = np.uint64(0)
ONE = np.uint64(1)
TWO = np.uint64(2)


def smooth(residual: Any, solution: Any, weights: Any, rows: Any, state: Any) -> None:
    """u += C r inside; ``weights`` of the point, faces, edges; ``state`` = points x, y, z."""
    s = carray(state, (3,))
    row, plane, length = s[0], s[0] * s[1], s[0] * s[1] * s[2]
    c = carray(weights, (3,))
    c0, c1, c2 = c[0], c[1], c[2]
    r, u = carray(residual, length), carray(solution, length)
    near, far = carray(rows, row + row)[:row], carray(rows, row + row)[row:]
    for k in range(ONE, s[2] - ONE):
        for j in range(ONE, s[1] - ONE):
            at = k * plane + j * row
            _cross_sums(r, near, far, at, row, plane)
            for i in range(ONE, row - ONE):
                n = at + i
                u[n] = (
                    u[n]
                    + c0 * r[n]
                    + c1 * (r[n - ONE] + r[n + ONE] + near[i])
                    + c2 * (far[i] + near[i - ONE] + near[i + ONE])
                )


@inline
def _cross_sums(grid: Any, near: Any, far: Any, at: Any, row: Any, plane: Any) -> None:
    """For each point of the row: the sums of its 4 neighbours in y and z, and of the 4 diagonal."""
    for i in range(ZERO, row):
        n = at + i
        near[i] = (grid[n - row] + grid[n + row]) + (grid[n - plane] + grid[n + plane])
        far[i] = (grid[n - plane - row] + grid[n - plane + row]) + (
            grid[n + plane - row] + grid[n + plane + row]
        )


def residual(solution: Any, right: Any, result: Any, weights: Any, rows: Any, state: Any) -> None:
    """r = v - A u at inner points.

    ``weights`` of the point, edges, corners (that of faces is 0); ``state`` = points x, y, z.
    """
    s = carray(state, (3,))
    length = s[0] * s[1] * s[2]
    u, v, r = carray(solution, length), carray(right, length), carray(result, length)
    _residual(u, v, r, carray(weights, (3,)), carray(rows, s[0] + s[0]), s)


def residual_in_place(solution: Any, result: Any, weights: Any, rows: Any, state: Any) -> None:
    """r = r - A u; a separate kernel, so that the compiler knows that both r are the same."""
    s = carray(state, (3,))
    length = s[0] * s[1] * s[2]
    u, r = carray(solution, length), carray(result, length)
    _residual(u, r, r, carray(weights, (3,)), carray(rows, s[0] + s[0]), s)


@inline
def _residual(u: Any, v: Any, r: Any, a: Any, rows: Any, s: Any) -> None:
    row, plane = s[0], s[0] * s[1]
    a0, a2, a3 = a[0], a[1], a[2]
    near, far = rows[:row], rows[row:]
    for k in range(ONE, s[2] - ONE):
        for j in range(ONE, s[1] - ONE):
            at = k * plane + j * row
            _cross_sums(u, near, far, at, row, plane)
            for i in range(ONE, row - ONE):
                n = at + i
                r[n] = (
                    v[n]
                    - a0 * u[n]
                    - a2 * (far[i] + near[i - ONE] + near[i + ONE])
                    - a3 * (far[i - ONE] + far[i + ONE])
                )


def restrict(fine: Any, coarse: Any, rows: Any, state: Any) -> None:
    """Full weighting of a residual to the next coarser level.

    ``state`` = points of the fine grid x, y, z, of the coarse one, then per axis the distance of
    the fine point behind twice the coarse index: 0, or 1 if the fine grid has one own point.
    """
    s = carray(state, (9,))
    row, plane, length = s[0], s[0] * s[1], s[0] * s[1] * s[2]
    r, t = carray(fine, length), carray(coarse, s[3] * s[4] * s[5])
    near, far = carray(rows, row + row)[:row], carray(rows, row + row)[row:]
    for k in range(ONE, s[5] - ONE):
        for j in range(ONE, s[4] - ONE):
            at = (TWO * k - s[8]) * plane + (TWO * j - s[7]) * row
            _cross_sums(r, near, far, at, row, plane)
            to = (k * s[4] + j) * s[3]
            for i in range(ONE, s[3] - ONE):
                f = TWO * i - s[6]
                n = at + f
                t[to + i] = (
                    0.5 * r[n]
                    + 0.25 * (r[n - ONE] + r[n + ONE] + near[f])
                    + 0.125 * (near[f - ONE] + near[f + ONE] + far[f])
                    + 0.0625 * (far[f - ONE] + far[f + ONE])
                )


def interpolate(coarse: Any, fine: Any, rows: Any, state: Any) -> None:
    """Add the trilinear interpolation of a coarse grid to the fine one, ghosts included.

    ``state`` = points of the coarse grid x, y, z, of the fine one, then per axis 0, or 1 if the
    fine grid has one own point: the fine point 2 i - that number is on coarse point i.
    """
    s = carray(state, (9,))
    row, plane = s[0], s[0] * s[1]
    z, u = carray(coarse, plane * s[2]), carray(fine, s[3] * s[4] * s[5])
    sums = carray(rows, row)
    for k in range(ZERO, s[2] - ONE):
        for side_k in range(ZERO, TWO):
            # side 0: on the coarse plane; side 1: half-way to the next one.
            if side_k == ONE or k >= s[8]:
                to_k = (TWO * k + side_k - s[8]) * s[3] * s[4]
                step_k = plane * side_k
                for j in range(ZERO, s[1] - ONE):
                    at = k * plane + j * row
                    for side_j in range(ZERO, TWO):
                        if side_j == ONE or j >= s[7]:
                            to = to_k + (TWO * j + side_j - s[7]) * s[3]
                            _sum_rows(z, sums, at, row, row * side_j, step_k)
                            weight = 1.0
                            if side_k == ONE:
                                weight *= 0.5
                            if side_j == ONE:
                                weight *= 0.5
                            _add_row(u, sums, to, row, s[6], weight)


@inline
def _sum_rows(z: Any, sums: Any, at: Any, row: Any, step_j: Any, step_k: Any) -> None:
    """The sum of the one, two or four coarse rows around a fine row."""
    if step_j == ZERO and step_k == ZERO:
        for i in range(ZERO, row):
            sums[i] = z[at + i]
    elif step_j == ZERO or step_k == ZERO:
        step = step_j + step_k
        for i in range(ZERO, row):
            sums[i] = z[at + step + i] + z[at + i]
    else:
        for i in range(ZERO, row):
            n = at + i
            sums[i] = (z[n + step_j + step_k] + z[n + step_k]) + (z[n + step_j] + z[n])


@inline
def _add_row(u: Any, sums: Any, to: Any, row: Any, single: Any, weight: Any) -> None:
    half = 0.5 * weight
    if single == ZERO:
        for i in range(ZERO, row - ONE):
            u[to + TWO * i] += weight * sums[i]
            u[to + TWO * i + ONE] += half * (sums[i + ONE] + sums[i])
    else:
        for i in range(ONE, row - ONE):
            u[to + TWO * i - ONE] += weight * sums[i]
        for i in range(ZERO, row - ONE):
            u[to + TWO * i] += half * (sums[i + ONE] + sums[i])


def norms(grid: Any, result: Any, state: Any) -> None:
    """``result`` = largest absolute value and sum of squares of the own points."""
    s = carray(state, (3,))
    row, plane = s[0], s[0] * s[1]
    r = carray(grid, plane * s[2])
    total = largest = 0.0
    for k in range(ONE, s[2] - ONE):
        for j in range(ONE, s[1] - ONE):
            at = k * plane + j * row
            for n in range(at + ONE, at + row - ONE):
                total += r[n] * r[n]
                largest = max(largest, abs(r[n]))
    values = carray(result, (2,))
    values[0] = largest
    values[1] = total
