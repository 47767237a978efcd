"""The solvers: flat MPI, and MATE with a rank map that a sampling run may balance."""

from __future__ import annotations

import dataclasses
import socket
from collections.abc import Callable
from time import perf_counter
from typing import Any

from runner import mate
from runner.apps.common_meter import Meter, Timed
from runner.apps.flowcart.domain import Domain, program
from runner.apps.flowcart.mesh import Mesh
from runner.mate.balance import balanced

BALANCES = ("none", "consecutive", "shuffle")
SAMPLED = 3
"""Number of cycles of the sampling run: a dozen updates of the finest level."""


class Flat:
    """Flat MPI: one domain per process."""

    def __init__(self, comm: Any, mesh: Mesh) -> None:
        self._comm = comm
        self.domains = [Domain(mesh, mesh.shares(comm.size), comm.rank)]
        self._messages = self._bytes = 0

    def solve(self, cycles: int) -> Timed:
        """Run this number of cycles, after a barrier."""
        domain, meter = self.domains[0], Meter()
        self._messages = self._bytes = 0
        self._comm.Barrier()
        begin = perf_counter()
        for _ in range(cycles):
            for what, level, ghosts in program():
                if ghosts:
                    self.fill(level, meter)
                meter.run(domain.call(what, level))
        elapsed = perf_counter() - begin
        return Timed(elapsed, [meter], [meter.compute], self._messages, self._bytes)

    def fill(self, level: int, meter: Meter) -> None:
        """Fill the ghosts of a level."""
        from mpi4py import MPI

        exchanges, comm = self.domains[0].levels[level].exchanges, self._comm
        begin = perf_counter()
        requests = [comm.Irecv(e.incoming, e.rank, level) for e in exchanges]
        posted = perf_counter()
        for exchange in exchanges:
            exchange.pack()
        packed = perf_counter()
        requests += [comm.Isend(e.outgoing, e.rank, level) for e in exchanges]
        sent = perf_counter()
        MPI.Request.Waitall(requests)
        arrived = perf_counter()
        for exchange in exchanges:
            exchange.unpack()
        meter.mpi += (posted - begin) + (sent - packed)
        meter.waiting += arrived - sent
        meter.buffering += (packed - posted) + (perf_counter() - arrived)
        self._messages += len(exchanges)
        self._bytes += sum(e.outgoing.nbytes for e in exchanges)


class OnMate:
    """Ranks on MATE: over-decomposed along the curve, and balanced before the clock starts."""

    def __init__(self, comm: Any, mesh: Mesh, config: mate.Config, balance: str) -> None:
        self._comm, self._mesh, self._config = comm, mesh, config
        total = comm.size * config.ranks_per_process
        self._owners = mesh.shares(total)
        self._meters = [Meter() for _ in range(config.workers)]
        self._begin = self._end = 0.0
        self._domains: dict[int, Domain] = {}
        self.map = tuple(
            tuple(range(p * config.ranks_per_process, (p + 1) * config.ranks_per_process))
            for p in range(comm.size)
        )
        if balance != "none":
            self._use(self.map)
            self._sampled(balance)
        self._use(self.map)

    @property
    def domains(self) -> list[Domain]:
        return list(self._domains.values())

    def _sampled(self, balance: str) -> None:
        """The rank map after a short run that measures the cost of each rank."""
        self.solve(1)  # The first cycle touches memory and opens connections.
        report = mate.run(self._main, self._config, SAMPLED, comm=self._comm)
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
        own = ranks[self._comm.rank]
        self._domains = {rank: Domain(self._mesh, self._owners, rank) for rank in own}
        self._config = dataclasses.replace(self._config, rank_map=ranks)

    def solve(self, cycles: int) -> Timed:
        """Run this number of cycles, after a barrier."""
        report = mate.run(self._main, self._config, cycles, comm=self._comm)
        for meter, times in zip(self._meters, report.workers, strict=True):
            meter.mpi, meter.waiting = times.mpi_s, times.waiting_s
        totals = report.totals()
        return Timed(
            self._end - self._begin,
            [*self._meters],
            report.rank_compute_s,
            int(totals["messages"]),
            int(totals["bytes"]),
        )

    async def _main(self, ctx: mate.Context, cycles: int) -> None:
        domain = self._domains[ctx.rank]
        await ctx.barrier()
        if ctx.local_rank == 0:
            self._meters[:] = [Meter() for _ in self._meters]
            self._begin = perf_counter()
            ctx.reset_timers()
        await ctx.local_barrier()
        for _ in range(cycles):
            for what, level, ghosts in program():
                if ghosts:
                    await self._fill(ctx, domain, level)
                self._meters[ctx.worker].run(domain.call(what, level))
        await ctx.local_barrier()
        if ctx.local_rank == 0:
            ctx.stop_timers()
            self._end = perf_counter()

    async def _fill(self, ctx: mate.Context, domain: Domain, level: int) -> None:
        exchanges = domain.levels[level].exchanges
        requests = [ctx.irecv(e.incoming, e.rank, level) for e in exchanges]
        for exchange in exchanges:
            self._copied(ctx, exchange.pack)
        requests += [ctx.isend(e.outgoing, e.rank, level) for e in exchanges]
        await ctx.waitall(requests)
        for exchange in exchanges:
            self._copied(ctx, exchange.unpack)

    def _copied(self, ctx: mate.Context, copy: Callable[[], None]) -> None:
        self._meters[ctx.worker].copy(copy)
