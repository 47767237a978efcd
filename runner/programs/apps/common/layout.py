"""The cells of each rank: processes divide the grid, the ranks of a process divide its block.

In every variant the ranks of a process form a box (Martin 2018, appendix B, "cubic mapping"). So
the same options give the same parts with and without a shared grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.grid import (
    Shape,
    checked_grid,
    choose_grid,
    coordinates,
    cut_surface,
    fits,
    grids,
    neighbour,
    rank_at,
    show_shape,
    split,
)

Range = tuple[Shape, Shape]
"""First cell and end (excluded) along x, y, z."""


@dataclass(frozen=True)
class Face:
    """A face of a rank with a neighbour behind it; ``side`` is 0 low, 1 high."""

    axis: int
    side: int
    process: int
    local: int


@dataclass(frozen=True)
class Layout:
    """``processes`` and ``local``: parts of the grid and of each process's block along x, y, z.

    ``padding``: length of a message in multiples of its face, to vary the share of communication.
    """

    size: Shape
    processes: Shape
    local: Shape
    padding: int = 1

    def __str__(self) -> str:
        cut = show_shape(self.processes)
        return cut if self.local_count == 1 else f"{cut}, each process {show_shape(self.local)}"

    @property
    def local_count(self) -> int:
        return math.prod(self.local)

    def block(self, process: int) -> Range:
        """The cells of a process."""
        return cut_range(((0, 0, 0), self.size), self.processes, process)

    def part(self, process: int, local: int) -> Range:
        """The cells of a rank."""
        return cut_range(self.block(process), self.local, local)

    def faces(self, process: int, local: int) -> list[Face]:
        """The faces of a rank that are not on the boundary of the grid."""
        edges = [self._face(process, local, axis, side) for axis in range(3) for side in (0, 1)]
        return [face for face in edges if face is not None]

    def _face(self, process: int, local: int, axis: int, side: int) -> Face | None:
        step = 2 * side - 1
        place = coordinates(local, self.local)
        inside = neighbour(place, self.local, axis, step)
        if inside is not None:
            return Face(axis, side, process, inside)
        process_behind = neighbour(coordinates(process, self.processes), self.processes, axis, step)
        if process_behind is None:
            return None
        # In the process behind it, the near side: its last part for a step down, its first for a
        # step up.
        entry = self.local[axis] - 1 if side == 0 else 0
        across = rank_at((*place[:axis], entry, *place[axis + 1 :]), self.local)
        return Face(axis, side, process_behind, across)


def cut_range(cells: Range, grid: Shape, index: int) -> Range:
    """Part ``index`` of a box of cells divided by ``grid``."""
    start, stop = cells
    parts = [
        split(b - a, p, c)
        for a, b, p, c in zip(start, stop, grid, coordinates(index, grid), strict=True)
    ]
    return (
        tuple(a + low for a, (low, _) in zip(start, parts, strict=True)),
        tuple(a + high for a, (_, high) in zip(start, parts, strict=True)),
    )


def make_layout(
    size: Shape,
    processes: int,
    grid: Shape | None,
    parts: int,
    local: Shape | None,
    depth: int = 2,
    largest_face: int | None = None,
) -> Layout:
    """The layout; ``grid`` and ``local`` None: chosen by the smallest cut surface.

    Within a process x is not divided. ``depth`` is the number of ghost cells on every side; no part
    may be thinner. ``largest_face``: cells that a face between processes should have at most.
    Raises :class:`AppUsageError`.
    """
    outer = checked_grid(size, processes, depth, grid)
    if local is None:
        return Layout(size, outer, local_grid(size, outer, parts, depth, largest_face))
    whole = tuple(p * q for p, q in zip(outer, local, strict=True))
    if not fits(size, whole, depth):
        raise AppUsageError(
            f"--local-grid {show_shape(local)} in a process grid of {show_shape(outer)} cuts "
            f"{show_shape(size)} cells too finely: every part of a cut axis needs at least {depth} "
            "cells; use fewer parts or a larger size",
            code="app_option.not_applicable",
        )
    return Layout(size, outer, local)


def local_grid(
    size: Shape, outer: Shape, parts: int, depth: int, largest_face: int | None = None
) -> Shape:
    """The division of a process's block; x stays whole if possible, because its rows are
    contiguous.

    ``largest_face``: cells that a face between processes should have at most; if no division has
    such faces, that with the smallest ones is taken.
    """
    block = tuple(n // p for n, p in zip(size, outer, strict=True))
    if largest_face is not None and math.prod(outer) > 1:
        possible = [g for rest in grids(parts, 2) if fits(block, g := (1, *rest), depth)]
        if possible:
            return min(
                possible, key=lambda g: (_beyond(block, outer, g, largest_face), *_cost(block, g))
            )
    try:
        return (1, *choose_grid(block[1:], parts, depth))
    except AppUsageError:
        pass
    try:
        return choose_grid(block, parts, depth)
    except AppUsageError:
        raise AppUsageError(
            f"{parts} ranks per process are too many for {show_shape(size)} cells in a process "
            f"grid of {show_shape(outer)}: every part of a cut axis needs at least {depth} cells",
            code="app_option.ranks",
        ) from None


def _beyond(block: Shape, outer: Shape, local: Shape, largest: int) -> int:
    """Cells by which the smallest face between processes is above a limit; 0 if it is not."""
    edges = [n // p for n, p in zip(block, local, strict=True)]
    volume = math.prod(edges)
    smallest = min(volume // edge for edge, p in zip(edges, outer, strict=True) if p > 1)
    return max(smallest - largest, 0)


def _cost(block: Shape, local: Shape) -> tuple[int, Shape]:
    return cut_surface(block, local), local
