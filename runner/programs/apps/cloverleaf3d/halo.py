"""Copies between the cells at a face and the ghosts behind it, for flat MPI and compiled regions.

They are functions of the dialect of compiled regions (runner/runtimes/mate/README.md). ``fields``
is an array [field][z][y][x]. A face has the number ``2 * axis + side``, ``side`` 0 is low. ``own``
and ``ghosts`` are int64[6][6], a box for each face (:func:`boxes`). ``field_table`` is
int64[phase][7]: the number of fields that are exchanged in a phase, then their numbers. All fields
of a face are one buffer, one after the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.programs.apps.cloverleaf3d.problem import DEPTH, EXCHANGES
from runner.programs.apps.common.grid import Shape
from runner.runtimes.core.library import pack, unpack

FACES = 6
WALL, PROCESS, RANK = 0, 1, 2
"""What is behind a face: a wall, a rank of another process, or a rank of this process."""
ZERO, ONE = np.uint64(0), np.uint64(1)


def boxes(cells: Shape, ghost: bool) -> NDArray[np.int64]:
    """The layer of cells (x, y, z) at each face, or of ghosts behind it, as boxes of the fields.

    Along the axes exchanged earlier (x, then y, then z) a layer includes its ghosts: so edges and
    corners travel with it.
    """
    bounds = np.empty((FACES, 3, 2), dtype=np.int64)
    for face in range(FACES):
        axis, side = divmod(face, 2)
        for other, length in enumerate(cells):
            low = 0 if other < axis else DEPTH
            bounds[face, 2 - other] = low, length + 2 * DEPTH - low
        first = (DEPTH, cells[axis])[side]
        if ghost:
            first += (-DEPTH, DEPTH)[side]
        bounds[face, 2 - axis] = first, first + DEPTH
    return bounds.reshape(FACES, 6)


def table() -> NDArray[np.int64]:
    """``field_table`` in the form for the functions here."""
    rows = np.zeros((len(EXCHANGES), 1 + max(map(len, EXCHANGES))), dtype=np.int64)
    for line, fields in zip(rows, EXCHANGES, strict=True):
        line[0] = len(fields)
        line[1 : 1 + len(fields)] = fields
    return rows


def volume(box: Any) -> int:
    """Cells of a box."""
    return int((box[1] - box[0]) * (box[3] - box[2]) * (box[5] - box[4]))


def pack_face(fields: Any, field_table: Any, phase: int, box: Any, buffer: Any) -> None:
    """Copy the fields in a box to a buffer."""
    size = volume(box)
    for n in range(field_table[phase, 0]):
        pack(fields[field_table[phase, n + 1]], box, buffer[n * size :])


def unpack_face(fields: Any, field_table: Any, phase: int, box: Any, buffer: Any) -> None:
    """The inverse of :func:`pack_face`."""
    size = volume(box)
    for n in range(field_table[phase, 0]):
        unpack(fields[field_table[phase, n + 1]], box, buffer[n * size :])


def copy_face(
    fields: Any, others: Any, field_table: Any, phase: int, box: Any, ghosts: Any
) -> None:
    """Copy a box of the fields to a box of the same extents in another block's fields."""
    for n in range(field_table[phase, 0]):
        number = field_table[phase, n + 1]
        scale_box(fields[number], box, others[number], ghosts, 1.0)


def reflect_face(
    fields: Any, field_table: Any, phase: int, box: Any, ghosts: Any, signs: Any, axis: int
) -> None:
    """Fill the ghosts behind a wall; ``signs`` is float64[field][axis] (problem.reflection)."""
    for n in range(field_table[phase, 0]):
        number = field_table[phase, n + 1]
        scale_box(fields[number], box, fields[number], ghosts, signs[number, axis])


def scale_box(field: Any, box: Any, other: Any, ghosts: Any, factor: float) -> None:
    """Copy a box, times a factor, to a box of the same extents in another array."""
    z0, y0, x0 = np.uint64(box[0]), np.uint64(box[2]), np.uint64(box[4])
    planes, rows = np.uint64(box[1]) - z0, np.uint64(box[3]) - y0
    width = np.uint64(box[5]) - x0
    up, over, along = np.uint64(ghosts[0]), np.uint64(ghosts[2]), np.uint64(ghosts[4])
    z = ZERO
    while z < planes:
        source, target = field[z0 + z], other[up + z]
        if width == ONE:
            # A loop over single cells: at faces across x, rows of one cell would cost more.
            for k in range(rows):
                target[over + k, along] = factor * source[y0 + k, x0]
        else:
            y = ZERO
            while y < rows:
                row, ghost_row = source[y0 + y], target[over + y]
                for x in range(width):
                    ghost_row[along + x] = factor * row[x0 + x]
                y += ONE
        z += ONE
