"""The step of a box of cells: the account of heat at the boundary, and the stencil.

The functions are of the dialect of compiled regions. All integers are unsigned, so that an index
needs no check for negative values. ``geometry`` = row pitch, plane pitch, length of a variable's
array, first variable, end of the variables, length of the field, then the box ``z0, z1, y0, y1, x0,
x1`` (upper bounds excluded) in indices of a variable's array [z][y][x]. Fields are arrays of one
dimension of doubles, variable after variable.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runner.programs.apps.minighost.problem import CENTRE, NEAR

ZERO, ONE, TWO, THREE = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
FOUR, FIVE, SIX = np.uint64(4), np.uint64(5), np.uint64(6)

GEOMETRY = 12
"""Length of ``geometry``."""


def sweep(u: Any, v: Any, geometry: Any) -> None:
    """One step of the heat equation in a box: ``u`` is read and ``v`` written.

    8 flops a cell. The value of a cell is one fixed expression of its neighbours, so the box does
    not change its bits.
    """
    row, plane, length = geometry[0], geometry[1], geometry[2]
    z0, z1, y0, y1 = geometry[6], geometry[7], geometry[8], geometry[9]
    x0, x1 = geometry[10], geometry[11]
    variable = geometry[3]
    while variable < geometry[4]:
        z = z0
        while z < z1:
            y = y0
            while y < y1:
                first = variable * length + z * plane + y * row
                for i in range(first + x0, first + x1):
                    near = (
                        (u[i - ONE] + u[i + ONE])
                        + (u[i - row] + u[i + row])
                        + (u[i - plane] + u[i + plane])
                    )
                    v[i] = CENTRE * u[i] + NEAR * near
                y += ONE
            z += ONE
        variable += ONE


def outflow(u: Any, geometry: Any, walls: Any, losses: Any) -> None:
    """Add to ``losses``, for each variable, the heat that the next step loses through the boundary.

    ``walls`` = number of boxes, then the six bounds of each: layers of cells beside the boundary,
    one cell thick. Outside it is cold (0), so each of these cells loses ``NEAR`` of its heat.
    """
    row, plane, length = geometry[0], geometry[1], geometry[2]
    variable = geometry[3]
    while variable < geometry[4]:
        wall = ONE
        while wall < ONE + walls[0] * SIX:
            y0, y1 = walls[wall + TWO], walls[wall + THREE]
            x0, x1 = walls[wall + FOUR], walls[wall + FIVE]
            # Lines along x, or along y if the layer is one cell wide.
            step, count, lines = ONE, x1 - x0, y1 - y0
            if count == ONE:
                step, count, lines = row, y1 - y0, ONE
            total = 0.0
            z = walls[wall]
            while z < walls[wall + ONE]:
                line = ZERO
                while line < lines:
                    at = variable * length + z * plane + (y0 + line) * row + x0
                    end = at + count * step
                    s0 = s1 = s2 = s3 = 0.0
                    while at + THREE * step < end:
                        s0 += u[at]
                        s1 += u[at + step]
                        s2 += u[at + TWO * step]
                        s3 += u[at + THREE * step]
                        at += FOUR * step
                    while at < end:
                        s0 += u[at]
                        at += step
                    total += (s0 + s2) + (s1 + s3)
                    line += ONE
                z += ONE
            losses[variable - geometry[3]] += NEAR * total
            wall += SIX
        variable += ONE
