"""The hydrodynamics step on MATE: a block per rank; ranks of a process write halos directly.

The graph is the original's exchange of one stage (Martin 2018, 7.2) with one region more,
``finish``. Without ``finish`` a rank may leave before its neighbour has written its halo, and
compute with old values. tests/apps/test_cloverleaf3d.py provokes this.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from runner import mate
from runner.apps.cloverleaf3d.block import PHASES, Block, Fields
from runner.apps.cloverleaf3d.problem import STATE
from runner.apps.common_layout import Face, Layout
from runner.apps.common_meter import Meter, Timed


def make_graph(finish: bool) -> mate.Graph:
    """The exchange of one stage; ``finish`` False: as in the original text, with its race."""
    graph = mate.Graph("halo")
    graph.region(name="receive", depends=["unpack*"])(lambda part, i: part.receive())
    depends = ["unpack*", "local_exchange*@", "send*"]
    graph.region(name="pack", depends=depends)(lambda part, i: part.pack())
    graph.region(name="send", depends=["pack"])(lambda part, i: part.send())
    graph.region(name="local_exchange", depends=["pack@"])(lambda part, i: part.local_exchange())
    graph.region(name="unpack", depends=["receive"])(lambda part, i: part.unpack())
    if finish:
        graph.region(name="finish", depends=["local_exchange@"])(lambda part, i: None)
    return graph


class Part:
    """One rank: its block and, in each stage, the fields and the axis that are exchanged."""

    def __init__(
        self, layout: Layout, process: int, local: int, parts: list[Part], meters: list[Meter]
    ) -> None:
        self.block = Block(layout.size, *layout.part(process, local))
        faces = {(f.axis, f.side): f for f in layout.faces(process, local)}
        self._remote = {k: f for k, f in faces.items() if f.process != process}
        self._near = {k: f.local for k, f in faces.items() if f.process == process}
        self._layout, self._parts, self._meters = layout, parts, meters
        self.neighbors = sorted({local, *self._near.values()})
        self.fields: Sequence[int] = ()
        self.axis = 0
        self.kernel_s = 0.0
        self.messages = self.bytes = 0
        self._incoming: dict[int, Fields] = {}
        self._outgoing: dict[int, Fields] = {}
        self._ctx: mate.Context

    def join(self, ctx: mate.Context) -> None:
        """Attach to a rank of a job; its ``@`` dependencies include the rank itself."""
        self._ctx = ctx
        for local in self.neighbors:
            ctx.add_local_neighbor(local)

    def compute(self, kernels: Sequence[str]) -> None:
        self.kernel_s += self._meters[self._ctx.worker].run(lambda: self.block.run(kernels))

    async def exchange(self, graph: mate.Graph, fields: Sequence[int]) -> None:
        """Exchange the halo of some fields, in three stages."""
        for axis in range(3):
            self.fields, self.axis = fields, axis
            await self._ctx.execute(graph, 1, state=self)

    def _faces(self, kind: dict[tuple[int, int], Any]) -> list[tuple[int, Any]]:
        return [(side, kind[self.axis, side]) for side in (0, 1) if (self.axis, side) in kind]

    def _rank(self, face: Face) -> int:
        return face.process * self._layout.local_count + face.local

    def receive(self) -> None:
        self._incoming = {}
        for side, face in self._faces(self._remote):
            buffer = self._incoming[side] = self.block.buffer(len(self.fields), self.axis)
            for piece in mate.pieces(buffer, self._ctx.config.split):
                self._ctx.irecv(piece, self._rank(face), 1 - side)

    def pack(self) -> None:
        """Pack the faces; runs even with nothing to pack: all neighbours are then at this stage."""
        self._outgoing = {}
        for side, _ in self._faces(self._remote):
            buffer = self._outgoing[side] = self.block.buffer(len(self.fields), self.axis)
            self._copy(lambda s=side, b=buffer: self.block.pack(self.fields, self.axis, s, b))

    def send(self) -> None:
        for side, face in self._faces(self._remote):
            for piece in mate.pieces(self._outgoing[side], self._ctx.config.split):
                self._ctx.isend(piece, self._rank(face), side)
                self.messages += 1
                self.bytes += piece.nbytes

    def local_exchange(self) -> None:
        for side, local in self._faces(self._near):
            other = self._parts[local].block
            self._copy(lambda s=side, o=other: self.block.push(self.fields, self.axis, s, o))

    def unpack(self) -> None:
        for side in (0, 1):
            if side in self._incoming:
                buffer = self._incoming[side]
                self._copy(lambda s=side, b=buffer: self.block.unpack(self.fields, self.axis, s, b))
            elif (self.axis, side) not in self._near:
                self._copy(lambda s=side: self.block.reflect(self.fields, self.axis, s))

    def _copy(self, action: Any) -> None:
        self._meters[self._ctx.worker].copy(action)


class OnMate:
    """The solver of one process; :meth:`solve` may be called again after the blocks are reset."""

    def __init__(self, comm: Any, layout: Layout, config: mate.Config, finish: bool = True) -> None:
        self._comm, self._config = comm, config
        self._graph = make_graph(finish)
        self._meters = [Meter() for _ in range(config.workers)]
        self._parts: list[Part] = []
        process = 0 if comm is None else comm.rank
        for local in range(layout.local_count):
            self._parts.append(Part(layout, process, local, self._parts, self._meters))
        self.blocks = [part.block for part in self._parts]
        self._begin = self._end = 0.0

    def solve(self, steps: int) -> Timed:
        """Make this number of time steps, after a barrier."""
        report = mate.run(self._main, self._config, steps, comm=self._comm)
        for meter, times in zip(self._meters, report.workers, strict=True):
            meter.mpi, meter.waiting = times.mpi_s, times.waiting_s
        return Timed(
            self._end - self._begin,
            [*self._meters],
            [part.kernel_s for part in self._parts],
            sum(part.messages for part in self._parts),
            sum(part.bytes for part in self._parts),
        )

    async def _main(self, ctx: mate.Context, steps: int) -> None:
        part = self._parts[ctx.local_rank]
        part.join(ctx)
        await part.exchange(self._graph, STATE)
        await ctx.barrier()
        if ctx.local_rank == 0:
            for other in self._parts:
                other.kernel_s = 0.0
                other.messages = other.bytes = 0
            self._meters[:] = [Meter() for _ in self._meters]
            self._begin = perf_counter()
            ctx.reset_timers()
        await ctx.local_barrier()
        for _ in range(steps):
            for kernels, fields in PHASES:
                part.compute(kernels)
                await part.exchange(self._graph, fields)
        await ctx.local_barrier()
        if ctx.local_rank == 0:
            ctx.stop_timers()
            self._end = perf_counter()
