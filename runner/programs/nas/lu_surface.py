"""The surface integral of pressure, by which LU is verified; it is not timed."""

from __future__ import annotations

from typing import Any

import numpy as np

from runner.programs.nas.lu_domain import GHOSTS, Domain, Field

C2 = 0.4


def surface_integral(comm: Any, domain: Domain, field: Field) -> float:
    """The integral over the faces of a box a little smaller than the cube. Collective."""
    n = domain.size
    # Faces (index along the axis) and extents of the box, as in the original: 0-based, inclusive.
    x, y, z = (1, n - 2), (1, n - 3), (2, n - 2)
    h = 1.0 / (n - 1)
    total = 0.0
    for axis, (at, rows, columns) in enumerate(((x, z, y), (y, z, x), (z, y, x))):
        for index in at:
            pressure = _face(comm, domain, field, axis, index)
            box = pressure[rows[0] : rows[1] + 1, columns[0] : columns[1] + 1]
            total += float((box[:-1, :-1] + box[1:, :-1] + box[:-1, 1:] + box[1:, 1:]).sum())
    return 0.25 * total * h * h


def _face(comm: Any, domain: Domain, field: Field, axis: int, index: int) -> Field:
    """The pressure on a whole layer of the cube, collected from all ranks."""
    n = domain.size
    own = field[:, GHOSTS:-GHOSTS, GHOSTS:-GHOSTS]
    (x0, y0), (nx, ny) = domain.start, domain.points
    face, whole = np.zeros((n, n)), np.zeros((n, n))
    if axis == 2:
        face[y0 : y0 + ny, x0 : x0 + nx] = _pressure(own[index])
    elif axis == 1 and y0 <= index < y0 + ny:
        face[:, x0 : x0 + nx] = _pressure(own[:, index - y0])
    elif axis == 0 and x0 <= index < x0 + nx:
        face[:, y0 : y0 + ny] = _pressure(own[:, :, index - x0])
    comm.Allreduce(face, whole)
    return whole


def _pressure(u: Field) -> Field:
    momentum = (u[..., 1:4] ** 2).sum(axis=-1)
    pressure: Field = C2 * (u[..., 4] - 0.5 * momentum / u[..., 0])
    return pressure
