"""Shared parts of the variants on MATE: a rank's work on its cells, and the timed part."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from time import perf_counter
from typing import Any

from runner import mate
from runner.apps.common_layout import Face, Layout
from runner.apps.common_meter import Meter, Timed
from runner.apps.jacobi3d.block import Block, Box
from runner.apps.jacobi3d.faces import Faces, Message


class Part:
    """One rank: its cells ``box`` of a block, and the messages over its ``remote`` faces.

    ``meters`` has one entry per worker and is shared by the ranks of the process. In iteration
    ``i``, field ``i % 2`` of the block is read and the other one written.
    """

    def __init__(
        self,
        block: Block,
        box: Box,
        remote: Sequence[tuple[int, int, int]],
        local: Sequence[int],
        split: int,
        meters: list[Meter],
    ) -> None:
        self.local = local
        """Local ranks behind the other faces."""
        self.kernel_s = 0.0
        self._stencil = block.stencil(box)
        faces = Faces(block, box, remote)
        self._pack, self._unpack = faces.pack, faces.unpack
        self._sends = _pieces(faces.sends, split)
        self._receives = _pieces(faces.receives, split)
        self._meters = meters
        self._ctx: mate.Context

    def join(self, ctx: mate.Context) -> None:
        """Attach to a rank of a job."""
        self._ctx = ctx

    def compute(self, field: int) -> None:
        """Update the cells from ``field`` into the other field."""
        self.kernel_s += self._meters[self._ctx.worker].run(self._stencil[field])

    def receive(self) -> list[mate.Request]:
        return [self._ctx.irecv(buffer, rank, tag) for buffer, rank, tag in self._receives]

    def pack(self, field: int) -> None:
        if self._sends:
            self._meters[self._ctx.worker].copy(self._pack[field])

    def send(self) -> list[mate.Request]:
        return [self._ctx.isend(buffer, rank, tag) for buffer, rank, tag in self._sends]

    def unpack(self, field: int) -> None:
        if self._receives:
            self._meters[self._ctx.worker].copy(self._unpack[field])

    async def exchange(self, field: int) -> None:
        """Pack, send, receive and unpack in turn; the rank waits for its messages."""
        requests = self.receive()
        self.pack(field)
        requests += self.send()
        await self._ctx.waitall(requests)
        self.unpack(field)


def _pieces(messages: Sequence[Message], split: int) -> list[Message]:
    return [
        (piece, rank, tag) for buffer, rank, tag in messages for piece in mate.pieces(buffer, split)
    ]


class Mated(ABC):
    """The solver of one process; :meth:`solve` may be called again after the blocks are reset."""

    def __init__(self, comm: Any, layout: Layout, cache_block: int, config: mate.Config) -> None:
        self._comm, self._layout, self._config = comm, layout, config
        self._cache_block = cache_block
        self.blocks: list[Block] = []
        self._meters = [Meter() for _ in range(config.workers)]
        self._parts = [self._part(local) for local in range(layout.local_count)]
        self._begin = self._end = 0.0

    @abstractmethod
    def _part(self, local: int) -> Part:
        """Make a rank, and its block in ``self.blocks`` unless it shares a block."""

    @abstractmethod
    async def _iterate(self, ctx: mate.Context, part: Part, iterations: int) -> None:
        """The work of a rank in the timed part."""

    def solve(self, iterations: int) -> Timed:
        """Time the iterations on this process, after a barrier."""
        report = mate.run(self._main, self._config, iterations, comm=self._comm)
        for block in self.blocks:
            block.current = iterations % 2
        for meter, times in zip(self._meters, report.workers, strict=True):
            meter.mpi, meter.waiting = times.mpi_s, times.waiting_s
        totals = report.totals()
        return Timed(
            self._end - self._begin,
            [*self._meters],
            [part.kernel_s for part in self._parts],
            int(totals["messages"]),
            int(totals["bytes"]),
        )

    async def _main(self, ctx: mate.Context, iterations: int) -> None:
        part = self._parts[ctx.local_rank]
        part.join(ctx)
        # The ghosts already hold these values; the exchange opens the connections before the clock
        # starts.
        await part.exchange(0)
        await ctx.barrier()
        if ctx.local_rank == 0:
            self._start(ctx)
        await ctx.local_barrier()
        await self._iterate(ctx, part, iterations)
        await ctx.local_barrier()
        if ctx.local_rank == 0:
            ctx.stop_timers()
            self._end = perf_counter()

    def _start(self, ctx: mate.Context) -> None:
        """Start the clock and the timers; the other ranks of the process wait in the meantime."""
        for part in self._parts:
            part.kernel_s = 0.0
        self._meters[:] = [Meter() for _ in self._meters]
        # The clock starts before the timers and stops after them, so that it covers all that they
        # count.
        self._begin = perf_counter()
        ctx.reset_timers()

    def _rank(self, face: Face) -> int:
        """The global rank behind a face."""
        return face.process * self._layout.local_count + face.local


class Hierarchical(Mated):
    """The ranks of a process share its block; only faces to other processes are messages."""

    def _part(self, local: int) -> Part:
        process, layout = self._comm.rank, self._layout
        start, stop = layout.block(process)
        if not self.blocks:
            self.blocks.append(Block(layout.size, start, stop, self._cache_block))
        block = self.blocks[0]
        faces = layout.faces(process, local)
        remote = [(f.axis, f.side, self._rank(f)) for f in faces if f.process != process]
        near = [f.local for f in faces if f.process == process]
        box = block.box_of(*layout.part(process, local))
        return Part(block, box, remote, near, self._config.split, self._meters)
