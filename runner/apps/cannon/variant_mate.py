"""Cannon's algorithm on MATE: a rank per block; blocks within a process are passed by reference.

The original keeps the blocks of a process in place and rotates pointers (Martin 2018, 6.2, figure
6.7). Its regions are the same here: communicate, compute, update. Here a block also travels through
the ranks of its process by reference, so the process grid need not be square.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from runner import mate
from runner.apps.cannon.matrices import Layout, Matrix
from runner.apps.common_meter import Meter, Timed

GRAPH = mate.Graph("cannon")


@GRAPH.region(depends=["update*", "update*@"])
def communicate(part: Part, i: int) -> None:
    part.communicate(i)


@GRAPH.region(depends=["update*"])
def compute(part: Part, i: int) -> None:
    part.compute(i)


@GRAPH.region(depends=["compute", "communicate", "update*@"])
def update(part: Part, i: int) -> None:
    part.update(i)


class Shared:
    """The blocks that the ranks of a process work on in even and odd steps, by local rank."""

    def __init__(self, count: int) -> None:
        self.a: list[list[Matrix]] = [[np.empty(0)] * count for _ in range(2)]
        self.b: list[list[Matrix]] = [[np.empty(0)] * count for _ in range(2)]


class Part:
    """One rank: block (x, y), its neighbours, and buffers for blocks from other processes.

    A received block is passed on through the process for as many steps as it has columns (or rows),
    and is then sent on. Ranks that are n hops apart are at most n steps apart. So with twice that
    many buffers, each buffer is free again when its turn comes.
    """

    def __init__(
        self, layout: Layout, process: int, local: int, shared: Shared, meters: list[Meter]
    ) -> None:
        rows, columns = layout.local
        self.local = local
        self.i, self.j = divmod(local, columns)
        first_x, first_y = layout.first(process)
        self.x, self.y = first_x + self.i, first_y + self.j
        self.layout, self.shared, self._meters = layout, shared, meters
        row, column = layout.place(process)
        shape = (layout.width, layout.width)
        self.c: Matrix = np.zeros(shape)
        self._product = np.empty(shape)
        self._ctx: mate.Context
        self.kernel_s = 0.0
        # Source and destination of A along the row, of B along the column: (process, local rank).
        self._a_to = self._beyond(process, row, column, 0, -1)
        self._a_from = self._beyond(process, row, column, 0, 1)
        self._b_to = self._beyond(process, row, column, -1, 0)
        self._b_from = self._beyond(process, row, column, 1, 0)
        self.near = sorted(
            {
                other
                for there, other in (self._a_to, self._a_from, self._b_to, self._b_from)
                if there == process and other != local
            }
        )
        self.process = process
        remote_a, remote_b = self._a_from[0] != process, self._b_from[0] != process
        self._room_a = [np.empty(shape) for _ in range(2 * columns + 2 if remote_a else 0)]
        self._room_b = [np.empty(shape) for _ in range(2 * rows + 2 if remote_b else 0)]
        self.sends = (self._a_to[0] != process) + (self._b_to[0] != process)

    def _beyond(
        self, process: int, row: int, column: int, down: int, right: int
    ) -> tuple[int, int]:
        rows, columns = self.layout.local
        i, j = self.i + down, self.j + right
        there = self.layout.process_at(row + i // rows, column + j // columns)
        return there, (i % rows) * columns + j % columns

    def join(self, ctx: mate.Context) -> None:
        """Attach to a rank of a job, with the factors in their places and the product zero."""
        self._ctx = ctx
        self.kernel_s = 0.0
        self.c.fill(0.0)
        self.shared.a[0][self.local] = self.layout.a_block(self.x, self.y)
        self.shared.b[0][self.local] = self.layout.b_block(self.x, self.y)

    def communicate(self, i: int) -> None:
        """Send and receive blocks over the border of the process."""
        ctx, layout, now = self._ctx, self.layout, i % 2
        for room, source, target, blocks, tag in (
            (self._room_a, self._a_from, self._a_to, self.shared.a, 0),
            (self._room_b, self._b_from, self._b_to, self.shared.b, 1),
        ):
            if room:
                rank = source[0] * layout.local_count + source[1]
                ctx.irecv(room[i % len(room)], rank, tag)
            if target[0] != self.process:
                rank = target[0] * layout.local_count + target[1]
                ctx.isend(blocks[now][self.local], rank, tag)

    def compute(self, i: int) -> None:
        self.kernel_s += self._meters[self._ctx.worker].run(lambda: self._multiply(i % 2))

    def _multiply(self, now: int) -> None:
        np.matmul(self.shared.a[now][self.local], self.shared.b[now][self.local], out=self._product)
        self.c += self._product

    def update(self, i: int) -> None:
        """Take the next step's blocks: from the neighbour by reference, or from a message."""
        now, after = i % 2, (i + 1) % 2
        for room, source, blocks in (
            (self._room_a, self._a_from, self.shared.a),
            (self._room_b, self._b_from, self.shared.b),
        ):
            blocks[after][self.local] = room[i % len(room)] if room else blocks[now][source[1]]


class OnMate:
    """The solver of one process; :meth:`solve` may be called again."""

    def __init__(self, comm: Any, layout: Layout, config: mate.Config) -> None:
        self._comm, self._layout, self._config = comm, layout, config
        self._meters = [Meter() for _ in range(config.workers)]
        shared = Shared(layout.local_count)
        self._parts = [
            Part(layout, comm.rank, local, shared, self._meters)
            for local in range(layout.local_count)
        ]
        self._begin = self._end = 0.0

    @property
    def c(self) -> dict[tuple[int, int], Matrix]:
        """The blocks of C by block row and column."""
        return {(part.x, part.y): part.c for part in self._parts}

    def reset(self) -> None:
        """Do nothing: every solve begins anew."""

    def solve(self, iterations: int) -> Timed:
        """Add this number of products to C, after a barrier."""
        steps = iterations * self._layout.blocks
        report = mate.run(self._main, self._config, steps, comm=self._comm)
        for meter, times in zip(self._meters, report.workers, strict=True):
            meter.mpi, meter.waiting = times.mpi_s, times.waiting_s
        messages = steps * sum(part.sends for part in self._parts)
        return Timed(
            self._end - self._begin,
            [*self._meters],
            [part.kernel_s for part in self._parts],
            messages,
            messages * self._layout.width**2 * 8,
        )

    async def _main(self, ctx: mate.Context, steps: int) -> None:
        part = self._parts[ctx.local_rank]
        part.join(ctx)
        for local in part.near:
            ctx.add_local_neighbor(local)
        await ctx.barrier()
        if ctx.local_rank == 0:
            self._meters[:] = [Meter() for _ in self._meters]
            self._begin = perf_counter()
            ctx.reset_timers()
        await ctx.local_barrier()
        await ctx.execute(GRAPH, steps, state=part)
        await ctx.local_barrier()
        if ctx.local_rank == 0:
            ctx.stop_timers()
            self._end = perf_counter()
