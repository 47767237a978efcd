"""Variant mpi: one block per rank; all ranks compute, then all communicate (Martin 2018, 5.2.1)."""

from __future__ import annotations

from typing import Any

from runner.programs.apps.common.layout import Layout
from runner.programs.apps.common.meter import Meter, RunTimes
from runner.programs.apps.common.timed_part import TimedPart
from runner.programs.apps.jacobi3d.block import Block
from runner.programs.apps.jacobi3d.halo import Halo


class BasicMPI:
    """The solver of one rank; :meth:`solve` may be called again after the blocks are reset."""

    def __init__(self, comm: Any, layout: Layout, cache_block: int) -> None:
        self._comm = comm
        self._block = Block(layout.size, *layout.block(comm.rank), cache_block)
        self.blocks = [self._block]
        self._halo = Halo(comm, self._block, layout)

    def solve(self, iterations: int) -> RunTimes:
        """Time the iterations on this rank, after a barrier."""
        meter = Meter()
        # The ghosts already hold these values; the exchange opens the connections before the clock
        # starts.
        self._halo.exchange(Meter())
        with TimedPart(self._comm) as part:
            for _ in range(iterations):
                self._iterate(meter)
        traffic = iterations * self._halo.messages, iterations * self._halo.bytes
        return RunTimes(part.seconds, [meter], [meter.compute], *traffic)

    def _iterate(self, meter: Meter) -> None:
        meter.run(self._block.step)
        self._halo.exchange(meter)
