"""The solver on MATE: over-decomposed along the curve, and balanced before the clock starts."""

from __future__ import annotations

import dataclasses
import socket
from typing import Any

from runner.programs.apps.common.mated import JobClock
from runner.programs.apps.common.meter import RunTimes
from runner.programs.apps.common.mpi import agree
from runner.programs.apps.flowcart import cycle, regions
from runner.programs.apps.flowcart.domain import Domain, as_it_is
from runner.programs.apps.flowcart.mesh import Mesh
from runner.programs.apps.flowcart.part import BODIES, Part
from runner.runtimes import mate
from runner.runtimes.mate.balance import balance_ranks

BALANCES = ("none", "consecutive", "shuffle")
SAMPLE_CYCLES = 3
"""Number of cycles of the sampling run: a dozen updates of the finest level."""


def _in_python(graph: mate.Graph) -> mate.Graph:
    """The graph with Python regions that call kernels: cut cells in plain Python take hours."""
    python_graph = mate.Graph(graph.name)
    for region in graph.regions:
        depends = [str(dependency) for dependency in region.depends]
        python_graph.region(region.name, depends)(BODIES[region.name])
    return python_graph


class OnMate:
    """The ranks of one process; ``balance`` is one of :data:`BALANCES`."""

    def __init__(self, comm: Any, mesh: Mesh, config: mate.Config, balance: str) -> None:
        self._comm, self._mesh, self._config = comm, mesh, config
        self._owners = mesh.shares(comm.size * config.ranks_per_process)
        graph = regions.GRAPH if comm.size > 1 else regions.LOCAL_GRAPH
        self._graph = graph if config.core == "native" else _in_python(graph)
        self._clock = JobClock()
        self.stolen_regions = 0
        """Number of regions that this process has run for other processes in the last run."""
        self._parts: list[Part] = []
        self._arena: mate.Arena | None = None
        """The memory of the arrays if other processes of the node may run regions."""
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
        report = self._run(SAMPLE_CYCLES)
        costs = [0.0] * sum(map(len, self.map))
        for ranks, seconds in self._comm.allgather((report.local_ranks, report.rank_compute_s)):
            for rank, second in zip(ranks, seconds, strict=True):
                costs[rank] = second
        hosts = self._comm.allgather(socket.gethostname())
        nodes = [hosts.index(host) for host in hosts]
        # Times differ a little from process to process, but all must use the same map.
        costs = self._comm.bcast(costs)
        self.map = balance_ranks(costs, nodes, self._config.workers, balance == "shuffle")

    def _use(self, ranks: tuple[tuple[int, ...], ...]) -> None:
        if self._config.steal == "node" and self._comm.size > 1:
            if self._arena is not None:
                self._arena.close()
            self._arena = agree(self._comm, lambda: mate.Arena(self._comm))
        agree(self._comm, lambda: self._fill(ranks[self._comm.rank]))
        self._config = dataclasses.replace(self._config, rank_map=ranks)

    def _fill(self, own: tuple[int, ...]) -> None:
        """Create the arrays of these ranks."""
        place = as_it_is if self._arena is None else self._arena.copy
        self.domain = Domain(self._mesh, self._owners, own, place)
        self._parts = [Part(self.domain, number, place) for number in range(len(own))]

    def solve(self, cycles: int) -> RunTimes:
        """Run this number of cycles from the domain's values, after a barrier."""
        report = self._run(cycles)
        self.stolen_regions = int(report.totals()["stolen"])
        return self._clock.times(report, self._parts)

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
        await self._clock.time(
            ctx, self._parts, lambda: ctx.execute(self._graph, cycles * cycle.COUNT, state=part)
        )
