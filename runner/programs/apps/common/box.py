"""Boxes of cells in the indices of an array [z][y][x] with ghost cells; faces and parts of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from runner.programs.apps.common.grid import Shape, coordinates, split

Box = tuple[int, int, int, int, int, int]
"""z0, z1, y0, y1, x0, x1 in indices of the array, upper bounds excluded."""

Bounds = list[tuple[int, int]]
"""The bounds of a box along x, y, z."""


def box_cells(box: Box) -> int:
    """The number of cells of a box."""
    z0, z1, y0, y1, x0, x1 = box
    return math.prod((z1 - z0, y1 - y0, x1 - x0))


def bounds_of(box: Box) -> Bounds:
    z0, z1, y0, y1, x0, x1 = box
    return [(x0, x1), (y0, y1), (z0, z1)]


def box_within(bounds: Sequence[tuple[int, int]]) -> Box:
    """The inverse of :func:`bounds_of`."""
    (x0, x1), (y0, y1), (z0, z1) = bounds
    return (z0, z1, y0, y1, x0, x1)


def box_of(start: Shape, stop: Shape, origin: Shape, depth: int) -> Box:
    """Cells of the grid (x, y, z; stop excluded) as a box of an array.

    The array's first cell without its ``depth`` ghosts is the cell ``origin`` of the grid.
    """
    return box_within(
        [(a - o + depth, b - o + depth) for a, b, o in zip(start, stop, origin, strict=True)]
    )


def face_of(box: Box, axis: int, side: int, ghost: bool, depth: int) -> Box:
    """The ``depth`` layers at a face (``side`` 0 low, 1 high) of a box, or just outside it."""
    bounds = bounds_of(box)
    low, high = bounds[axis]
    first = low - (depth if ghost else 0) if side == 0 else high - (0 if ghost else depth)
    bounds[axis] = (first, first + depth)
    return box_within(bounds)


def shift(box: Box, planes: int) -> Box:
    """The same box, ``planes`` planes further along z."""
    z0, z1, y0, y1, x0, x1 = box
    return z0 + planes, z1 + planes, y0, y1, x0, x1


def cut(box: Box, grid: Shape) -> list[Box]:
    """The box in parts, in the order of :func:`coordinates`; parts without cells are left out."""
    bounds = bounds_of(box)
    parts = []
    for index in range(math.prod(grid)):
        ranges = [
            split(high - low, p, c)
            for (low, high), p, c in zip(bounds, grid, coordinates(index, grid), strict=True)
        ]
        parts.append(
            box_within(
                [(low + a, low + b) for (low, _), (a, b) in zip(bounds, ranges, strict=True)]
            )
        )
    return [part for part in parts if box_cells(part)]


def split_phase(box: Box, faces: Sequence[tuple[int, int]], depth: int) -> tuple[Box, list[Box]]:
    """The cells that need no ghosts behind these faces (axis, side), and the other cells as slabs.

    A stencil reaches ``depth`` cells. The inner box may be empty; the slabs do not overlap.
    """
    bounds = bounds_of(box)
    slabs = []
    for axis, side in faces:
        low, high = bounds[axis]
        edge = min(low + depth, high) if side == 0 else max(high - depth, low)
        near, far = ((low, edge), (edge, high))
        slab, bounds[axis] = (near, far) if side == 0 else (far, near)
        slabs.append(box_within([*bounds[:axis], slab, *bounds[axis + 1 :]]))
    return box_within(bounds), [slab for slab in slabs if box_cells(slab)]
