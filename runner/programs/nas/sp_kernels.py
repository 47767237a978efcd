"""The arithmetic of SP's sweeps (see :mod:`runner.runtimes.core.kernels`)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import carray

from runner.programs.nas.common.jit import inline

KERNELS = {
    "eliminate": ("float64", "float64", "float64", "float64", "uint64"),
    "substitute": ("float64", "float64", "uint64"),
    "to_x": ("float64", "float64", "uint64"),
    "x_to_y": ("float64", "float64", "uint64"),
    "y_to_z": ("float64", "float64", "uint64"),
    "from_z": ("float64", "float64", "uint64"),
}

ZERO = np.uint64(0)
ONE = np.uint64(1)
TWO = np.uint64(2)
THREE = np.uint64(3)
FOUR = np.uint64(4)
FIVE = np.uint64(5)
SIX = np.uint64(6)

C1C2 = 1.4 * 0.4
C2 = 0.4
C34 = 0.1
C15 = 1.4 * 1.4
ROOT_HALF = math.sqrt(0.5)


def eliminate(field: Any, rest: Any, upper: Any, numbers: Any, state: Any) -> None:
    """Make the pentadiagonal systems of all lines of a cell upper triangular.

    There are three: for the velocity w (three components), w + c and w - c. ``field`` = u, ``rest``
    = right-hand sides, ``upper`` = the two coefficients behind the diagonal of each system (6 per
    point). Those of the two points before the first one are read: they are 0 at a wall, and come
    from the previous cell elsewhere. So coefficients that would reach across a wall are multiplied
    by zeros, and only the diagonal depends on walls. ``numbers`` = dt / (2 h), dt / h^2, d, dt
    times dissipation. ``state`` = points of a field; of the two other axes first, end, stride; of
    this axis first and end of inner points, stride, component of momentum, whether there is a wall
    before, behind.
    """
    s = carray(state, (13,))
    c = carray(numbers, (4,))
    u, r, x = carray(field, FIVE * s[0]), carray(rest, FIVE * s[0]), carray(upper, SIX * s[0])
    stride, n = s[9], s[10]
    for b in range(s[4], s[5]):
        for a in range(s[1], s[2]):
            base = b * s[6] + a * s[3]
            at = FIVE * (base + s[7] * stride)
            w0, d0, c0 = _wave(u, at - FIVE * stride, n, c)
            w1, d1, c1 = _wave(u, at, n, c)
            for p in range(s[7], s[8]):
                w2, d2, c2 = _wave(u, FIVE * (base + (p + ONE) * stride), n, c)
                end = (s[11] == ONE and p == s[7]) or (s[12] == ONE and p + ONE == s[8])
                below = -w0 - d0 - 4.0 * c[3]
                diagonal = 1.0 + d1 + d1 + (5.0 if end else 6.0) * c[3]
                above = w2 - d2 - 4.0 * c[3]
                _row(r, x, base + p * stride, stride, c[3], below, diagonal, above, c0, c2)
                w0, d0, c0 = w1, d1, c1
                w1, d1, c1 = w2, d2, c2


@inline
def _wave(u: Any, at: Any, n: Any, c: Any) -> Any:
    """Velocity along the axis, diffusion and speed of sound, times the time step.

    The diffusion is the largest of the original's four candidates, because density is positive.
    """
    inverse = np.reciprocal(u[at])
    u1, u2, u3 = u[at + ONE], u[at + TWO], u[at + THREE]
    square = 0.5 * (u1 * u1 + u2 * u2 + u3 * u3) * inverse
    sound = math.sqrt(C1C2 * inverse * (u[at + FOUR] - square))
    return c[0] * u[at + n] * inverse, c[1] * (c[2] + C15 * C34 * inverse), c[0] * sound


@inline
def _row(
    r: Any, x: Any, point: Any, stride: Any, far: Any, below: Any, diagonal: Any, above: Any,
    sound_before: Any, sound_after: Any,
) -> None:  # fmt: skip
    r0, x0 = FIVE * point, SIX * point
    r1, x1 = r0 - FIVE * stride, x0 - SIX * stride
    r2, x2 = r1 - FIVE * stride, x1 - SIX * stride
    low, pivot = _pivot(x, x1, x2, far, below, diagonal)
    _store(x, x0, x1, far, low, pivot, above)
    for m in range(ZERO, THREE):
        r[r0 + m] = pivot * (r[r0 + m] - far * r[r2 + m] - low * r[r1 + m])
    low, pivot = _pivot(x, x1 + TWO, x2 + TWO, far, below - sound_before, diagonal)
    _store(x, x0 + TWO, x1 + TWO, far, low, pivot, above + sound_after)
    r[r0 + THREE] = pivot * (r[r0 + THREE] - far * r[r2 + THREE] - low * r[r1 + THREE])
    low, pivot = _pivot(x, x1 + FOUR, x2 + FOUR, far, below + sound_before, diagonal)
    _store(x, x0 + FOUR, x1 + FOUR, far, low, pivot, above - sound_after)
    r[r0 + FOUR] = pivot * (r[r0 + FOUR] - far * r[r2 + FOUR] - low * r[r1 + FOUR])


@inline
def _pivot(x: Any, x1: Any, x2: Any, far: Any, below: Any, diagonal: Any) -> Any:
    """The coefficient before the diagonal, and the reciprocal of the diagonal.

    The coefficient is taken after subtracting the row two points back, the diagonal after both
    rows.
    """
    low = below - far * x[x2]
    return low, np.reciprocal(diagonal - far * x[x2 + ONE] - low * x[x1])


@inline
def _store(x: Any, x0: Any, x1: Any, far: Any, low: Any, pivot: Any, above: Any) -> None:
    x[x0] = pivot * (above - low * x[x1 + ONE])
    x[x0 + ONE] = pivot * far


def substitute(rest: Any, upper: Any, state: Any) -> None:
    """Solve the upper triangular systems from the last point to the first.

    ``rest`` of the two points behind is the solution there (0 at a wall). The arguments are those
    of :func:`eliminate`.
    """
    s = carray(state, (13,))
    r, x = carray(rest, FIVE * s[0]), carray(upper, SIX * s[0])
    step = FIVE * s[9]
    for b in range(s[4], s[5]):
        for a in range(s[1], s[2]):
            base = b * s[6] + a * s[3]
            for back in range(ZERO, s[8] - s[7]):
                point = base + (s[8] - ONE - back) * s[9]
                at, c = FIVE * point, SIX * point
                for m in range(at, at + THREE):
                    r[m] -= x[c] * r[m + step] + x[c + ONE] * r[m + step + step]
                m = at + THREE
                r[m] -= x[c + TWO] * r[m + step] + x[c + THREE] * r[m + step + step]
                m = at + FOUR
                r[m] -= x[c + FOUR] * r[m + step] + x[c + FIVE] * r[m + step + step]


def to_x(field: Any, rest: Any, state: Any) -> None:
    """Multiply by the inverse eigenvectors along x.

    ``state`` = first and end of z, y, x, extents x, y, z; the same for all functions below.
    """
    s = carray(state, (9,))
    u = carray(field, FIVE * s[6] * s[7] * s[8])
    r = carray(rest, FIVE * s[6] * s[7] * s[8])
    for k in range(s[0], s[1]):
        for j in range(s[2], s[3]):
            for i in range(s[4], s[5]):
                at = FIVE * (i + s[6] * (j + k * s[7]))
                inverse, wx, wy, wz, q, sound = _state_of(u, at)
                r1, r2, r3, r4, r5 = r[at], r[at + ONE], r[at + TWO], r[at + THREE], r[at + FOUR]
                t1 = np.reciprocal(sound * sound) * C2 * (q * r1 - wx * r2 - wy * r3 - wz * r4 + r5)
                t2 = ROOT_HALF * inverse * (wx * r1 - r2)
                t3 = ROOT_HALF * inverse * sound * t1
                r[at] = r1 - t1
                r[at + ONE] = -inverse * (wz * r1 - r4)
                r[at + TWO] = inverse * (wy * r1 - r3)
                r[at + THREE] = -t2 + t3
                r[at + FOUR] = t2 + t3


@inline
def _state_of(u: Any, at: Any) -> Any:
    """1 / density, three velocities, half their square, speed of sound."""
    inverse = np.reciprocal(u[at])
    wx, wy, wz = u[at + ONE] * inverse, u[at + TWO] * inverse, u[at + THREE] * inverse
    q = 0.5 * (wx * wx + wy * wy + wz * wz)
    return inverse, wx, wy, wz, q, math.sqrt(C1C2 * (u[at + FOUR] * inverse - q))


def x_to_y(field: Any, rest: Any, state: Any) -> None:
    """From the eigenvectors along x to those along y."""
    s = carray(state, (9,))
    r = carray(rest, FIVE * s[6] * s[7] * s[8])
    for k in range(s[0], s[1]):
        for j in range(s[2], s[3]):
            for i in range(s[4], s[5]):
                at = FIVE * (i + s[6] * (j + k * s[7]))
                r1, r2, r3, r4, r5 = r[at], r[at + ONE], r[at + TWO], r[at + THREE], r[at + FOUR]
                t1 = ROOT_HALF * r3
                t2 = 0.5 * (r4 + r5)
                r[at] = -r2
                r[at + ONE] = r1
                r[at + TWO] = ROOT_HALF * (r4 - r5)
                r[at + THREE] = -t1 + t2
                r[at + FOUR] = t1 + t2


def y_to_z(field: Any, rest: Any, state: Any) -> None:
    """From the eigenvectors along y to those along z."""
    s = carray(state, (9,))
    r = carray(rest, FIVE * s[6] * s[7] * s[8])
    for k in range(s[0], s[1]):
        for j in range(s[2], s[3]):
            for i in range(s[4], s[5]):
                at = FIVE * (i + s[6] * (j + k * s[7]))
                r1, r2, r3, r4, r5 = r[at], r[at + ONE], r[at + TWO], r[at + THREE], r[at + FOUR]
                t1 = ROOT_HALF * r1
                t2 = 0.5 * (r4 + r5)
                r[at] = ROOT_HALF * (r4 - r5)
                r[at + ONE] = -r3
                r[at + TWO] = r2
                r[at + THREE] = -t1 + t2
                r[at + FOUR] = t1 + t2


def from_z(field: Any, rest: Any, state: Any) -> None:
    """Multiply by the eigenvectors along z."""
    s = carray(state, (9,))
    u = carray(field, FIVE * s[6] * s[7] * s[8])
    r = carray(rest, FIVE * s[6] * s[7] * s[8])
    for k in range(s[0], s[1]):
        for j in range(s[2], s[3]):
            for i in range(s[4], s[5]):
                at = FIVE * (i + s[6] * (j + k * s[7]))
                _, wx, wy, wz, q, sound = _state_of(u, at)
                r1, r2, r3, r4, r5 = r[at], r[at + ONE], r[at + TWO], r[at + THREE], r[at + FOUR]
                density = u[at]
                t1 = ROOT_HALF * density * np.reciprocal(sound) * (r4 + r5)
                t2 = r3 + t1
                t3 = ROOT_HALF * density * (r4 - r5)
                r[at] = t2
                r[at + ONE] = -density * r2 + wx * t2
                r[at + TWO] = density * r1 + wy * t2
                r[at + THREE] = wz * t2 + t3
                r[at + FOUR] = (
                    density * (wy * r1 - wx * r2) + q * t2 + 2.5 * sound * sound * t1 + wz * t3
                )
