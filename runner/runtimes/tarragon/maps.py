"""Maps: the places of tasks in a grid, and how they are numbered (Cicotti 2011, Table 3.4).

If a distribution divides the numbers into ranges, the numbering decides which tasks share a
process: row by row gives slabs, block by block gives boxes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

from runner.runtimes.tarragon.errors import GraphError

Coordinates = tuple[int, ...]


class Map:
    """Numbers 0..size-1 and their places in a grid of ``shape``; the last axis runs fastest."""

    def __init__(self, shape: Sequence[int]) -> None:
        if not shape or any(extent < 1 for extent in shape):
            raise GraphError(
                f"a map of shape {tuple(shape)}: expected extents of 1 or more",
                code="tarragon.graph",
            )
        self.shape = tuple(shape)

    @property
    def size(self) -> int:
        """Number of places."""
        return math.prod(self.shape)

    def coordinates(self, task: int) -> Coordinates:
        """The place of a task; raises :class:`GraphError` if it does not exist."""
        if not self.in_map(task):
            raise GraphError(
                f"task {task}: expected a number from 0 to {self.size - 1}", code="tarragon.graph"
            )
        return self._place(task)

    def index(self, coordinates: Sequence[int]) -> int:
        """The task at a place (``coordinate_index``)."""
        inside = len(coordinates) == len(self.shape) and all(
            0 <= at < extent for at, extent in zip(coordinates, self.shape, strict=True)
        )
        if not inside:
            raise GraphError(
                f"place {tuple(coordinates)} is not in a map of shape {self.shape}",
                code="tarragon.graph",
            )
        return self._number(tuple(coordinates))

    def in_map(self, task: int) -> bool:
        """True if the task exists."""
        return 0 <= task < self.size

    def next(self, task: int, axis: int = 0, periodic: bool = False) -> int | None:
        """The neighbour towards higher coordinates; None at the end, unless it is ``periodic``."""
        return self.at(task, axis, 1, periodic)

    def prev(self, task: int, axis: int = 0, periodic: bool = False) -> int | None:
        """The neighbour towards lower coordinates, as :meth:`next`."""
        return self.at(task, axis, -1, periodic)

    def at(self, task: int, axis: int, step: int, periodic: bool = False) -> int | None:
        """The task ``step`` places away along an axis; None if there is none."""
        place = list(self.coordinates(task))
        place[axis] += step
        if periodic:
            place[axis] %= self.shape[axis]
        elif not 0 <= place[axis] < self.shape[axis]:
            return None
        return self._number(tuple(place))

    def _place(self, task: int) -> Coordinates:
        return _digits(task, self.shape)

    def _number(self, place: Coordinates) -> int:
        return _number_of(place, self.shape)


class IdentityMap(Map):
    """Tasks on a line."""

    def __init__(self, size: int) -> None:
        super().__init__((size,))


class CartesianMap(Map):
    """Tasks row by row: consecutive numbers are slabs (Fig. B.8)."""


class BlockingCartesianMap(Map):
    """Tasks block by block: consecutive numbers are boxes (Fig. B.9).

    ``blocks``: how many blocks along each axis.  Blocks differ by at most one place in an extent.
    """

    def __init__(self, shape: Sequence[int], blocks: Sequence[int]) -> None:
        super().__init__(shape)
        fit = len(blocks) == len(self.shape) and all(
            1 <= count <= extent for count, extent in zip(blocks, self.shape, strict=True)
        )
        if not fit:
            raise GraphError(
                f"blocks {tuple(blocks)} of a map of shape {self.shape}: expected one number for "
                "each axis, from 1 to its extent",
                code="tarragon.graph",
            )
        self.blocks = tuple(blocks)
        self._places: list[Coordinates] = []
        for block in product(*[range(count) for count in self.blocks]):
            bounds = [
                part(extent, count, at)
                for extent, count, at in zip(self.shape, self.blocks, block, strict=True)
            ]
            self._places += product(*[range(low, high) for low, high in bounds])
        self._numbers = {place: number for number, place in enumerate(self._places)}

    def _place(self, task: int) -> Coordinates:
        return self._places[task]

    def _number(self, place: Coordinates) -> int:
        return self._numbers[place]


class Space:
    """The cells of a grid, divided into one part for each place of a map.

    ``widths``: for each axis the number of cells of each part (``RectilinearSpace``).
    """

    def __init__(self, widths: Sequence[Sequence[int]]) -> None:
        if not widths or any(not axis or any(w < 1 for w in axis) for axis in widths):
            raise GraphError(
                "a space: expected widths of 1 or more along each axis", code="tarragon.graph"
            )
        self.widths = tuple(tuple(axis) for axis in widths)

    @classmethod
    def uniform(cls, cells: Sequence[int], parts: Sequence[int]) -> Space:
        """Parts of nearly equal size (``CartesianSpace``); the first ones have one cell more."""
        if len(cells) != len(parts) or any(p < 1 or p > c for c, p in zip(cells, parts)):  # noqa: B905
            raise GraphError(
                f"{tuple(cells)} cells in {tuple(parts)} parts: expected one number of parts for "
                "each axis, at most one part for each cell",
                code="tarragon.graph",
            )
        bounds = [[part(c, p, n) for n in range(p)] for c, p in zip(cells, parts, strict=True)]
        return cls([[high - low for low, high in axis] for axis in bounds])

    @property
    def shape(self) -> Coordinates:
        """Number of parts along each axis."""
        return tuple(len(axis) for axis in self.widths)

    @property
    def cells(self) -> Coordinates:
        """Number of cells along each axis."""
        return tuple(sum(axis) for axis in self.widths)

    def bounds(self, place: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """First cell and end of a part, for each axis."""
        pairs = []
        for axis, at in zip(self.widths, place, strict=True):
            low = sum(axis[:at])
            pairs.append((low, low + axis[at]))
        return tuple(pairs)


def part(cells: int, parts: int, number: int) -> tuple[int, int]:
    """First cell and end of a part; the first ``cells % parts`` parts have one cell more."""
    small, larger = divmod(cells, parts)
    low = number * small + min(number, larger)
    return low, low + small + (number < larger)


def _digits(number: int, shape: Coordinates) -> Coordinates:
    place = []
    for extent in reversed(shape):
        number, digit = divmod(number, extent)
        place.append(digit)
    return tuple(reversed(place))


def _number_of(place: Coordinates, shape: Coordinates) -> int:
    number = 0
    for at, extent in zip(place, shape, strict=True):
        number = number * extent + at
    return number
