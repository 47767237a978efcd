"""The product of block-sparse matrices: get, compute, accumulate, by tasks from a shared counter.

C = A B on a grid of blocks, some of which are absent (zero) in A and B. A task is one product of
two present blocks. A rank draws the number of a task, copies both blocks from their owners (get),
multiplies, and adds the result to the owner's block of C under the lock of its memory. Ranks that
wait for a lock, or in the final barrier, steal chunks of others' copies and sums.

Elements are small integers, so every order of the sums gives the same bits.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.programs.apps.cab.options import Options
from runner.programs.apps.common.errors import AppUsageError
from runner.runtimes.core import blas, library
from runner.runtimes.core.kernels import load
from runner.runtimes.intranode import Cab, Request

Matrix = NDArray[Any]
Block = tuple[int, int]
Span = tuple[float, float]
_LARGEST = 8
"""Elements are below this: sums stay integers below 2^53."""


def present(blocks: int, absent: int, seed: int) -> tuple[set[Block], set[Block]]:
    """The present blocks of A and of B: each with a chance of 100 - ``absent`` percent."""
    draw = random.Random(seed)
    every = [(row, column) for row in range(blocks) for column in range(blocks)]
    first, second = ({at for at in every if draw.randrange(100) >= absent} for _ in range(2))
    return first, second


def tasks_of(first: set[Block], second: set[Block]) -> list[tuple[int, int, int]]:
    """Row, column and inner index of each product of two present blocks."""
    return sorted((i, j, k) for i, k in first for inner, j in second if inner == k)


class Product:
    """One rank: its own blocks, and the calls of each task, prepared once.

    A block is owned by the rank with its number (row by row) modulo the number of ranks.
    """

    operations = 1

    def __init__(self, cab: Cab, options: Options) -> None:
        self._cab, self._blocks, self._width = cab, options.blocks, options.width
        self._positions = present(options.blocks, options.absent, options.seed)
        self._tasks = tasks_of(*self._positions)
        if not self._tasks:
            raise AppUsageError(
                f"--absent {options.absent}: no two blocks of a grid of {options.blocks} x "
                f"{options.blocks} have a product with --seed {options.seed}; use a smaller share, "
                "more blocks or another seed",
                code="app_option.size",
            )
        self.tasks = len(self._tasks)
        """Products of two blocks in one product of the matrices."""
        width = self._width
        self.flops = 2 * width**3 * self.tasks
        """Floating-point operations of one product of the matrices."""
        self.byte_count = 3 * 8 * width**2 * self.tasks
        """Bytes of blocks copied or added in it."""
        share = -(-(options.blocks**2) // cab.size)
        own = [cab.zeros((share, width, width)) for _ in range(3)]
        self._a, self._b, self._c = (cab.arrays_of_all(blocks) for blocks in own)
        self._fill(options.seed)
        self._tiles = [cab.zeros((width, width)) for _ in range(3)]
        self._prepare()
        counter = cab.zeros(1, np.int64)
        self._counter: int = cab.comm.bcast(counter.ctypes.data)
        self._counters = cab.arrays_of_all(counter)
        self._draw = load("runner.programs.apps.cab.counter").function("draw")
        self._dgemm = blas.dgemm()
        self._products = 0

    def _fill(self, seed: int) -> None:
        """Set this rank's blocks of A and B; absent ones stay zero."""
        for number, (positions, all_blocks) in enumerate(
            zip(self._positions, (self._a, self._b), strict=True)
        ):
            for row, column in self._own(positions):
                values = np.random.default_rng([seed, number, row, column])
                block = self._at(all_blocks, (row, column))
                block[...] = values.integers(0, _LARGEST, block.shape)

    def _prepare(self) -> None:
        cab, (first, second, result) = self._cab, self._tiles
        self._get_a = {at: cab.copy_init(first, self._at(self._a, at)) for at in self._positions[0]}
        self._get_b = {
            at: cab.copy_init(second, self._at(self._b, at)) for at in self._positions[1]
        }
        targets = {(i, j) for i, j, _ in self._tasks}
        self._add = {
            at: cab.accumulate_init(self._at(self._c, at), result, self._owner(at))
            for at in targets
        }

    def _owner(self, at: Block) -> int:
        return (at[0] * self._blocks + at[1]) % self._cab.size

    def _at(self, blocks: list[Matrix], at: Block) -> Matrix:
        """A block in the memory of its owner."""
        place, owner = divmod(at[0] * self._blocks + at[1], self._cab.size)
        block: Matrix = blocks[owner][place]
        return block

    def _own(self, positions: set[Block]) -> Iterator[Block]:
        return (at for at in sorted(positions) if self._owner(at) == self._cab.rank)

    def batch(self, times: int, workers: int) -> Span:
        """``times`` products of the matrices, each added to C."""
        cab = self._cab
        begin = perf_counter()
        for _ in range(times):
            # A rank that finds no task has drawn one number too many, so this many are used up.
            first = self._products * (self.tasks + cab.size)
            while (number := self._draw(self._counter) - first) < self.tasks:
                self._task(*self._tasks[number])
            self._products += 1
            cab.barrier()
        return begin, perf_counter()

    def _task(self, i: int, j: int, k: int) -> None:
        first, second, result = self._tiles
        gets = [self._get_a[i, k], self._get_b[k, j]]
        for request in gets:
            self._cab.start(request)
        self._cab.waitall(gets)
        result[...] = 0.0
        library.add_product(self._dgemm, first, second, result)
        add: Request = self._add[i, j]
        self._cab.start(add)
        self._cab.wait(add)

    @cached_property
    def _reference(self) -> dict[Block, Matrix]:
        """This rank's blocks of one product, by numpy from the blocks of A and B in memory."""
        every = {(i, j) for i in range(self._blocks) for j in range(self._blocks)}
        zero = np.zeros((self._width, self._width))
        return {
            (i, j): sum(
                (
                    self._at(self._a, (i, k)) @ self._at(self._b, (k, j))
                    for k in range(self._blocks)
                ),
                zero,
            )
            for i, j in self._own(every)
        }

    def right(self) -> bool:
        """True if this rank's blocks of C equal the reference times the number of products."""
        return all(
            np.array_equal(self._at(self._c, at), self._products * block)
            for at, block in self._reference.items()
        )
