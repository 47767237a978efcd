"""The product of block-sparse matrices in two stages (Ouyang 3.5.2).

The first stage has much computing and few messages, the second the opposite. A task gets blocks
from their owners, computes, and adds blocks to others, selected at random from the seed. A block is
a cube of ``edge``^3 doubles in a larger one, so it has gaps.

Elements are integers, so every order of the sums gives the same bits.
"""

from __future__ import annotations

from time import perf_counter, sleep
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.programs.apps.daps.options import Options
from runner.programs.apps.daps.programs import Seconds, duration
from runner.runtimes.intranode.daps import Daps

Cubes = NDArray[Any]
_BLOCKS = 4
"""Blocks of A, and of C, for each rank of the job."""
_REPEATS = 3
"""Number of timed DGEMMs; their median is used."""
_BATCH = 16
"""Blocks that are read, or added, before a rank waits for them."""


class Product:
    """One rank of the product; blocks are distributed round-robin over the computing ranks."""

    def __init__(self, daps: Daps, options: Options) -> None:
        self._daps, self._options = daps, options
        edge, self._count = options.edge, _BLOCKS * daps.size
        outer = (edge + 2, edge + 1, edge + 1)
        # With ghosts a rank has more blocks than without.
        most_ghosts = max(config.ghost_count for config in options.modes.values())
        least = max(daps.size - most_ghosts * len(set(daps.nodes)), 1)
        inside = (slice(None), slice(1, -1), slice(0, edge), slice(1, None))
        block_count = -(-self._count // least)
        self._a, self._c = (daps.zeros((block_count, *outer))[inside] for _ in range(2))
        self._window_a, self._window_c = daps.window(self._a), daps.window(self._c)
        self._counters = daps.zeros(2, np.int64)
        self._numbers = daps.window(self._counters)
        self._landing = daps.zeros((_BATCH, edge, edge, edge))
        draw = np.random.default_rng([options.seed, 17])
        self._pairs = [draw.integers(0, self._count, (n, 2)) for n in options.messages]
        """For each pair of operations of a stage: the block of A, and the block of C."""
        width = options.width
        self._left, self._right = (np.random.default_rng(n).random((width, width)) for n in (1, 2))
        self._sleep = self._dgemm_time() if options.compute == "sleep" else 0.0
        self._task_counts = np.zeros(2, np.int64)

    @property
    def dgemm_seconds(self) -> float:
        """The duration of a simulated DGEMM, or 0."""
        return self._sleep

    def _dgemm_time(self) -> float:
        """The median time of a DGEMM, measured by one rank after the other."""
        times = []
        for rank in range(self._daps.size):
            if rank == self._daps.rank:
                for _ in range(_REPEATS):
                    begin = perf_counter()
                    self._left @ self._right
                    times.append(perf_counter() - begin)
            self._daps.comm.Barrier()
        every = [time for one in self._daps.comm.allgather(times) for time in one]
        return float(np.median(every))

    def _value(self, block: int) -> Cubes:
        """The elements of a block of A."""
        count = self._options.edge**3
        cube = (np.arange(count) + 7 * block) % 32
        return cube.reshape((self._options.edge,) * 3).astype(np.float64)

    def _owner(self, block: int) -> tuple[int, int]:
        """The rank that has a block, and its number there."""
        users = self._daps.users
        return users[block % len(users)], block // len(users)

    def _own(self) -> list[tuple[int, int]]:
        """This rank's blocks: their global number, and their number here."""
        every = ((block, self._owner(block)) for block in range(self._count))
        return [(block, at) for block, (rank, at) in every if rank == self._daps.rank]

    def run(self) -> Seconds:
        daps = self._daps
        self._c[...] = 0.0
        self._counters[...] = 0
        self._task_counts[...] = 0
        for block, at in self._own():
            self._a[at] = self._value(block)
        daps.barrier()
        stages = [0.0, 0.0]
        if not daps.ghost:
            for stage in (0, 1):
                begin = perf_counter()
                self._stage(stage)
                daps.barrier(users=True)
                stages[stage] = perf_counter() - begin
        daps.barrier()
        first, second = (duration(daps, seconds) for seconds in stages)
        return {"seconds": first + second, "stage1": first, "stage2": second}

    def _stage(self, stage: int) -> None:
        daps, count = self._daps, self._options.dgemms[stage]
        if self._options.tasks == "dealt":
            for task in range(daps.users.index(daps.rank), count, len(daps.users)):
                self._task(stage, task, count)
            return
        while (task := self._numbers.fetch_add(daps.users[0], stage, 1)) < count:
            self._task(stage, task, count)

    def _task(self, stage: int, task: int, count: int) -> None:
        """Get, multiply, add: the operations of a stage are divided evenly among its tasks."""
        pairs = self._pairs[stage]
        own = pairs[task * len(pairs) // count : (task + 1) * len(pairs) // count]
        for at in range(0, len(own), _BATCH):
            batch = own[at : at + _BATCH]
            for n, (block, _) in enumerate(batch):
                rank, place = self._owner(int(block))
                self._window_a.get(rank, self._landing[n], place)
            self._daps.flush()
            if at == 0:
                self._compute()
            for n, (_, block) in enumerate(batch):
                rank, place = self._owner(int(block))
                self._window_c.accumulate(rank, self._landing[n], place)
            self._daps.flush()
        if not len(own):
            self._compute()
        self._task_counts[stage] += 1

    def _compute(self) -> None:
        if self._sleep:
            sleep(self._sleep)
        else:
            self._left @ self._right

    def right(self) -> bool:
        """True if all tasks were done once, and this rank's blocks of C are the sums."""
        if self._daps.comm.allreduce(self._task_counts).tolist() != list(self._options.dgemms):
            return False
        pairs = np.concatenate(self._pairs)
        for block, at in self._own():
            sources = pairs[pairs[:, 1] == block, 0]
            reference = np.zeros((self._options.edge,) * 3)
            for source, times in zip(*np.unique(sources, return_counts=True), strict=True):
                reference += times * self._value(int(source))
            if not np.array_equal(self._c[at], reference):
                return False
        return True
