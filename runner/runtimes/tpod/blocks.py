"""Over-decomposition: a box of cells divided into blocks, and the neighbours of blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass

Shape = tuple[int, int, int]
"""Along x, y, z."""
Bounds = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
"""First cell and the end, along x, y, z."""


@dataclass(frozen=True)
class Blocks:
    """A box of ``cells`` divided into ``grid`` blocks; they are numbered with x fastest."""

    cells: Shape
    grid: Shape

    @property
    def count(self) -> int:
        """Number of blocks."""
        return math.prod(self.grid)

    def place(self, number: int) -> Shape:
        """The place of a block in the grid of blocks."""
        x, y, _ = self.grid
        return number % x, number // x % y, number // (x * y)

    def number(self, place: Shape) -> int:
        """The inverse of :meth:`place`."""
        x, y, _ = self.grid
        return place[0] + x * (place[1] + y * place[2])

    def bounds(self, number: int) -> Bounds:
        """The cells of a block; those of an axis differ by at most one."""
        along = zip(self.cells, self.grid, self.place(number), strict=True)
        x, y, z = ((n * at // parts, n * (at + 1) // parts) for n, parts, at in along)
        return x, y, z

    def neighbour(self, number: int, axis: int, side: int) -> int | None:
        """The block behind a face (``side`` 0 low, 1 high); None at the border of the box."""
        place = list(self.place(number))
        place[axis] += 2 * side - 1
        if not 0 <= place[axis] < self.grid[axis]:
            return None
        return self.number((place[0], place[1], place[2]))

    def across(self, number: int, axis: int, side: int) -> int:
        """The block of an equal box behind the border that would be behind a face of this block."""
        place = list(self.place(number))
        place[axis] = self.grid[axis] - 1 if side == 0 else 0
        return self.number((place[0], place[1], place[2]))

    def neighbours(self, number: int) -> list[int]:
        """The blocks behind all faces."""
        faces = ((axis, side) for axis in range(3) for side in (0, 1))
        behind_faces = (self.neighbour(number, axis, side) for axis, side in faces)
        return [block for block in behind_faces if block is not None]

    def depth(self, number: int, faces: list[tuple[int, int]]) -> int:
        """Blocks between a block and the nearest of some faces (axis, side) of the box."""
        place = self.place(number)
        distances = [
            place[axis] if side == 0 else self.grid[axis] - 1 - place[axis] for axis, side in faces
        ]
        return min(distances, default=self.count)


def over_decompose(cells: Shape, edge: Shape) -> Blocks:
    """Divide a box into blocks of about these edges (Barrett et al., ``Over_decompose``).

    An edge of 0 leaves its axis whole. If an edge does not divide the axis, the blocks are as equal
    as possible, so no cell is lost.
    """
    x, y, z = (max(1, round(n / e)) if e > 0 else 1 for n, e in zip(cells, edge, strict=True))
    return Blocks(cells, (x, y, z))
