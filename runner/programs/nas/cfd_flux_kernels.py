"""The right-hand side of LU, SP and BT along one axis (see :mod:`runner.runtimes.core.kernels`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from runner.programs.nas.common.jit import inline

KERNELS = {"add_fluxes": ("float64", "float64", "float64", "float64", "uint64")}

ZERO = np.uint64(0)
ONE = np.uint64(1)
TWO = np.uint64(2)
THREE = np.uint64(3)
FOUR = np.uint64(4)
FIVE = np.uint64(5)
TEN = np.uint64(10)

C1 = 1.4
C2 = 0.4
C34 = 0.1
C1345 = 1.4 * 0.1 * 1.0 * 1.4


def add_fluxes(field: Any, rest: Any, lines: Any, numbers: Any, state: Any) -> None:
    """rest += differences of fluxes, of viscous fluxes, and dissipation, along one axis.

    ``field`` = u; ``lines`` = scratch, 20 doubles per point of a line. ``numbers`` = 1 / (2 h), 1 /
    h, 1 / h^2, d, dissipation. ``state`` = doubles of a field; of the two other axes: first, end,
    stride of the one, then of the other; of this axis: first and end of inner points, stride,
    component of its momentum, of the other two, whether there is a wall before, behind.
    """
    s = carray(state, (15,))
    c = carray(numbers, (5,))
    u, r = carray(field, s[0]), carray(rest, s[0])
    first, end = s[7], s[8]
    x = carray(lines, (end + ONE) * (TEN + TEN))
    for b in range(s[4], s[5]):
        for a in range(s[1], s[2]):
            base = b * s[6] + a * s[3]
            _fill_line(u, x, base, first - ONE, end + ONE, s)
            _viscous(x, first, end + ONE, c)
            _difference(u, r, x, base, first, end, s, c)
            _dissipate(u, r, base, first, end, s, c[4])


@inline
def _fill_line(u: Any, x: Any, base: Any, first: Any, end: Any, s: Any) -> None:
    """Per point: 5 fluxes, then 3 velocities (of this axis first), their squares, energy."""
    stride, n, a, b = s[9], s[10], s[11], s[12]
    for p in range(first, end):
        at = base + p * stride
        to = p * (TEN + TEN)
        inverse = np.reciprocal(u[at])
        un, ua, ub, u5 = u[at + n], u[at + a], u[at + b], u[at + FOUR]
        wn, wa, wb = un * inverse, ua * inverse, ub * inverse
        kinetic = wn * wn + wa * wa + wb * wb
        pressure = C2 * (u5 - 0.5 * u[at] * kinetic)
        x[to] = un
        x[to + ONE] = un * wn + pressure
        x[to + TWO] = ua * wn
        x[to + THREE] = ub * wn
        x[to + FOUR] = (u5 + pressure) * wn
        x[to + FIVE] = wn
        x[to + FIVE + ONE] = wa
        x[to + FIVE + TWO] = wb
        x[to + FIVE + THREE] = kinetic
        x[to + FIVE + FOUR] = u5 * inverse


@inline
def _viscous(x: Any, first: Any, end: Any, c: Any) -> None:
    """Per point: the 4 viscous fluxes between it and the one before."""
    for p in range(first, end):
        to = p * (TEN + TEN)
        point, before = to + FIVE, to + FIVE - TEN - TEN
        wn, vn = x[point], x[before]
        x[to + TEN + ONE] = c[1] * (4.0 / 3.0) * (wn - vn)
        x[to + TEN + TWO] = c[1] * (x[point + ONE] - x[before + ONE])
        x[to + TEN + THREE] = c[1] * (x[point + TWO] - x[before + TWO])
        x[to + TEN + FOUR] = c[1] * (
            0.5 * (1.0 - 1.4 * 1.4) * (x[point + THREE] - x[before + THREE])
            + (1.0 / 6.0) * (wn * wn - vn * vn)
            + 1.4 * 1.4 * (x[point + FOUR] - x[before + FOUR])
        )


@inline
def _difference(u: Any, r: Any, x: Any, base: Any, first: Any, end: Any, s: Any, c: Any) -> None:
    stride, n, a, b = s[9], s[10], s[11], s[12]
    spread = c[3] * c[2]
    shear = c[1] * C34
    for p in range(first, end):
        at = base + p * stride
        to = p * (TEN + TEN)
        up, down = to + TEN + TEN, to - TEN - TEN
        low, high = at - stride, at + stride
        r[at] += spread * (u[low] - 2.0 * u[at] + u[high]) - c[0] * (x[up] - x[down])
        r[at + n] += (
            shear * (x[up + TEN + ONE] - x[to + TEN + ONE])
            + spread * (u[low + n] - 2.0 * u[at + n] + u[high + n])
            - c[0] * (x[up + ONE] - x[down + ONE])
        )
        r[at + a] += (
            shear * (x[up + TEN + TWO] - x[to + TEN + TWO])
            + spread * (u[low + a] - 2.0 * u[at + a] + u[high + a])
            - c[0] * (x[up + TWO] - x[down + TWO])
        )
        r[at + b] += (
            shear * (x[up + TEN + THREE] - x[to + TEN + THREE])
            + spread * (u[low + b] - 2.0 * u[at + b] + u[high + b])
            - c[0] * (x[up + THREE] - x[down + THREE])
        )
        r[at + FOUR] += (
            shear * (x[up + TEN + FOUR] - x[to + TEN + FOUR])
            + spread * (u[low + FOUR] - 2.0 * u[at + FOUR] + u[high + FOUR])
            - c[0] * (x[up + FOUR] - x[down + FOUR])
        )


@inline
def _dissipate(u: Any, r: Any, base: Any, first: Any, end: Any, s: Any, d: Any) -> None:
    """Fourth differences, one-sided at the two points next to a wall."""
    stride = s[9]
    two = stride + stride
    inner_first = first + TWO * s[13]
    inner_end = end - TWO * s[14]
    for p in range(inner_first, inner_end):
        for n in range(base + p * stride, base + p * stride + FIVE):
            r[n] -= d * (
                u[n - two] - 4.0 * u[n - stride] + 6.0 * u[n] - 4.0 * u[n + stride] + u[n + two]
            )
    if s[13] == ONE:
        for n in range(base + first * stride, base + first * stride + FIVE):
            m = n + stride
            r[n] -= d * (5.0 * u[n] - 4.0 * u[m] + u[m + stride])
            r[m] -= d * (-4.0 * u[n] + 6.0 * u[m] - 4.0 * u[m + stride] + u[m + two])
    if s[14] == ONE:
        last = base + (end - ONE) * stride
        for n in range(last, last + FIVE):
            m = n - stride
            r[m] -= d * (u[m - two] - 4.0 * u[m - stride] + 6.0 * u[m] - 4.0 * u[n])
            r[n] -= d * (u[m - stride] - 4.0 * u[m] + 5.0 * u[n])
