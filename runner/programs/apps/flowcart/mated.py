"""The solver on MATE: over-decomposed along the curve, and balanced before the clock starts."""

from __future__ import annotations

import dataclasses
import itertools
import socket
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from runner.programs.apps.common.meter import SAMPLE, Timed, timed_job
from runner.programs.apps.common.mpi import agree
from runner.programs.apps.flowcart import cycle, regions
from runner.programs.apps.flowcart.domain import Domain, Place, as_it_is
from runner.programs.apps.flowcart.mesh import LEVELS, Mesh
from runner.runtimes import mate
from runner.runtimes.mate.balance import balanced

BALANCES = ("none", "consecutive", "shuffle")
SAMPLED = 3
"""Number of cycles of the sampling run: a dozen updates of the finest level."""


class Part:
    """One rank of a domain and its messages to other processes.

    Iteration ``i`` of the regions is stage ``i % cycle.COUNT`` of a cycle. The public attributes
    are what compiled regions use (:mod:`runner.programs.apps.flowcart.regions`); the methods are
    the same work for Python.
    """

    ctx: mate.Context

    def __init__(self, domain: Domain, number: int, place: Place = as_it_is) -> None:
        layers = domain.layers
        slices = [layer.slices[number] for layer in layers]
        self.local = domain.neighbours[number]
        """Local ranks whose cells are neighbours."""
        # Array ``2 * level + source``, as in cycle.Stage.exchanged.
        self.values = [values for layer in layers for values in layer.values]
        self.right = [layer.right for layer in layers]
        self.table = [layer.table for layer in layers]
        self.work = [layer.work for layer in layers]
        self.parents = [layer.parents for layer in layers]
        bounds = [(s.first, s.last, s.first_ghost, s.last_ghost) for s in slices]
        self.bounds = place(np.array(bounds, dtype=np.int64).reshape(-1))
        exchanges = [own.exchanges for own in slices]
        # Messages sent[level] to sent[level + 1] belong to a level.
        self.sent = _starts([len(some) for some in exchanges])
        self.targets = [e.rank for some in exchanges for e in some]
        self.places = [e.places for some in exchanges for e in some]
        self.packed = [e.outgoing for some in exchanges for e in some]
        # Messages received[k] to received[k + 1] belong to array k.
        self.received = _starts([len(exchanges[k // 2]) for k in range(2 * LEVELS)])
        self.sources = [e.rank for k in range(2 * LEVELS) for e in exchanges[k // 2]]
        self.ghosts = [
            values[e.first : e.last]
            for k, values in enumerate(self.values)
            for e in exchanges[k // 2]
        ]
        self.kernels_s = place(np.zeros(3))
        """Seconds of the rank's kernels; wall and CPU seconds of those that were sampled."""
        self._stages = domain.stages(number)
        self._packing = domain.packing(number)

    def receive(self, i: int) -> list[mate.Request]:
        """Start to receive the ghosts of the next stage."""
        which = cycle.EXCHANGED[i % cycle.COUNT]
        if which < 0:
            return []
        found = range(self.received[which], self.received[which + 1])
        return [self.ctx.irecv(self.ghosts[n], self.sources[n], which // 2) for n in found]

    def pack(self, i: int) -> None:
        """Copy the new values that others need into the buffers."""
        if copies := self._packing[i % cycle.COUNT]:
            with self.ctx.buffering():
                for copy in copies:
                    copy()

    def send(self, i: int) -> list[mate.Request]:
        """Start to send the buffers."""
        which = cycle.EXCHANGED[i % cycle.COUNT]
        if which < 0:
            return []
        found = range(self.sent[which // 2], self.sent[which // 2 + 1])
        return [self.ctx.isend(self.packed[n], self.targets[n], which // 2) for n in found]

    def compute(self, i: int) -> None:
        """Compute a stage."""
        sampled = i % SAMPLE == 0
        cpu = self.ctx.cpu_seconds() if sampled else 0.0
        begin = self.ctx.seconds()
        for call in self._stages[i % cycle.COUNT]:
            call()
        spent = self.ctx.seconds() - begin
        self.kernels_s[0] += spent
        if sampled:
            self.kernels_s[1:] += spent, self.ctx.cpu_seconds() - cpu

    async def connect(self) -> None:
        """Exchange the start values, which the ghosts already hold; this opens the connections."""
        for stage in range(cycle.COUNT):
            requests = self.receive(stage)
            self.pack(stage)
            await self.ctx.waitall([*requests, *self.send(stage)])


def _starts(counts: list[int]) -> list[int]:
    return [0, *itertools.accumulate(counts)]


_BODIES: dict[str, Callable[[Part, int], Any]] = {
    name: getattr(Part, name) for name in ("receive", "pack", "send", "compute")
}


def _in_python(graph: mate.Graph) -> mate.Graph:
    """The graph with Python regions that call kernels: cut cells in plain Python take hours."""
    made = mate.Graph(graph.name)
    for region in graph.regions:
        depends = [str(dependency) for dependency in region.depends]
        made.region(region.name, depends)(_BODIES[region.name])
    return made


class OnMate:
    """The ranks of one process; ``balance`` is one of :data:`BALANCES`."""

    def __init__(self, comm: Any, mesh: Mesh, config: mate.Config, balance: str) -> None:
        self._comm, self._mesh, self._config = comm, mesh, config
        self._owners = mesh.shares(comm.size * config.ranks_per_process)
        graph = regions.GRAPH if comm.size > 1 else regions.ALONE
        self._graph = graph if config.core == "native" else _in_python(graph)
        self._begin = self._end = 0.0
        self.stolen = 0
        """Regions that the last run has run for other processes, by this one."""
        self._parts: list[Part] = []
        self._arena: mate.Arena | None = None
        """Where the arrays lie if other processes of the node may run regions."""
        self.map = tuple(
            tuple(range(p * config.ranks_per_process, (p + 1) * config.ranks_per_process))
            for p in range(comm.size)
        )
        self._use(self.map)
        if balance != "none":
            self._sample(balance)
            self._use(self.map)

    def _sample(self, balance: str) -> None:
        """Set the rank map after a short run that measures the cost of each rank."""
        self.solve(1)  # The first cycle touches memory.
        report = self._run(SAMPLED)
        costs = [0.0] * sum(map(len, self.map))
        for ranks, seconds in self._comm.allgather((report.local_ranks, report.rank_compute_s)):
            for rank, second in zip(ranks, seconds, strict=True):
                costs[rank] = second
        hosts = self._comm.allgather(socket.gethostname())
        nodes = [hosts.index(host) for host in hosts]
        # Times differ a little from process to process, but all must use the same map.
        costs = self._comm.bcast(costs)
        self.map = balanced(costs, nodes, self._config.workers, balance == "shuffle")

    def _use(self, ranks: tuple[tuple[int, ...], ...]) -> None:
        if self._config.steal == "node" and self._comm.size > 1:
            if self._arena is not None:
                self._arena.close()
            self._arena = agree(self._comm, lambda: mate.Arena(self._comm))
        agree(self._comm, lambda: self._fill(ranks[self._comm.rank]))
        self._config = dataclasses.replace(self._config, rank_map=ranks)

    def _fill(self, own: tuple[int, ...]) -> None:
        """Make the arrays of these ranks."""
        place = as_it_is if self._arena is None else self._arena.copy
        self.domain = Domain(self._mesh, self._owners, own, place)
        self._parts = [Part(self.domain, number, place) for number in range(len(own))]

    def solve(self, cycles: int) -> Timed:
        """Run this number of cycles from the domain's values, after a barrier."""
        report = self._run(cycles)
        self.stolen = int(report.totals()["stolen"])
        return timed_job(self._end - self._begin, report, self._parts)

    def _run(self, cycles: int) -> mate.Report:
        return mate.run(self._main, self._config, cycles, comm=self._comm, arena=self._arena)

    async def _main(self, ctx: mate.Context, cycles: int) -> None:
        part = self._parts[ctx.local_rank]
        part.ctx = ctx
        for local in part.local:
            ctx.add_local_neighbor(local)
        # The connections are open and the compiled regions loaded before the clock starts.
        await part.connect()
        await ctx.execute(self._graph, 0, state=part)
        await ctx.barrier()
        if ctx.local_rank == 0:
            # The other ranks of the process wait in the meantime. The clock starts before the
            # timers and stops after them, so that it covers all that they count.
            for each in self._parts:
                each.kernels_s.fill(0.0)
            self._begin = perf_counter()
            ctx.reset_timers()
        await ctx.local_barrier()
        await ctx.execute(self._graph, cycles * cycle.COUNT, state=part)
        await ctx.local_barrier()
        if ctx.local_rank == 0:
            ctx.stop_timers()
            self._end = perf_counter()
