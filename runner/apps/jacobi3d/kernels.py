"""The numerical kernels of Jacobi3D, shared by all variants (see runner.native.kernels).

A field is an array of doubles [z][y][x] with two ghost cells on every side. A box is ``z0, z1, y0,
y1, x0, x1`` in indices of that array, upper bounds excluded. All integers are unsigned, so that an
index needs no check for negative values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, types
from numba.extending import intrinsic

KERNELS = {
    "stencil": ("float64", "float64", "uint64", "float64"),
    "pack": ("float64", "float64", "uint64"),
    "unpack": ("float64", "float64", "uint64"),
    "raise_flag": ("uint64", "uint64"),
    "await_flag": ("uint64", "uint64", "uint64"),
}

ZERO = np.uint64(0)
ONE = np.uint64(1)
TWO = np.uint64(2)


def stencil(source: Any, target: Any, geometry: Any, weights: Any) -> None:
    """One damped Jacobi update of a box, 13-point star, blocked in z and y.

    ``geometry`` = row pitch, plane pitch, length of the field, block, then the box. ``weights`` =
    centre, distance 1, distance 2. 15 flops a cell. The value of a cell is one fixed expression of
    its neighbours, so box and block do not change its bits.
    """
    g = carray(geometry, (10,))
    row, plane, length, block = g[0], g[1], g[2], g[3]
    z0, z1, y0, y1, x0, x1 = g[4], g[5], g[6], g[7], g[8], g[9]
    w = carray(weights, (3,))
    c0, c1, c2 = w[0], w[1], w[2]
    u = carray(source, length)
    v = carray(target, length)
    row2 = row + row
    plane2 = plane + plane
    zb = z0
    while zb < z1:
        z_end = min(zb + block, z1)
        yb = y0
        while yb < y1:
            y_end = min(yb + block, y1)
            z = zb
            while z < z_end:
                y = yb
                while y < y_end:
                    first = z * plane + y * row
                    for i in range(first + x0, first + x1):
                        near = (
                            (u[i - ONE] + u[i + ONE])
                            + (u[i - row] + u[i + row])
                            + (u[i - plane] + u[i + plane])
                        )
                        far = (
                            (u[i - TWO] + u[i + TWO])
                            + (u[i - row2] + u[i + row2])
                            + (u[i - plane2] + u[i + plane2])
                        )
                        v[i] = c0 * u[i] + c1 * near + c2 * far
                    y += ONE
                z += ONE
            yb = y_end
        zb = z_end


def pack(field: Any, buffer: Any, table: Any) -> None:
    """Copy boxes of a field into the buffer, one after the other.

    ``table`` = row pitch, plane pitch, length of the field, length of the buffer, number of boxes,
    then for every box its start in the buffer and its six bounds.
    """
    head = carray(table, (5,))
    row, plane, length, size, boxes = head[0], head[1], head[2], head[3], head[4]
    t = carray(table, np.uint64(5) + boxes * np.uint64(7))
    u = carray(field, length)
    b = carray(buffer, size)
    at = np.uint64(5)
    n = ZERO
    while n < boxes:
        k = t[at]
        z = t[at + ONE]
        while z < t[at + TWO]:
            y = t[at + np.uint64(3)]
            while y < t[at + np.uint64(4)]:
                first = z * plane + y * row
                for i in range(first + t[at + np.uint64(5)], first + t[at + np.uint64(6)]):
                    b[k] = u[i]
                    k += ONE
                y += ONE
            z += ONE
        at += np.uint64(7)
        n += ONE


def unpack(field: Any, buffer: Any, table: Any) -> None:
    """The inverse of :func:`pack`: fill boxes of a field from the buffer."""
    head = carray(table, (5,))
    row, plane, length, size, boxes = head[0], head[1], head[2], head[3], head[4]
    t = carray(table, np.uint64(5) + boxes * np.uint64(7))
    u = carray(field, length)
    b = carray(buffer, size)
    at = np.uint64(5)
    n = ZERO
    while n < boxes:
        k = t[at]
        z = t[at + ONE]
        while z < t[at + TWO]:
            y = t[at + np.uint64(3)]
            while y < t[at + np.uint64(4)]:
                first = z * plane + y * row
                for i in range(first + t[at + np.uint64(5)], first + t[at + np.uint64(6)]):
                    u[i] = b[k]
                    k += ONE
                y += ONE
            z += ONE
        at += np.uint64(7)
        n += ONE


@intrinsic
def _load(typing: Any, pointer: Any) -> Any:
    """Read a 64-bit flag that another thread writes, and all that the thread wrote before."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(arguments[0], ordering="acquire", align=8)

    return types.uint64(pointer), generate


@intrinsic
def _store(typing: Any, pointer: Any, value: Any) -> Any:
    """Write a 64-bit flag after all that this thread wrote before."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[1], arguments[0], ordering="release", align=8)
        return context.get_dummy_value()

    return types.void(pointer, types.uint64), generate


def raise_flag(flag: Any, level: Any) -> None:
    """Set a flag to ``level``."""
    _store(flag, carray(level, (1,))[0])


def await_flag(flag: Any, geometry: Any, seen: Any) -> None:
    """Wait until a flag has reached a level; ``geometry`` = level, largest number of looks.

    ``seen`` receives the flag's last value.
    """
    g = carray(geometry, (2,))
    s = carray(seen, (1,))
    left = g[1]
    value = _load(flag)
    while value < g[0] and left > ZERO:
        value = _load(flag)
        left -= ONE
    s[0] = value
