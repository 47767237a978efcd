"""The messages of one rank: buffers, bound copies, and the part of the buffer for each message.

A star stencil reads no edges or corners. So each face is one message of two layers of cells, and
all six messages are independent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from runner.apps.common_grid import Shape, coordinates, split
from runner.apps.jacobi3d.block import Block, Box
from runner.apps.jacobi3d.problem import DEPTH

Message = tuple[NDArray[np.float64], int, int]
"""Part of a buffer, the other rank, the tag."""


def box_cells(box: Box) -> int:
    z0, z1, y0, y1, x0, x1 = box
    return math.prod((z1 - z0, y1 - y0, x1 - x0))


def face_of(box: Box, axis: int, side: int, ghost: bool) -> Box:
    """The two layers of cells at a face (``side`` 0 low, 1 high) of a box, or just outside it."""
    bounds = _bounds(box)
    low, high = bounds[axis]
    first = low - (DEPTH if ghost else 0) if side == 0 else high - (0 if ghost else DEPTH)
    bounds[axis] = (first, first + DEPTH)
    return _box(bounds)


def cut(box: Box, grid: Shape) -> list[Box]:
    """The box in parts, in the order of :func:`coordinates`; parts without cells are left out."""
    bounds = _bounds(box)
    parts = []
    for index in range(math.prod(grid)):
        ranges = [
            split(high - low, p, c)
            for (low, high), p, c in zip(bounds, grid, coordinates(index, grid), strict=True)
        ]
        parts.append(
            _box([(low + a, low + b) for (low, _), (a, b) in zip(bounds, ranges, strict=True)])
        )
    return [part for part in parts if box_cells(part)]


def split_phase(box: Box, faces: Sequence[tuple[int, int]]) -> tuple[Box, list[Box]]:
    """The cells that need no ghosts behind these faces (axis, side), and the other cells as slabs.

    The inner box may be empty; the slabs do not overlap.
    """
    bounds = _bounds(box)
    slabs = []
    for axis, side in faces:
        low, high = bounds[axis]
        edge = min(low + DEPTH, high) if side == 0 else max(high - DEPTH, low)
        near, far = ((low, edge), (edge, high))
        slab, bounds[axis] = (near, far) if side == 0 else (far, near)
        slabs.append(_box([*bounds[:axis], slab, *bounds[axis + 1 :]]))
    return _box(bounds), [slab for slab in slabs if box_cells(slab)]


def _bounds(box: Box) -> list[tuple[int, int]]:
    z0, z1, y0, y1, x0, x1 = box
    return [(x0, x1), (y0, y1), (z0, z1)]


def _box(bounds: Sequence[tuple[int, int]]) -> Box:
    (x0, x1), (y0, y1), (z0, z1) = bounds
    return (z0, z1, y0, y1, x0, x1)


class Faces:
    """Messages of the cells ``box`` of a block over ``remote`` faces (axis, side, other rank).

    ``pack[f]`` and ``unpack[f]`` copy between field ``f`` and the buffers. ``own`` and ``ghosts``
    are the boxes that ``sends`` and ``receives`` carry, in this order; each message is ``padding``
    times as long as its face.
    """

    def __init__(
        self, block: Block, box: Box, remote: Sequence[tuple[int, int, int]], padding: int = 1
    ) -> None:
        self.own = [face_of(box, axis, side, ghost=False) for axis, side, _ in remote]
        self.ghosts = [face_of(box, axis, side, ghost=True) for axis, side, _ in remote]
        lengths = [padding * box_cells(face) for face in self.own]
        starts = [sum(lengths[:n]) for n in range(len(lengths))]
        outgoing, incoming = np.zeros(sum(lengths)), np.zeros(sum(lengths))
        self.bytes = outgoing.nbytes
        self.pack = block.copier("pack", outgoing, zip(starts, self.own, strict=True))
        self.unpack = block.copier("unpack", incoming, zip(starts, self.ghosts, strict=True))
        # A message is named by the face of its sender: a message that arrives at my low face left
        # the neighbour through its high face.
        self.sends: list[Message] = []
        self.receives: list[Message] = []
        for (axis, side, rank), a, n in zip(remote, starts, lengths, strict=True):
            self.sends.append((outgoing[a : a + n], rank, 2 * axis + side))
            self.receives.append((incoming[a : a + n], rank, 2 * axis + 1 - side))
