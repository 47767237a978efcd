"""The mesh: cells around a solid in Morton order, its coarser levels, and the owners of cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from runner.programs.apps.common.errors import AppUsageError

Ids = NDArray[np.int64]
LEVELS = 3
FAMILY = 8 ** (LEVELS - 1)
"""Largest number of fine cells of one coarsest cell."""
CUT_WORK = 96
"""Steps of extra work in each update of a cut cell, whose geometry is computed every time.

At 64 cubed, the half of the curve with the body then takes about 1.4 times as long as the mean.
"""


def morton(x: Ids, y: Ids, z: Ids) -> Ids:
    """Positions along the space-filling curve."""
    key = np.zeros_like(x)
    for bit in range(20):
        for axis, c in enumerate((x, y, z)):
            key |= ((c >> bit) & 1) << (3 * bit + axis)
    return key


@dataclass(frozen=True)
class Level:
    """One level: coordinates of its cells in the order of the curve.

    ``neighbours`` [cell][6] are ids of cells, -1 beyond the boundary. ``parents`` are ids of the
    next level. ``work`` is the extra work of each cell compared with a plain cell.
    """

    width: int
    coordinates: Ids
    neighbours: Ids
    parents: Ids
    work: Ids

    @property
    def count(self) -> int:
        return len(self.coordinates)


@dataclass(frozen=True)
class Mesh:
    """A mesh of ``width`` cubed cells, except those inside the solid; level 0 is the finest.

    ``cut_work``: steps of extra work in each update of a cut cell.
    """

    width: int
    cut_work: int = CUT_WORK

    def __post_init__(self) -> None:
        least = 4 * 2 ** (LEVELS - 1)
        if self.width < least or self.width % 2 ** (LEVELS - 1):
            raise AppUsageError(
                f"--width {self.width}: expected a multiple of {2 ** (LEVELS - 1)}, from {least} "
                "on",
                code="app_option.invalid",
            )

    @cached_property
    def levels(self) -> list[Level]:
        """All levels, the finest first."""
        levels: list[Level] = []
        open_cells = self._open(self.width)
        grids = [open_cells]
        for _ in range(LEVELS - 1):
            fine = grids[-1]
            half = len(fine) // 2
            families = fine.reshape(half, 2, half, 2, half, 2)
            grids.append(np.logical_or.reduce(families, axis=(1, 3, 5)))
        numbers = [_number(grid) for grid in grids]
        for depth, (grid, (coordinates, ids)) in enumerate(zip(grids, numbers, strict=True)):
            above = numbers[depth + 1][1] if depth + 1 < LEVELS else None
            x, y, z = coordinates.T
            parents = (
                np.full(len(coordinates), -1) if above is None else above[x // 2, y // 2, z // 2]
            )
            neighbours = _neighbours(coordinates, ids)
            work = np.zeros(len(coordinates), dtype=np.int64)
            if depth == 0:
                work[self._cut(grid)[x, y, z]] = self.cut_work
            levels.append(Level(len(grid), coordinates, neighbours, parents, work))
        return levels

    @staticmethod
    def _open(width: int) -> NDArray[np.bool_]:
        """Cells outside of a flat swept body in a corner of the box, so that the work is uneven."""
        x, y, z = (np.indices((width,) * 3) + 0.5) / width
        body = ((x - 0.35 - 0.2 * y) / 0.3) ** 2 + ((z - 0.25) / 0.12) ** 2 + (y / 0.8) ** 2 < 1
        return np.asarray(~body, dtype=np.bool_)

    @staticmethod
    def _cut(grid: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Cells at the surface of the solid."""
        outer = np.pad(grid, 1, constant_values=True)
        inner = slice(1, -1)
        neighbour_grids = [
            outer[tuple(slice(1 + s, len(outer) - 1 + s) if a == axis else inner for a in range(3))]
            for axis in range(3)
            for s in (-1, 1)
        ]
        return np.asarray(grid & ~np.logical_and.reduce(neighbour_grids), dtype=np.bool_)

    def shares(self, ranks: int) -> list[Ids]:
        """For each level the owner of each cell.

        Each rank has an equal number of consecutive fine cells; all fine cells of a coarsest cell
        have the same owner. Raises AppUsageError for too many ranks.
        """
        fine, coarsest = self.levels[0], self.levels[-1]
        if ranks > coarsest.count:
            raise AppUsageError(
                f"{ranks} ranks are too many for {coarsest.count} coarsest cells; take a larger "
                "--width or fewer ranks",
                code="app_option.ranks",
            )
        ancestor = np.arange(fine.count)
        for level in self.levels[:-1]:
            ancestor = level.parents[ancestor]
        sizes = np.bincount(ancestor, minlength=coarsest.count)
        middle = np.cumsum(sizes) - sizes / 2
        owner = np.minimum((middle * ranks / fine.count).astype(np.int64), ranks - 1)
        # Every rank gets at least one coarsest cell, despite rounding.
        least, most = np.arange(coarsest.count), np.arange(coarsest.count)[::-1]
        owner = np.minimum(owner, least)
        owner = np.maximum(owner, ranks - 1 - most)
        owners = [owner]
        for level in self.levels[-2::-1]:
            owners.insert(0, owners[0][level.parents])
        return owners


def _number(grid: NDArray[np.bool_]) -> tuple[Ids, Ids]:
    """Coordinates along the curve, and ids by coordinates (-1: no cell)."""
    coordinates = np.argwhere(grid)
    order = np.argsort(morton(*coordinates.T), kind="stable")
    coordinates = coordinates[order]
    ids = np.full(grid.shape, -1, dtype=np.int64)
    ids[tuple(coordinates.T)] = np.arange(len(coordinates))
    return coordinates, ids


def _neighbours(coordinates: Ids, ids: Ids) -> Ids:
    outer = np.pad(ids, 1, constant_values=-1)
    table = np.empty((len(coordinates), 6), dtype=np.int64)
    for place, (axis, step) in enumerate((a, s) for a in range(3) for s in (-1, 1)):
        targets = coordinates + 1
        targets[:, axis] += step
        table[:, place] = outer[tuple(targets.T)]
    return table
