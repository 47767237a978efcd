"""The arithmetic of BT's sweeps (see :mod:`runner.runtimes.core.kernels`).

Along an axis the unknowns of a point are ordered: density, momentum along the axis (n), the other
two momenta (a, b), energy. Blocks then look the same for all axes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from runner.programs.nas.common.jit import inline

KERNELS = {
    "eliminate": ("float64", "float64", "float64", "float64", "uint64"),
    "substitute": ("float64", "float64", "uint64"),
}

ZERO = np.uint64(0)
ONE = np.uint64(1)
TWO = np.uint64(2)
THREE = np.uint64(3)
FOUR = np.uint64(4)
FIVE = np.uint64(5)
TEN = np.uint64(10)
FIFTEEN = np.uint64(15)
TWENTY = np.uint64(20)

C1 = 1.4
C2 = 0.4
C34 = 0.1
R43 = 4.0 / 3.0
C1345 = 1.4 * 0.1 * 1.0 * 1.4


def eliminate(field: Any, rest: Any, blocks: Any, numbers: Any, state: Any) -> None:
    """Make the block tridiagonal systems of all lines of a cell upper triangular.

    ``field`` = u, ``rest`` = right-hand sides, ``blocks`` = 5x5 matrices C' by columns. C' and rest
    of the point before the first one are read: they are 0 next to a wall, and come from the
    previous cell elsewhere. ``numbers`` = dt / (2 h), dt / h^2, dissipation. ``state`` = doubles of
    a field; of the two other axes first, end, stride; of this axis first and end of inner points,
    stride, components n, a, b.
    """
    s = carray(state, (13,))
    c = carray(numbers, (3,))
    u, r = carray(field, s[0]), carray(rest, s[0])
    m = carray(blocks, FIVE * s[0])
    stride = s[9]
    for b in range(s[4], s[5]):
        for a in range(s[1], s[2]):
            base = b * s[6] + a * s[3]
            for p in range(s[7], s[8]):
                _row(u, r, m, base + p * stride, stride, s[10], s[11], s[12], c)


@inline
def _row(u: Any, r: Any, m: Any, at: Any, stride: Any, n: Any, a: Any, b: Any, c: Any) -> None:
    before, after = at - stride, at + stride
    # m holds 25 doubles per point, u and r hold 5.
    place, last = at * FIVE, before * FIVE
    low = _block(u, before, n, a, b, -c[0], -c[1], -c[1] * c[2])
    high = _block(u, after, n, a, b, c[0], -c[1], -c[1] * c[2])
    k1, kn, ka, kb, k5 = _diagonal(u, at, n, a, b, c)
    e1, e2, e3, e4, e5 = _product(
        low, m[last], m[last + ONE], m[last + TWO], m[last + THREE], m[last + FOUR]
    )
    f1, f2, f3, f4, f5 = _product(
        low, m[last + FIVE], m[last + FIVE + ONE], m[last + FIVE + TWO], m[last + FIVE + THREE],
        m[last + FIVE + FOUR],
    )  # fmt: skip
    g1, g2, g3, g4, g5 = _product(
        low, m[last + TEN], m[last + TEN + ONE], m[last + TEN + TWO], m[last + TEN + THREE],
        m[last + TEN + FOUR],
    )  # fmt: skip
    h1, h2, h3, h4, h5 = _product(
        low, m[last + FIFTEEN], m[last + FIFTEEN + ONE], m[last + FIFTEEN + TWO],
        m[last + FIFTEEN + THREE], m[last + FIFTEEN + FOUR],
    )  # fmt: skip
    i1, i2, i3, i4, i5 = _product(
        low, m[last + TWENTY], m[last + TWENTY + ONE], m[last + TWENTY + TWO],
        m[last + TWENTY + THREE], m[last + TWENTY + FOUR],
    )  # fmt: skip
    factors = _factor(
        k1[0] - e1, k1[1] - e2, k1[2] - e3, k1[3] - e4, k1[4] - e5,
        -f1, kn[0] - f2, -f3, -f4, kn[1] - f5,
        -g1, -g2, ka[0] - g3, -g4, ka[1] - g5,
        -h1, -h2, -h3, kb[0] - h4, kb[1] - h5,
        -i1, -i2, -i3, -i4, k5 - i5,
    )  # fmt: skip
    # The columns of C, of which 7 elements are 0.
    (c11, c12, cn1, cnn, cna, cnb, cn5, ca1, can, caa, cb1, cbn, cbb,
     c51, c5n, c5a, c5b, c55) = high  # fmt: skip
    _put(m, place, _solve(factors, c11, cn1, ca1, cb1, c51))
    _put(m, place + FIVE, _solve(factors, c12, cnn, can, cbn, c5n))
    _put(m, place + TEN, _solve(factors, 0.0, cna, caa, 0.0, c5a))
    _put(m, place + FIFTEEN, _solve(factors, 0.0, cnb, 0.0, cbb, c5b))
    _put(m, place + TWENTY, _solve(factors, 0.0, cn5, 0.0, 0.0, c55))
    x1, x2, x3, x4, x5 = _product(
        low, r[before], r[before + n], r[before + a], r[before + b], r[before + FOUR]
    )
    r[at], r[at + n], r[at + a], r[at + b], r[at + FOUR] = _solve(
        factors, r[at] - x1, r[at + n] - x2, r[at + a] - x3, r[at + b] - x4, r[at + FOUR] - x5
    )


@inline
def _put(m: Any, at: Any, x: Any) -> None:
    m[at], m[at + ONE], m[at + TWO], m[at + THREE], m[at + FOUR] = x


@inline
def _block(u: Any, at: Any, n: Any, a: Any, b: Any, f: Any, k: Any, d: Any) -> Any:
    """f A + k N + d of a neighbour: flux and viscous Jacobians, by rows, without zero elements."""
    inverse = np.reciprocal(u[at])
    wn, wa, wb = u[at + n] * inverse, u[at + a] * inverse, u[at + b] * inverse
    energy = u[at + FOUR] * inverse
    sides = wa * wa + wb * wb
    q = 0.5 * (wn * wn + sides)
    v = k * inverse
    vn, vs, ve = v * (R43 * C34), v * C34, v * C1345
    heat = C1 * energy - C2 * q
    return (
        d,
        f,
        f * (C2 * q - wn * wn) - vn * wn,
        f * (2.0 - C2) * wn + vn + d,
        -f * C2 * wa,
        -f * C2 * wb,
        f * C2,
        -(f * wn + vs) * wa,
        f * wa,
        f * wn + vs + d,
        -(f * wn + vs) * wb,
        f * wb,
        f * wn + vs + d,
        f * (C2 * q - heat) * wn - (vn - ve) * wn * wn - (vs - ve) * sides - ve * energy,
        f * (heat - C2 * wn * wn) + (vn - ve) * wn,
        (vs - ve - f * C2 * wn) * wa,
        (vs - ve - f * C2 * wn) * wb,
        f * C1 * wn + ve + d,
    )


@inline
def _diagonal(u: Any, at: Any, n: Any, a: Any, b: Any, c: Any) -> Any:
    """The block of the point itself: its first column, then diagonal and last row of the others."""
    inverse = np.reciprocal(u[at])
    wn, wa, wb = u[at + n] * inverse, u[at + a] * inverse, u[at + b] * inverse
    double = c[1] + c[1]
    d = 1.0 + double * c[2]
    v = double * inverse
    vn, vs, ve = v * (R43 * C34), v * C34, v * C1345
    bottom = -(vn - ve) * wn * wn - (vs - ve) * (wa * wa + wb * wb) - ve * u[at + FOUR] * inverse
    return (
        (d, -vn * wn, -vs * wa, -vs * wb, bottom),
        (d + vn, (vn - ve) * wn),
        (d + vs, (vs - ve) * wa),
        (d + vs, (vs - ve) * wb),
        d + ve,
    )


@inline
def _product(block: Any, x1: Any, x2: Any, x3: Any, x4: Any, x5: Any) -> Any:
    return (
        block[0] * x1 + block[1] * x2,
        block[2] * x1 + block[3] * x2 + block[4] * x3 + block[5] * x4 + block[6] * x5,
        block[7] * x1 + block[8] * x2 + block[9] * x3,
        block[10] * x1 + block[11] * x2 + block[12] * x4,
        block[13] * x1 + block[14] * x2 + block[15] * x3 + block[16] * x4 + block[17] * x5,
    )


@inline
def _factor(
    a11: Any, a21: Any, a31: Any, a41: Any, a51: Any,
    a12: Any, a22: Any, a32: Any, a42: Any, a52: Any,
    a13: Any, a23: Any, a33: Any, a43: Any, a53: Any,
    a14: Any, a24: Any, a34: Any, a44: Any, a54: Any,
    a15: Any, a25: Any, a35: Any, a45: Any, a55: Any,
) -> Any:  # fmt: skip
    """L U of a matrix given by columns, without pivoting; pivots are returned as reciprocals."""
    p1 = np.reciprocal(a11)
    l21, l31, l41, l51 = a21 * p1, a31 * p1, a41 * p1, a51 * p1
    a22, a32, a42, a52 = a22 - l21 * a12, a32 - l31 * a12, a42 - l41 * a12, a52 - l51 * a12
    a23, a33, a43, a53 = a23 - l21 * a13, a33 - l31 * a13, a43 - l41 * a13, a53 - l51 * a13
    a24, a34, a44, a54 = a24 - l21 * a14, a34 - l31 * a14, a44 - l41 * a14, a54 - l51 * a14
    a25, a35, a45, a55 = a25 - l21 * a15, a35 - l31 * a15, a45 - l41 * a15, a55 - l51 * a15
    p2 = np.reciprocal(a22)
    l32, l42, l52 = a32 * p2, a42 * p2, a52 * p2
    a33, a43, a53 = a33 - l32 * a23, a43 - l42 * a23, a53 - l52 * a23
    a34, a44, a54 = a34 - l32 * a24, a44 - l42 * a24, a54 - l52 * a24
    a35, a45, a55 = a35 - l32 * a25, a45 - l42 * a25, a55 - l52 * a25
    p3 = np.reciprocal(a33)
    l43, l53 = a43 * p3, a53 * p3
    a44, a54 = a44 - l43 * a34, a54 - l53 * a34
    a45, a55 = a45 - l43 * a35, a55 - l53 * a35
    p4 = np.reciprocal(a44)
    l54 = a54 * p4
    p5 = np.reciprocal(a55 - l54 * a45)
    return (
        p1, p2, p3, p4, p5, l21, l31, l41, l51, l32, l42, l52, l43, l53, l54,
        a12, a13, a14, a15, a23, a24, a25, a34, a35, a45,
    )  # fmt: skip


@inline
def _solve(factors: Any, x1: Any, x2: Any, x3: Any, x4: Any, x5: Any) -> Any:
    (p1, p2, p3, p4, p5, l21, l31, l41, l51, l32, l42, l52, l43, l53, l54,
     a12, a13, a14, a15, a23, a24, a25, a34, a35, a45) = factors  # fmt: skip
    y2 = x2 - l21 * x1
    y3 = x3 - l31 * x1 - l32 * y2
    y4 = x4 - l41 * x1 - l42 * y2 - l43 * y3
    z5 = (x5 - l51 * x1 - l52 * y2 - l53 * y3 - l54 * y4) * p5
    z4 = (y4 - a45 * z5) * p4
    z3 = (y3 - a34 * z4 - a35 * z5) * p3
    z2 = (y2 - a23 * z3 - a24 * z4 - a25 * z5) * p2
    return (x1 - a12 * z2 - a13 * z3 - a14 * z4 - a15 * z5) * p1, z2, z3, z4, z5


def substitute(rest: Any, blocks: Any, state: Any) -> None:
    """Solve the upper triangular systems of all lines of a cell, from the last point to the first.

    ``rest`` of the point after the last one is the solution there. The arguments are those of
    :func:`eliminate`.
    """
    s = carray(state, (13,))
    r = carray(rest, s[0])
    m = carray(blocks, FIVE * s[0])
    n, a, b, stride = s[10], s[11], s[12], s[9]
    for outer in range(s[4], s[5]):
        for inner in range(s[1], s[2]):
            base = outer * s[6] + inner * s[3]
            for back in range(ZERO, s[8] - s[7]):
                at = base + (s[8] - ONE - back) * stride
                after = at + stride
                x1, x2, x3 = r[after], r[after + n], r[after + a]
                x4, x5 = r[after + b], r[after + FOUR]
                c = at * FIVE
                for component, row in (
                    (ZERO, ZERO), (n, ONE), (a, TWO), (b, THREE), (FOUR, FOUR),
                ):  # fmt: skip
                    r[at + component] -= (
                        m[c + row] * x1
                        + m[c + FIVE + row] * x2
                        + m[c + TEN + row] * x3
                        + m[c + FIFTEEN + row] * x4
                        + m[c + TWENTY + row] * x5
                    )
