"""Variant mpi: bulk-synchronous; all exchange boundary data, then all apply the stencil."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runner.programs.apps.common.grid import coordinates
from runner.programs.apps.common.layout import Layout
from runner.programs.apps.common.meter import Meter, RunTimes
from runner.programs.apps.common.timed_part import TimedPart
from runner.programs.apps.minighost.domain import Domain
from runner.programs.apps.minighost.exchange import Exchange
from runner.programs.apps.minighost.options import Options


class Bulk:
    """The solver of one process; :meth:`solve` may be called again after the domain is reset.

    ``layout`` has the processes' parts of the grid, one for each process.
    """

    def __init__(self, comm: Any, options: Options, layout: Layout) -> None:
        self._comm, self._groups = comm, options.groups
        self.domain = self._domain(layout, comm.rank, options.variables)
        remote = [(f.axis, f.side, f.process) for f in layout.faces(comm.rank, 0)]
        self._exchanges = self._exchanges_of(remote, layout, options)
        self._prepare()

    def _domain(self, layout: Layout, rank: int, variables: int) -> Domain:
        return Domain(layout.size, *layout.block(rank), variables)

    def _exchanges_of(
        self, remote: Sequence[tuple[int, int, int]], layout: Layout, options: Options
    ) -> Sequence[Any]:
        """The exchange of each group of variables over these faces (axis, side, process)."""
        comm, whole = self._comm, self.domain.whole
        place = coordinates(comm.rank, layout.processes)
        return [
            Exchange(
                comm,
                self.domain.faces(whole, remote, group, 6 * group.start),
                place,
                options.order,
                options.prepost,
            )
            for group in self._groups
        ]

    def _prepare(self) -> None:
        """Make the calls of :meth:`_run`."""
        whole = self.domain.whole
        self._calls = [self.domain.advance(whole, group) for group in self._groups]

    def solve(self, steps: int) -> RunTimes:
        """Time the steps on this process, after a barrier.

        One exchange comes before, so that the timed part opens no connection.
        """
        for exchange in self._exchanges:
            exchange.run(self.domain.current, Meter(), False)
        return self._run(steps)

    def _run(self, steps: int) -> RunTimes:
        meter = Meter()
        with TimedPart(self._comm) as part:
            self._steps(steps, meter, lambda group, field: meter.run(self._calls[group][field]))
        return self._run_times(steps, part.seconds, [meter])

    def _steps(self, steps: int, meter: Meter, advance: Callable[[int, int], Any]) -> None:
        """All steps; ``advance(group, field)`` moves a group of variables on from this field."""
        domain, exchanges = self.domain, list(enumerate(self._exchanges))
        for step in range(1, steps + 1):
            field = domain.current
            for group, exchange in exchanges:
                exchange.run(field, meter, step < steps)
                advance(group, field)
            domain.current = 1 - field

    def _run_times(self, steps: int, seconds: float, meters: list[Meter]) -> RunTimes:
        messages = steps * sum(exchange.messages for exchange in self._exchanges)
        volume = steps * sum(exchange.bytes for exchange in self._exchanges)
        return RunTimes(seconds, meters, [m.compute for m in meters], messages, volume)
