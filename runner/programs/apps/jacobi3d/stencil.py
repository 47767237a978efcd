"""The update of Jacobi3D's cells, one function for the kernel and for compiled regions.

It is a plain function of the dialect of compiled regions. All integers are unsigned, so that an
index needs no check for negative values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

ONE = np.uint64(1)
TWO = np.uint64(2)


def update(u: Any, v: Any, geometry: Any, weights: Any) -> None:
    """One damped Jacobi update of a box, 13-point star, blocked in z and y.

    ``u`` is read and ``v`` written: fields [z][y][x] of doubles as arrays of one dimension.
    ``geometry`` = row pitch, plane pitch, length of the field, block, then the box ``z0, z1, y0,
    y1, x0, x1`` (upper bounds excluded). ``weights`` = centre, distance 1, distance 2. 15 flops a
    cell. The value of a cell is one fixed expression of its neighbours, so box and block do not
    change its bits.
    """
    row, plane, block = geometry[0], geometry[1], geometry[3]
    z0, z1, y0, y1 = geometry[4], geometry[5], geometry[6], geometry[7]
    x0, x1 = geometry[8], geometry[9]
    c0, c1, c2 = weights[0], weights[1], weights[2]
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
