"""The surface integral of pressure, by which LU is verified; it is not timed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runner.programs.nas.lu_domain import GHOSTS, Domain, Field

C2 = 0.4
Column = tuple[Domain, Field]


def surface_integral(comm: Any, columns: Sequence[Column]) -> float:
    """The integral over the faces of a box a little smaller than the cube. Collective.

    ``columns`` are those of this process, each with its field.
    """
    n = columns[0][0].size
    # Faces (index along the axis) and extents of the box, as in the original: 0-based, inclusive.
    x, y, z = (1, n - 2), (1, n - 3), (2, n - 2)
    h = 1.0 / (n - 1)
    total = 0.0
    for axis, (at, rows, across) in enumerate(((x, z, y), (y, z, x), (z, y, x))):
        for index in at:
            pressure = _face(comm, columns, axis, index)
            box = pressure[rows[0] : rows[1] + 1, across[0] : across[1] + 1]
            total += float((box[:-1, :-1] + box[1:, :-1] + box[:-1, 1:] + box[1:, 1:]).sum())
    return 0.25 * total * h * h


def _face(comm: Any, columns: Sequence[Column], axis: int, index: int) -> Field:
    """The pressure on a whole layer of the cube, collected from all ranks."""
    n = columns[0][0].size
    face, whole = np.zeros((n, n)), np.zeros((n, n))
    for domain, field in columns:
        own = field[:, GHOSTS:-GHOSTS, GHOSTS:-GHOSTS]
        (x0, y0), (nx, ny) = domain.start, domain.points
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
