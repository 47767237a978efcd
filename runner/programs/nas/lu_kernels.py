"""The arithmetic of LU's two sweeps (see :mod:`runner.runtimes.core.kernels`).

A field is an array [z][y][x][5] with two ghost layers on both sides of x and y. The original builds
5x5 blocks for a whole plane, then multiplies and solves. Here the same products are formed point by
point from the velocities. The blocks of neighbours are a flux Jacobian A, a viscous Jacobian N and
a multiple of the identity; the diagonal block is lower triangular.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from runner.programs.nas.common.jit import inline

KERNELS = {
    "lower_plane": ("float64", "float64", "float64", "uint64"),
    "upper_plane": ("float64", "float64", "float64", "uint64"),
}

ZERO = np.uint64(0)
ONE = np.uint64(1)
TWO = np.uint64(2)
THREE = np.uint64(3)
FOUR = np.uint64(4)
FIVE = np.uint64(5)

C1 = 1.4
C2 = 0.4
C34 = 0.1
R43 = 4.0 / 3.0
C1345 = 1.4 * 0.1 * 1.0 * 1.4


def lower_plane(field: Any, rest: Any, numbers: Any, state: Any) -> None:
    """(D + omega L) v = v in one plane z, from low x and y to high ones.

    ``field`` = u, ``rest`` = v.  ``numbers`` = dt, omega dt, then for x, y, z each: 1 / (2 h),
    1 / h^2, dissipation.  ``state`` = plane, first and end of y, first and end of x, extents of
    x, y and z with ghosts.
    """
    s = carray(state, (8,))
    c = carray(numbers, (11,))
    row = FIVE * s[5]
    plane = row * s[6]
    u, v = carray(field, plane * s[7]), carray(rest, plane * s[7])
    for j in range(s[1], s[2]):
        for i in range(s[3], s[4]):
            at = s[0] * plane + j * row + FIVE * i
            r1, r2, r3, r4, r5 = _three(u, v, at - FIVE, at - row, at - plane, 1.0, c)
            w = c[1]
            v[at], v[at + ONE], v[at + TWO], v[at + THREE], v[at + FOUR] = _solve(
                u, at, c,
                v[at] + w * r1, v[at + ONE] + w * r2, v[at + TWO] + w * r3,
                v[at + THREE] + w * r4, v[at + FOUR] + w * r5,
            )  # fmt: skip


def upper_plane(field: Any, rest: Any, numbers: Any, state: Any) -> None:
    """v = v - D^-1 omega U v in one plane, from high x and y to low ones.

    The arguments are those of :func:`lower_plane`.
    """
    s = carray(state, (8,))
    c = carray(numbers, (11,))
    row = FIVE * s[5]
    plane = row * s[6]
    u, v = carray(field, plane * s[7]), carray(rest, plane * s[7])
    for back_j in range(ZERO, s[2] - s[1]):
        j = s[2] - ONE - back_j
        for back_i in range(ZERO, s[4] - s[3]):
            at = s[0] * plane + j * row + FIVE * (s[4] - ONE - back_i)
            r1, r2, r3, r4, r5 = _three(u, v, at + FIVE, at + row, at + plane, -1.0, c)
            w = c[1]
            x1, x2, x3, x4, x5 = _solve(u, at, c, w * r1, w * r2, w * r3, w * r4, w * r5)
            v[at] += x1
            v[at + ONE] += x2
            v[at + TWO] += x3
            v[at + THREE] += x4
            v[at + FOUR] += x5


@inline
def _three(u: Any, v: Any, x: Any, y: Any, z: Any, sign: Any, c: Any) -> Any:
    """The sum over the neighbours at x, y and z of (sign t2 A + t1 (N + d)) v."""
    i1 = np.reciprocal(u[z])
    a1, a4, a2, a3, a5 = _flow(
        sign * c[8], c[9], c[10], i1, u[z + THREE] * i1, u[z + ONE] * i1, u[z + TWO] * i1,
        u[z + FOUR] * i1, v[z], v[z + THREE], v[z + ONE], v[z + TWO], v[z + FOUR],
    )  # fmt: skip
    i2 = np.reciprocal(u[y])
    b1, b3, b2, b4, b5 = _flow(
        sign * c[5], c[6], c[7], i2, u[y + TWO] * i2, u[y + ONE] * i2, u[y + THREE] * i2,
        u[y + FOUR] * i2, v[y], v[y + TWO], v[y + ONE], v[y + THREE], v[y + FOUR],
    )  # fmt: skip
    i3 = np.reciprocal(u[x])
    d1, d2, d3, d4, d5 = _flow(
        sign * c[2], c[3], c[4], i3, u[x + ONE] * i3, u[x + TWO] * i3, u[x + THREE] * i3,
        u[x + FOUR] * i3, v[x], v[x + ONE], v[x + TWO], v[x + THREE], v[x + FOUR],
    )  # fmt: skip
    # The neighbour in x was computed just before, so it comes last.
    return a1 + b1 + d1, a2 + b2 + d2, a3 + b3 + d3, a4 + b4 + d4, a5 + b5 + d5


@inline
def _flow(
    t2: Any, t1: Any, d: Any, inverse: Any, wn: Any, wa: Any, wb: Any, energy: Any,
    x1: Any, xn: Any, xa: Any, xb: Any, x5: Any,
) -> Any:  # fmt: skip
    """(t2 A + t1 (N + d)) x for a direction n; a and b are the other two.

    ``wn`` ... are velocities, ``energy`` is u5 / u1, ``inverse`` 1 / u1.
    """
    q = 0.5 * (wn * wn + wa * wa + wb * wb)
    dot = wn * xn + wa * xa + wb * xb
    pressure = C2 * (q * x1 - dot + x5)
    heat = C1 * energy - C2 * q
    en, ea, eb = xn - wn * x1, xa - wa * x1, xb - wb * x1
    k = t1 * inverse
    viscous = (R43 * C34 - C1345) * wn * en + (C34 - C1345) * (wa * ea + wb * eb)
    return (
        t2 * xn + t1 * d * x1,
        t2 * (wn * (xn + en) + pressure) + k * (R43 * C34) * en + t1 * d * xn,
        t2 * (wa * xn + wn * ea) + k * C34 * ea + t1 * d * xa,
        t2 * (wb * xn + wn * eb) + k * C34 * eb + t1 * d * xb,
        t2 * (heat * (xn - wn * x1) + wn * (pressure + x5))
        + k * (viscous + C1345 * (x5 - energy * x1))
        + t1 * d * x5,
    )


@inline
def _solve(u: Any, at: Any, c: Any, r1: Any, r2: Any, r3: Any, r4: Any, r5: Any) -> Any:
    """D^-1 r at a point."""
    double = c[0] + c[0]
    inverse = np.reciprocal(u[at])
    w2, w3, w4 = u[at + ONE] * inverse, u[at + TWO] * inverse, u[at + THREE] * inverse
    energy = u[at + FOUR] * inverse
    base = 1.0 + double * (c[3] * c[4] + c[6] * c[7] + c[9] * c[10])
    k = double * inverse
    all_ = c[3] + c[6] + c[9]
    k2 = k * C34 * (all_ + (R43 - 1.0) * c[3])
    k3 = k * C34 * (all_ + (R43 - 1.0) * c[6])
    k4 = k * C34 * (all_ + (R43 - 1.0) * c[9])
    k5 = k * C1345 * all_
    f1, f2, f3 = np.reciprocal(base), np.reciprocal(base + k2), np.reciprocal(base + k3)
    f4, f5 = np.reciprocal(base + k4), np.reciprocal(base + k5)
    x1 = r1 * f1
    x2 = (r2 + k2 * w2 * x1) * f2
    x3 = (r3 + k3 * w3 * x1) * f3
    x4 = (r4 + k4 * w4 * x1) * f4
    viscous = (
        (k2 - k5) * w2 * (x2 - w2 * x1)
        + (k3 - k5) * w3 * (x3 - w3 * x1)
        + (k4 - k5) * w4 * (x4 - w4 * x1)
    )
    return x1, x2, x3, x4, (r5 - viscous + k5 * energy * x1) * f5
