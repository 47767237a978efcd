"""Stencils on MATE: a rank's work on its cells and its faces, and the timed part."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from runner.programs.apps.common.faces import Copies, Faces, FaceTables, Field, Message
from runner.programs.apps.common.layout import Face, Layout
from runner.programs.apps.common.mated import JobClock
from runner.programs.apps.common.meter import SAMPLE, RunTimes
from runner.runtimes import mate


class Part:
    """One rank: its cells, and the messages of its faces.

    In iteration ``i``, field ``i % 2`` is read and the other one written. ``faces`` are the
    faces with messages; ``stencil`` is the work on the cells, from the first field to the second
    one and back; ``local`` are the local ranks behind the other faces. A message is sent in
    ``split`` pieces.

    The public attributes are what compiled regions use
    (:mod:`runner.programs.apps.common.regions`); the methods are the same work for Python. A
    subclass adds what its region ``compute`` uses.
    """

    ctx: mate.Context

    def __init__(
        self,
        fields: tuple[Field, Field],
        faces: Sequence[Faces],
        stencil: Copies,
        local: Sequence[int],
        split: int,
    ) -> None:
        self.local = local
        self.fields = fields
        tables = FaceTables(faces)
        self.own, self.ghosts = tables.own, tables.ghosts
        self.out_parts, self.in_parts = tables.out_parts, tables.in_parts
        self.outgoing, self.targets, self.outgoing_tags = _pieces(tables.sends, split)
        self.incoming, self.sources, self.incoming_tags = _pieces(tables.receives, split)
        self.kernels_s = np.zeros(3)
        """Seconds of the rank's kernels; wall and CPU seconds of the sampled ones."""
        self._stencil, self._faces = stencil, faces

    def compute(self, i: int) -> None:
        """Do the work on the cells."""
        is_sample = i % SAMPLE == 0
        cpu = self.ctx.cpu_seconds() if is_sample else 0.0
        begin = self.ctx.seconds()
        self._stencil[i % 2]()
        duration_s = self.ctx.seconds() - begin
        self.kernels_s[0] += duration_s
        if is_sample:
            self.kernels_s[1:] += duration_s, self.ctx.cpu_seconds() - cpu

    def receive(self) -> list[mate.Request]:
        """Start to receive the neighbours' faces."""
        messages = zip(self.incoming, self.sources, self.incoming_tags, strict=True)
        return [self.ctx.irecv(buffer, rank, tag) for buffer, rank, tag in messages]

    def pack(self, field: int) -> None:
        """Copy the rank's own faces into the buffers."""
        if self.out_parts:
            with self.ctx.buffering():
                for faces in self._faces:
                    faces.pack[field]()

    def send(self) -> list[mate.Request]:
        """Start to send the buffers."""
        messages = zip(self.outgoing, self.targets, self.outgoing_tags, strict=True)
        return [self.ctx.isend(buffer, rank, tag) for buffer, rank, tag in messages]

    def unpack(self, field: int) -> None:
        """Copy received data into the ghosts."""
        if self.in_parts:
            with self.ctx.buffering():
                for faces in self._faces:
                    faces.unpack[field]()

    async def exchange(self, field: int) -> None:
        """Pack, send, receive and unpack in turn; the rank waits for its messages."""
        requests = self.receive()
        self.pack(field)
        requests += self.send()
        await self.ctx.waitall(requests)
        self.unpack(field)


def _pieces(messages: Sequence[Message], split: int) -> tuple[list[Any], list[int], list[int]]:
    """The pieces of the messages: their buffers, the other ranks, the tags."""
    pieces = [
        (piece, rank, tag) for buffer, rank, tag in messages for piece in mate.pieces(buffer, split)
    ]
    return [p for p, _, _ in pieces], [r for _, r, _ in pieces], [t for _, _, t in pieces]


class MateSolver(ABC):
    """The solver of one process; :meth:`run` may be called again after the fields are reset."""

    def __init__(self, comm: Any, layout: Layout, config: mate.Config) -> None:
        self._comm, self._layout, self._config = comm, layout, config
        self._parts: Sequence[Part] = [self._part(local) for local in range(layout.local_count)]
        self._clock = JobClock()

    @abstractmethod
    def _part(self, local: int) -> Part:
        """Create a rank."""

    @abstractmethod
    async def _iterate(self, ctx: mate.Context, part: Any, iterations: int) -> None:
        """The work of a rank in the timed part; it is first called with 0 iterations."""

    def run(self, iterations: int) -> RunTimes:
        """Time the iterations on this process, after a barrier; field 0 holds the newest values."""
        report = mate.run(self._main, self._config, iterations, comm=self._comm)
        return self._clock.times(report, self._parts)

    async def _main(self, ctx: mate.Context, iterations: int) -> None:
        part = self._parts[ctx.local_rank]
        part.ctx = ctx
        # The exchange fills the ghosts of the start values, and opens the connections before the
        # clock starts; a call without iterations loads the compiled regions.
        await part.exchange(0)
        await self._iterate(ctx, part, 0)
        await self._clock.time(ctx, self._parts, lambda: self._iterate(ctx, part, iterations))

    def _rank(self, face: Face) -> int:
        """The global rank behind a face."""
        return face.process * self._layout.local_count + face.local

    def _behind(self, local: int) -> tuple[list[tuple[int, int, int]], list[int]]:
        """The faces to other processes (axis, side, rank) of a rank that shares its process's
        cells, and the local ranks behind its other faces.
        """
        process = self._comm.rank
        faces = self._layout.faces(process, local)
        remote = [(f.axis, f.side, self._rank(f)) for f in faces if f.process != process]
        return remote, [f.local for f in faces if f.process == process]


class GraphSolver(MateSolver):
    """Ranks that run a graph: compiled regions on the compiled core, else the part's methods."""

    graph: ClassVar[mate.Graph]

    def run(self, iterations: int) -> RunTimes:
        """See :meth:`MateSolver.run`."""
        self._graph = self.graph if self._config.core == "native" else _in_python(self.graph)
        return super().run(iterations)

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
    python_graph = mate.Graph(graph.name)
    for region in graph.regions:
        depends = [str(dependency) for dependency in region.depends]
        python_graph.region(region.name, depends)(_BODIES[region.name])
    return python_graph
