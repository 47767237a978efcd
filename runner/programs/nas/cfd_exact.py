"""The exact solution and the start values that LU, SP and BT share (NAS-95-020, section 3.2)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

COEFFICIENTS = np.array(
    [
        [2.0, 0.0, 0.0, 4.0, 5.0, 3.0, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3],
        [1.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5],
        [2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4],
        [2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3],
        [5.0, 4.0, 3.0, 2.0, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2],
    ]
)
"""Per component: a constant, then coefficients of x, y, z, their squares, cubes, fourth powers."""

Grid = NDArray[np.float64]


def exact(x: Any, y: Any, z: Any) -> Grid:
    """The exact solution at points of the unit cube that broadcast to [z, y, x]; [z, y, x, 5]."""
    point = np.broadcast_arrays(x, y, z)[0][..., None]
    total: Grid = np.zeros((*point.shape[:-1], 5)) + COEFFICIENTS[:, 0]
    for axis, value in enumerate((x, y, z)):
        t = np.asarray(value)[..., None]
        c = COEFFICIENTS[:, 1 + axis :: 3]
        total += t * (c[:, 0] + t * (c[:, 1] + t * (c[:, 2] + t * c[:, 3])))
    return total


def interpolate(x: Any, y: Any, z: Any) -> Grid:
    """Start values: the exact solution of the six faces interpolated between them."""
    along = []
    for axis, value in enumerate((x, y, z)):
        ends = []
        for end in (0.0, 1.0):
            point = [x, y, z]
            point[axis] = np.full_like(value, end)
            ends.append(exact(*point))
        t = np.asarray(value)[..., None]
        along.append((1.0 - t) * ends[0] + t * ends[1])
    px, py, pz = along
    return px + py + pz - px * py - py * pz - pz * px + px * py * pz


def start_values(x: NDArray[Any], y: NDArray[Any], z: NDArray[Any]) -> Grid:
    """The start field: exact on the faces of the cube, interpolated inside.

    ``x``, ``y``, ``z`` are coordinates along the axes; coordinates outside the cube (ghosts) get
    values too. The result is [z, y, x, 5].
    """
    points = (x[None, None, :], y[None, :, None], z[:, None, None])
    field = interpolate(*points)
    inside = np.ones(field.shape[:3], dtype=bool)
    for t in points:
        inside = inside & (t > 0.0) & (t < 1.0)
    return np.where(inside[..., None], field, exact(*points))
