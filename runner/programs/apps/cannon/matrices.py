"""The matrices of Cannon's algorithm: their entries, their blocks, and the check of the product.

Entries are small multiples of 1/8 without any symmetry. Every product and sum is exact, so a right
result is right to the last bit in any order of additions. A transposed or swapped factor is
noticed, unlike with the symmetric matrices of the original (Martin 2018, chapter 6).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.grid import Shape, coordinates, grids, rank_at, show_shape

Matrix = NDArray[np.float64]
FULL = 1024
"""Largest size at which every entry is compared; above it, products with a vector are compared."""


def a_entries(rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Matrix:
    """Entries of A."""
    return np.asarray(((3 * rows[:, None] + 5 * columns[None, :]) % 11 - 5) / 8.0)


def b_entries(rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Matrix:
    """Entries of B."""
    return np.asarray(((7 * rows[:, None] + 2 * columns[None, :]) % 13 - 6) / 8.0)


@dataclass(frozen=True)
class Layout:
    """The blocks of an N x N matrix: L x L of them, distributed over ``processes``.

    ``processes`` = (P, Q) in rows and columns; each process has ``local`` = (L / P, L / Q) blocks.
    Block (x, y) of C is computed where A(x, k) meets B(k, y), k = (x + y + step) mod L.
    """

    size: int
    processes: Shape
    local: Shape

    @property
    def blocks(self) -> int:
        """L: the number of blocks along each side, and of steps of one multiplication."""
        return self.processes[0] * self.local[0]

    @property
    def width(self) -> int:
        """Number of rows and columns of a block."""
        return self.size // self.blocks

    @property
    def local_count(self) -> int:
        return math.prod(self.local)

    def place(self, process: int) -> Shape:
        """Row and column of a process; columns run fastest."""
        column, row = coordinates(process, (self.processes[1], self.processes[0]))
        return row, column

    def process_at(self, row: int, column: int) -> int:
        """The process at this row and column; the grid is a torus."""
        rows, columns = self.processes
        return rank_at((column % columns, row % rows), (columns, rows))

    def first(self, process: int) -> tuple[int, int]:
        """Row and column of a process's first block."""
        row, column = self.place(process)
        return row * self.local[0], column * self.local[1]

    def span(self, block: int) -> NDArray[np.int64]:
        """The rows (or columns) of block ``block``, with wrap-around."""
        start = (block % self.blocks) * self.width
        return np.arange(start, start + self.width)

    def a_block(self, x: int, y: int) -> Matrix:
        """The block of A with which block (x, y) of C starts."""
        return np.ascontiguousarray(a_entries(self.span(x), self.span(x + y)))

    def b_block(self, x: int, y: int) -> Matrix:
        """The block of B with which block (x, y) of C starts."""
        return np.ascontiguousarray(b_entries(self.span(x + y), self.span(y)))


def make_layout(size: int, processes: int, grid: Shape | None, local_count: int | None) -> Layout:
    """The layout for a number of processes.

    The process grid is ``grid``, or the squarest one. Each process has ``local_count`` blocks, or
    as few as possible. Raises AppUsageError if these do not form a square of blocks that divides
    the matrix.
    """
    possible = (
        [grid] if grid is not None else sorted(grids(processes, 2), key=lambda g: abs(g[0] - g[1]))
    )
    for rows, columns in possible:
        if rows * columns != processes:
            raise AppUsageError(
                f"--grid {show_shape((rows, columns))} is for {rows * columns} processes, there "
                f"are {processes}",
                code="app_option.size",
            )
        least = math.lcm(rows, columns)
        side = least if local_count is None else math.isqrt(local_count * processes)
        square = local_count is None or side * side == local_count * processes
        if square and side % least == 0 and size % side == 0:
            return Layout(size, (rows, columns), (side // rows, side // columns))
    many = "" if local_count is None else f" with {local_count} ranks each"
    raise AppUsageError(
        f"{processes} processes{many} cannot share a {size} x {size} matrix in equal square "
        "blocks: the number of all ranks must be a square whose root is a multiple of both sides "
        "of the process grid and divides the size",
        code="app_option.ranks",
    )


def checksum(comm: Any, layout: Layout, c: dict[tuple[int, int], Matrix]) -> float:
    """The sum of v[i] w[j] C[i, j] for two vectors of small integers; it is exact.

    Collective; the same on every rank.
    """
    mine = 0.0
    for (x, y), block in c.items():
        v, w = 7 * layout.span(x) % 15 - 7, 5 * layout.span(y) % 13 - 6
        mine += float(v @ block @ w)
    return math.fsum(comm.allgather(mine))


def verify(comm: Any, layout: Layout, c: dict[tuple[int, int], Matrix], times: int) -> str:
    """Compare the blocks of C (by block row and column) with ``times`` A B; "" if they are right.

    Collective; the answer is the same on every rank.
    """
    message = (
        _all_entries(layout, c, times) if layout.size <= FULL else _vector(comm, layout, c, times)
    )
    return next((text for text in comm.allgather(message) if text), "")


def _all_entries(layout: Layout, c: dict[tuple[int, int], Matrix], times: int) -> str:
    every = np.arange(layout.size)
    for (x, y), block in sorted(c.items()):
        rows, columns = layout.span(x), layout.span(y)
        reference = times * (a_entries(rows, every) @ b_entries(every, columns))
        if not np.array_equal(block, reference):
            i, j = np.argwhere(block != reference)[0]
            return (
                f"C[{rows[i]}, {columns[j]}] is {block[i, j]!r}, expected {reference[i, j]!r} "
                f"(block {x}, {y})"
            )
    return ""


def _vector(comm: Any, layout: Layout, c: dict[tuple[int, int], Matrix], times: int) -> str:
    """Compare C v with ``times`` A (B v) for a vector v; a wrong entry changes C v (Freivalds)."""
    every = np.arange(layout.size)
    v = (7 * every % 15 - 7).astype(np.float64)
    share = np.array_split(every, comm.size)[comm.rank]
    bv = np.concatenate(comm.allgather(b_entries(share, every) @ v))
    reference = times * np.concatenate(comm.allgather(a_entries(share, every) @ bv))
    own_product = np.zeros(layout.size)
    for (x, y), block in c.items():
        own_product[layout.span(x)] += block @ v[layout.span(y)]
    total = np.empty_like(own_product)
    comm.Allreduce(own_product, total)
    wrong = np.flatnonzero(total != reference)
    return (
        f"row {wrong[0]} of C v is {total[wrong[0]]!r}, expected {reference[wrong[0]]!r}"
        if len(wrong)
        else ""
    )
