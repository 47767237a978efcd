"""Shared parts of the variants on MATE: a rank's work on its cells, and the timed part."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from runner import mate
from runner.apps.common_box import Box
from runner.apps.common_faces import Message
from runner.apps.common_layout import Face, Layout
from runner.apps.common_meter import SAMPLE, Timed, meter_of
from runner.apps.jacobi3d.block import Block
from runner.apps.jacobi3d.faces import Faces


class Part:
    """One rank: its cells ``box`` of a block, and the messages over its ``remote`` faces.

    In iteration ``i``, field ``i % 2`` of the block is read and the other one written. The public
    attributes are what compiled regions use (:mod:`runner.apps.jacobi3d.regions`); the methods are
    the same work for Python.
    """

    ctx: mate.Context

    def __init__(
        self,
        block: Block,
        box: Box,
        remote: Sequence[tuple[int, int, int]],
        local: Sequence[int],
        split: int,
        padding: int = 1,
    ) -> None:
        self.local = local
        """Local ranks behind the other faces."""
        self.fields = block.fields
        self.cells = tuple(field.reshape(-1) for field in block.fields)
        self.geometry, self.weights = block.geometry(box), block.weights
        faces = Faces(block, box, remote, padding)
        self.own, self.ghosts = (
            np.array(boxes, dtype=np.int64).reshape(-1, 6) for boxes in (faces.own, faces.ghosts)
        )
        self.packed = [buffer for buffer, _, _ in faces.sends]
        self.received = [buffer for buffer, _, _ in faces.receives]
        self.outgoing, self.targets, self.outgoing_tags = _pieces(faces.sends, split)
        self.incoming, self.sources, self.incoming_tags = _pieces(faces.receives, split)
        self.kernels_s = np.zeros(3)
        """Seconds of the rank's kernels; wall and CPU seconds of those that were sampled."""
        self._stencil = block.stencil(box)
        self._pack, self._unpack = faces.pack, faces.unpack

    def compute(self, i: int) -> None:
        """Update the cells from field ``i % 2`` into the other field."""
        sampled = i % SAMPLE == 0
        cpu = self.ctx.cpu_seconds() if sampled else 0.0
        begin = self.ctx.seconds()
        self._stencil[i % 2]()
        spent = self.ctx.seconds() - begin
        self.kernels_s[0] += spent
        if sampled:
            self.kernels_s[1:] += spent, self.ctx.cpu_seconds() - cpu

    def receive(self) -> list[mate.Request]:
        """Start to receive the neighbours' faces."""
        messages = zip(self.incoming, self.sources, self.incoming_tags, strict=True)
        return [self.ctx.irecv(buffer, rank, tag) for buffer, rank, tag in messages]

    def pack(self, field: int) -> None:
        """Copy the own faces into the buffers."""
        if self.packed:
            with self.ctx.buffering():
                self._pack[field]()

    def send(self) -> list[mate.Request]:
        """Start to send the buffers."""
        messages = zip(self.outgoing, self.targets, self.outgoing_tags, strict=True)
        return [self.ctx.isend(buffer, rank, tag) for buffer, rank, tag in messages]

    def unpack(self, field: int) -> None:
        """Copy what has arrived into the ghosts."""
        if self.received:
            with self.ctx.buffering():
                self._unpack[field]()

    async def exchange(self, field: int) -> None:
        """Pack, send, receive and unpack in turn; the rank waits for its messages."""
        requests = self.receive()
        self.pack(field)
        requests += self.send()
        await self.ctx.waitall(requests)
        self.unpack(field)


def _pieces(messages: Sequence[Message], split: int) -> tuple[list[Any], list[int], list[int]]:
    """The pieces of the messages: their buffers, the other ranks, the tags."""
    found = [
        (piece, rank, tag) for buffer, rank, tag in messages for piece in mate.pieces(buffer, split)
    ]
    return [p for p, _, _ in found], [r for _, r, _ in found], [t for _, _, t in found]


class Mated(ABC):
    """The solver of one process; :meth:`solve` may be called again after the blocks are reset."""

    def __init__(self, comm: Any, layout: Layout, cache_block: int, config: mate.Config) -> None:
        self._comm, self._layout, self._config = comm, layout, config
        self._cache_block = cache_block
        self.blocks: list[Block] = []
        self._parts = [self._part(local) for local in range(layout.local_count)]
        self._begin = self._end = 0.0

    @abstractmethod
    def _part(self, local: int) -> Part:
        """Make a rank, and its block in ``self.blocks`` unless it shares a block."""

    @abstractmethod
    async def _iterate(self, ctx: mate.Context, part: Part, iterations: int) -> None:
        """The work of a rank in the timed part; it is also called with 0 iterations before."""

    def solve(self, iterations: int) -> Timed:
        """Time the iterations on this process, after a barrier."""
        report = mate.run(self._main, self._config, iterations, comm=self._comm)
        for block in self.blocks:
            block.current = iterations % 2
        totals = report.totals()
        kernels_s = np.array([part.kernels_s for part in self._parts])
        _, sampled_s, sampled_cpu_s = kernels_s.sum(axis=0).tolist()
        return Timed(
            self._end - self._begin,
            [meter_of(times, sampled_s, sampled_cpu_s) for times in report.workers],
            kernels_s[:, 0].tolist(),
            int(totals["messages"]),
            int(totals["bytes"]),
        )

    async def _main(self, ctx: mate.Context, iterations: int) -> None:
        part = self._parts[ctx.local_rank]
        part.ctx = ctx
        # The ghosts already hold these values; the exchange opens the connections before the clock
        # starts, and no iterations load the compiled regions.
        await part.exchange(0)
        await self._iterate(ctx, part, 0)
        await ctx.barrier()
        if ctx.local_rank == 0:
            # The other ranks of the process wait in the meantime. The clock starts before the
            # timers and stops after them, so that it covers all that they count.
            for each in self._parts:
                each.kernels_s.fill(0.0)
            self._begin = perf_counter()
            ctx.reset_timers()
        await ctx.local_barrier()
        await self._iterate(ctx, part, iterations)
        await ctx.local_barrier()
        if ctx.local_rank == 0:
            ctx.stop_timers()
            self._end = perf_counter()

    def _rank(self, face: Face) -> int:
        """The global rank behind a face."""
        return face.process * self._layout.local_count + face.local


class Scheduled(Mated):
    """Ranks that run a graph: compiled regions on the compiled core, else the part's methods."""

    graph: ClassVar[mate.Graph]

    def __init__(self, comm: Any, layout: Layout, cache_block: int, config: mate.Config) -> None:
        super().__init__(comm, layout, cache_block, config)
        self._graph = self.graph if config.core == "native" else _in_python(self.graph)

    async def _iterate(self, ctx: mate.Context, part: Part, iterations: int) -> None:
        for local in part.local:
            ctx.add_local_neighbor(local)
        await ctx.execute(self._graph, iterations, state=part)


def _exchange(part: Part, i: int) -> None:
    part.receive()
    part.pack((i + 1) % 2)
    part.send()


_BODIES: dict[str, Callable[[Part, int], Any]] = {
    "compute": lambda part, i: part.compute(i),
    "receive": lambda part, i: part.receive(),
    "pack": lambda part, i: part.pack((i + 1) % 2),
    "send": lambda part, i: part.send(),
    "exchange": _exchange,
    "unpack": lambda part, i: part.unpack((i + 1) % 2),
}


def _in_python(graph: mate.Graph) -> mate.Graph:
    """The graph with Python regions that call kernels: a stencil in plain Python takes hours."""
    made = mate.Graph(graph.name)
    for region in graph.regions:
        depends = [str(dependency) for dependency in region.depends]
        made.region(region.name, depends)(_BODIES[region.name])
    return made


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
        return Part(block, box, remote, near, self._config.split, layout.padding)
