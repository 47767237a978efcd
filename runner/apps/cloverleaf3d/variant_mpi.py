"""The hydrodynamics step in flat MPI: a block per process, and halos in three stages.

With three stages the values of edges and corners travel too.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from runner.apps.cloverleaf3d.block import PHASES, Block
from runner.apps.cloverleaf3d.problem import STATE
from runner.apps.common_layout import Layout
from runner.apps.common_meter import Meter, Timed


class Flat:
    """The solver of one process; :meth:`solve` may be called again after the blocks are reset."""

    def __init__(self, comm: Any, layout: Layout) -> None:
        self._comm = comm
        self._block = Block(layout.size, *layout.block(comm.rank))
        self.blocks = [self._block]
        self._behind = {(f.axis, f.side): f.process for f in layout.faces(comm.rank, 0)}
        self._messages = self._bytes = 0

    def solve(self, steps: int) -> Timed:
        """Make this number of time steps, after a barrier."""
        meter = Meter()
        self._exchange(STATE, Meter())
        self._messages = self._bytes = 0
        self._comm.Barrier()
        begin = perf_counter()
        for _ in range(steps):
            for kernels, fields in PHASES:
                meter.run(lambda kernels=kernels: self._block.run(kernels))  # type: ignore[misc]
                self._exchange(fields, meter)
        elapsed = perf_counter() - begin
        return Timed(elapsed, [meter], [meter.compute], self._messages, self._bytes)

    def _exchange(self, fields: Sequence[int], meter: Meter) -> None:
        for axis in range(3):
            self._stage(fields, axis, meter)

    def _stage(self, fields: Sequence[int], axis: int, meter: Meter) -> None:
        """Exchange both faces of one axis."""
        from mpi4py import MPI

        comm, block = self._comm, self._block
        sides = [side for side in (0, 1) if (axis, side) in self._behind]
        incoming = {side: block.buffer(len(fields), axis) for side in sides}
        outgoing = {side: block.buffer(len(fields), axis) for side in sides}
        begin = perf_counter()
        # A message is named by the side of its sender through which it left.
        requests = [
            comm.Irecv(incoming[side], self._behind[axis, side], 1 - side) for side in sides
        ]
        posted = perf_counter()
        for side in sides:
            block.pack(fields, axis, side, outgoing[side])
        packed = perf_counter()
        requests += [comm.Isend(outgoing[side], self._behind[axis, side], side) for side in sides]
        sent = perf_counter()
        MPI.Request.Waitall(requests)
        arrived = perf_counter()
        for side in (0, 1):
            if side in incoming:
                block.unpack(fields, axis, side, incoming[side])
            else:
                block.reflect(fields, axis, side)
        meter.mpi += (posted - begin) + (sent - packed)
        meter.waiting += arrived - sent
        meter.buffering += (packed - posted) + (perf_counter() - arrived)
        self._messages += len(sides)
        self._bytes += sum(buffer.nbytes for buffer in outgoing.values())
