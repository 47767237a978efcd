"""The multi-partition of SP and BT (NPB 3.4-MPI: ``make_set``).

p x p ranks divide the cube into p x p x p cells. A rank has p cells on a diagonal: one in every
layer of every axis, so that all ranks work in every step of a sweep. Along an axis all cells of a
rank have their neighbours on the same two ranks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.grid import split
from runner.programs.nas.common.grid import square_side

GHOSTS = 2
SMALLEST = 3
"""Smallest number of points of a cell along any axis."""
Field = NDArray[np.float64]
Three = tuple[int, int, int]


@dataclass(frozen=True)
class Cell:
    """A cell: ``place`` in the cube of cells, first point and number of points, each as x, y, z.

    Its fields are [z][y][x][5] with two ghosts on every side.
    """

    place: Three
    start: Three
    points: Three
    side: int

    @property
    def shape(self) -> tuple[int, int, int, int]:
        nx, ny, nz = self.points
        return nz + 2 * GHOSTS, ny + 2 * GHOSTS, nx + 2 * GHOSTS, 5

    def first(self, axis: int) -> bool:
        return self.place[axis] == 0

    def last(self, axis: int) -> bool:
        return self.place[axis] == self.side - 1

    def inner(self, axis: int) -> tuple[int, int]:
        """First and end index, in a field, of points that are not on the cube's faces."""
        return GHOSTS + self.first(axis), GHOSTS + self.points[axis] - self.last(axis)

    def coordinates(self, size: int) -> tuple[Field, Field, Field]:
        """x, y and z of all points of a field, ghosts included, from 0 to 1."""
        x, y, z = (
            (np.arange(-GHOSTS, n + GHOSTS) + first) / (size - 1)
            for first, n in zip(self.start, self.points, strict=True)
        )
        return x, y, z


@dataclass(frozen=True)
class Partition:
    """The cells of one rank by rising z, and its neighbours along x, y and z."""

    size: int
    side: int
    cells: tuple[Cell, ...]
    predecessors: Three
    successors: Three

    def sweep(self, axis: int) -> list[int]:
        """Numbers of the cells in the order of their position along an axis."""
        return sorted(range(self.side), key=lambda n: self.cells[n].place[axis])

    @property
    def widest(self) -> int:
        """Points of the largest cell, counted as in the original's message sizes."""
        return self.size // self.side + 1


def partition(kernel: str, size: int, ranks: int, rank: int) -> Partition:
    """The partition; raises :class:`AppUsageError` if ranks are not a square, or for small
    cells."""
    p = square_side(kernel, ranks)
    if size // p < SMALLEST:
        raise AppUsageError(
            f"nas {kernel} on {ranks} ranks cuts {size} points per axis into {p} parts of less "
            f"than {SMALLEST}: use fewer ranks or a larger class",
            code="app_option.ranks",
        )
    j, i = divmod(rank, p)
    cells = []
    for layer in range(p):
        place = ((i + layer) % p, (j - layer) % p, layer)
        bounds = [split(size, p, n) for n in place]
        (x0, x1), (y0, y1), (z0, z1) = bounds
        cells.append(Cell(place, (x0, y0, z0), (x1 - x0, y1 - y0, z1 - z0), p))
    low, high, left, right = (i - 1) % p, (i + 1) % p, (j - 1) % p, (j + 1) % p
    return Partition(
        size,
        p,
        tuple(cells),
        predecessors=(low + p * j, i + p * left, high + p * left),
        successors=(high + p * j, i + p * right, low + p * right),
    )
