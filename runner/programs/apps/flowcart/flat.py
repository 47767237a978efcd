"""The solver as flat MPI: one rank per process."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from runner.programs.apps.common.meter import Meter, RunTimes
from runner.programs.apps.common.timed_part import TimedPart
from runner.programs.apps.flowcart.cycle import COUNT, EXCHANGE_ARRAYS
from runner.programs.apps.flowcart.domain import Domain
from runner.programs.apps.flowcart.mesh import Mesh


class Flat:
    """The cells of this process; after each stage it exchanges the values for the next one."""

    def __init__(self, comm: Any, mesh: Mesh) -> None:
        self._comm = comm
        self.domain = Domain(mesh, mesh.shares(comm.size), [comm.rank])
        self._stages, self._packing = self.domain.stages(0), self.domain.packing(0)
        layers = self.domain.layers
        # The messages into each array and from each level are the same in every cycle.
        self._receives = [
            [
                comm.Recv_init(values[e.first : e.last], e.rank, level)
                for e in layer.slices[0].exchanges
            ]
            for level, layer in enumerate(layers)
            for values in layer.values
        ]
        self._sends = [
            [comm.Send_init(e.outgoing, e.rank, level) for e in layer.slices[0].exchanges]
            for level, layer in enumerate(layers)
        ]
        self._sizes = [
            sum(e.outgoing.nbytes for e in layer.slices[0].exchanges) for layer in layers
        ]
        self._messages = self._bytes = 0

    def solve(self, cycles: int) -> RunTimes:
        """Run this number of cycles from the domain's values, after a barrier."""
        for stage in range(COUNT):
            # The ghosts already hold the start values; this opens the connections.
            self._exchange(stage, Meter())
        meter = Meter()
        self._messages = self._bytes = 0
        with TimedPart(self._comm) as part:
            for _ in range(cycles):
                for stage in range(COUNT):
                    for call in self._stages[stage]:
                        meter.run(call)
                    self._exchange(stage, meter)
        return RunTimes(part.seconds, [meter], [meter.compute], self._messages, self._bytes)

    def _exchange(self, stage: int, meter: Meter) -> None:
        """Fill the ghosts that the next stage reads."""
        from mpi4py import MPI

        which = EXCHANGE_ARRAYS[stage]
        if which < 0 or not (sends := self._sends[which // 2]):
            return
        receives = self._receives[which]
        begin = perf_counter()
        MPI.Prequest.Startall(receives)
        post_end = perf_counter()
        for copy in self._packing[stage]:
            copy()
        pack_end = perf_counter()
        MPI.Prequest.Startall(sends)
        send_end = perf_counter()
        MPI.Request.Waitall(receives + sends)
        wait_end = perf_counter()
        meter.mpi += (post_end - begin) + (send_end - pack_end)
        meter.waiting += wait_end - send_end
        meter.buffering += pack_end - post_end
        self._messages += len(sends)
        self._bytes += self._sizes[which // 2]
