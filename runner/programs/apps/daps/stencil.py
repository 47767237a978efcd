"""The five-point stencil on a square, with faces exchanged while the inner part is computed.

A rank has a rectangle of cells with a layer of ghost cells; left and right faces have gaps
(Ouyang 3.5.3).  The order of the operations on a cell does not depend on the ranks, so the result
has the same bits as that of a serial run.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.programs.apps.daps.options import Options
from runner.programs.apps.daps.programs import Seconds, duration
from runner.runtimes.intranode.daps import Daps

Field = NDArray[Any]
Memory = dict[tuple[int, ...], tuple[Field, Field]]
"""Shared arrays by their shape: they are not freed before the end."""
_SMALL, _SMALL_STEPS = 48, 7
"""Cells and steps of the square for the comparison with a serial run."""
_LARGEST_COMPARISON = 1024
"""Largest number of cells along a side for which the run itself is compared, too."""
_SIDES = ((-1, 0), (1, 0), (0, -1), (0, 1))


def start_values(cells: int) -> Field:
    """The square before the first step, with its border of zeros."""
    field = np.zeros((cells + 2, cells + 2))
    field[1:-1, 1:-1] = np.random.default_rng(cells).random((cells, cells))
    return field


def step(new: Field, old: Field, rows: slice, columns: slice) -> None:
    """Compute these rows and columns of cells; the first cell is number 1."""

    def near(row: int, column: int) -> Field:
        return old[
            rows.start + row : rows.stop + row, columns.start + column : columns.stop + column
        ]

    new[rows, columns] = 0.25 * ((near(-1, 0) + near(1, 0)) + (near(0, -1) + near(0, 1)))


def serial(cells: int, steps: int) -> Field:
    """The square after ``steps`` steps."""
    old = start_values(cells)
    new = old.copy()
    for _ in range(steps):
        step(new, old, slice(1, cells + 1), slice(1, cells + 1))
        old, new = new, old
    return old[1:-1, 1:-1]


def grid(ranks: int) -> tuple[int, int]:
    """Rows and columns of ranks, as square as possible."""
    rows = next(n for n in range(int(ranks**0.5), 0, -1) if ranks % n == 0)
    return rows, ranks // rows


class Square:
    """A rank's rectangle of a square of cells, under the present configuration."""

    def __init__(self, daps: Daps, cells: int, memory: Memory) -> None:
        self._daps = daps
        self._place = daps.users.index(daps.rank)
        self._rows, self._columns = grid(len(daps.users))
        row, column = divmod(self._place, self._columns)
        self._at = row, column
        bounds = [
            [cells * n // parts for n in range(parts + 1)] for parts in (self._rows, self._columns)
        ]
        (top, bottom), (left, right) = (
            bounds[axis][n : n + 2] for axis, n in enumerate((row, column))
        )
        self.cells = slice(top, bottom), slice(left, right)
        self._height, self._width = bottom - top, right - left
        whole = start_values(cells)[top : bottom + 2, left : right + 2]
        if whole.shape not in memory:
            memory[whole.shape] = daps.zeros(whole.shape), daps.zeros(whole.shape)
        self.old, self._new = memory[whole.shape]
        self.old[...] = self._new[...] = whole
        self.seconds = 0.0
        """Seconds in the calls of the library."""

    def _neighbour(self, side: tuple[int, int]) -> int | None:
        row, column = self._at[0] + side[0], self._at[1] + side[1]
        if 0 <= row < self._rows and 0 <= column < self._columns:
            return self._daps.users[row * self._columns + column]
        return None

    def _faces(self, side: tuple[int, int]) -> tuple[Field, Field]:
        """The ghost cells at a side, and the cells next to them."""
        old, (row, column) = self.old, side
        if row:
            ghost, own = (0, 1) if row < 0 else (-1, -2)
            return old[ghost, 1:-1], old[own, 1:-1]
        ghost, own = (0, 1) if column < 0 else (-1, -2)
        return old[1:-1, ghost], old[1:-1, own]

    def step(self) -> None:
        """One step: start the messages, compute inside, wait, compute the border."""
        daps, requests = self._daps, []
        begin = perf_counter()
        for receives in (True, False):
            for number, side in enumerate(_SIDES):
                rank = self._neighbour(side)
                if rank is None:
                    continue
                ghost, own = self._faces(side)
                # Data sent down arrive from above.
                if receives:
                    requests.append(daps.irecv(ghost, rank, number))
                else:
                    requests.append(daps.isend(own, rank, number ^ 1))
        self.seconds += perf_counter() - begin
        height, width, old, new = self._height, self._width, self.old, self._new
        if height > 2 and width > 2:
            step(new, old, slice(2, height), slice(2, width))
        begin = perf_counter()
        daps.waitall(requests)
        self.seconds += perf_counter() - begin
        for row in {1, height}:
            step(new, old, slice(row, row + 1), slice(1, width + 1))
        for column in {1, width}:
            step(new, old, slice(1, height + 1), slice(column, column + 1))
        self.old, self._new = new, old


class Stencil:
    """One rank of the stencil."""

    def __init__(self, daps: Daps, options: Options) -> None:
        self._daps, self._options = daps, options
        self._good = True
        self._memory: Memory = {}

    def run(self) -> Seconds:
        options = self._options
        self._good = self._same(_SMALL, _SMALL_STEPS)
        seconds, communication, square = self._run(options.cells, options.steps)
        if options.cells <= _LARGEST_COMPARISON:
            self._good = self._matches_serial(square, options.cells, options.steps) and self._good
        return {
            "seconds": duration(self._daps, seconds),
            "communication": duration(self._daps, communication),
        }

    def _run(self, cells: int, steps: int) -> tuple[float, float, Square | None]:
        daps, square = self._daps, None
        seconds = communication = 0.0
        if not daps.ghost:
            square = Square(daps, cells, self._memory)
        daps.barrier()
        if square is not None:
            begin = perf_counter()
            for _ in range(steps):
                square.step()
            seconds, communication = perf_counter() - begin, square.seconds
        daps.barrier()
        return seconds, communication, square

    def _same(self, cells: int, steps: int) -> bool:
        return self._matches_serial(self._run(cells, steps)[2], cells, steps)

    def _matches_serial(self, square: Square | None, cells: int, steps: int) -> bool:
        """True if this rank's cells are those of a serial run, bit by bit."""
        if square is None:
            return True
        return bool(np.array_equal(square.old[1:-1, 1:-1], serial(cells, steps)[square.cells]))

    def right(self) -> bool:
        return self._good
