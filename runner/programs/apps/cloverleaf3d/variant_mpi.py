"""The hydrodynamics step in flat MPI: a block per process, and halos in three stages.

With three stages the values of edges and corners travel, too. All fields of a face are one message.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

from runner.programs.apps.cloverleaf3d.block import Block, Fields
from runner.programs.apps.cloverleaf3d.problem import EXCHANGES
from runner.programs.apps.common.layout import Layout
from runner.programs.apps.common.meter import Meter, RunTimes
from runner.programs.apps.common.timed_part import TimedPart

Call = Callable[[], None]


class Stage:
    """The exchange of both faces of one axis after one kernel: buffers and bound copies."""

    def __init__(self, block: Block, phase: int, axis: int, behind: dict[int, int]) -> None:
        """``behind``: the process behind each face (``2 * axis + side``) that is not a wall."""
        self.sends: list[tuple[Fields, int, int]] = []
        self.receives: list[tuple[Fields, int, int]] = []
        self.pack: list[Call] = []
        self.unpack: list[Call] = []
        for side in (0, 1):
            face = 2 * axis + side
            if face not in behind:
                self.unpack.append(block.reflector(phase, face))
                continue
            outgoing, incoming = block.buffer(phase, face), block.buffer(phase, face)
            # A message is identified by the side through which it left its sender.
            self.sends.append((outgoing, behind[face], side))
            self.receives.append((incoming, behind[face], 1 - side))
            self.pack.append(block.packer(phase, face, outgoing))
            self.unpack.append(block.unpacker(phase, face, incoming))


class Flat:
    """The solver of one process; :meth:`solve` may be called again after the blocks are reset."""

    def __init__(self, comm: Any, layout: Layout) -> None:
        self._comm = comm
        self._block = Block(layout.size, *layout.block(comm.rank))
        self.blocks = [self._block]
        behind = {2 * f.axis + f.side: f.process for f in layout.faces(comm.rank, 0)}
        self._stages = [
            [Stage(self._block, phase, axis, behind) for axis in range(3)]
            for phase in range(len(EXCHANGES))
        ]
        self._messages = self._bytes = 0

    def solve(self, steps: int) -> RunTimes:
        """Make this number of time steps, after an untimed one and a barrier.

        The first step opens the connections and touches all memory.
        """
        self._step(Meter())
        self._block.reset()
        meter = Meter()
        self._messages = self._bytes = 0
        with TimedPart(self._comm) as part:
            for _ in range(steps):
                self._step(meter)
        return RunTimes(part.seconds, [meter], [meter.compute], self._messages, self._bytes)

    def _step(self, meter: Meter) -> None:
        for phase, stages in enumerate(self._stages):
            meter.run(lambda phase=phase: self._block.run(phase))  # type: ignore[misc]
            for stage in stages:
                self._exchange(stage, meter)
        meter.run(lambda: self._block.run(len(EXCHANGES)))

    def _exchange(self, stage: Stage, meter: Meter) -> None:
        from mpi4py import MPI

        comm = self._comm
        begin = perf_counter()
        requests = [comm.Irecv(*message) for message in stage.receives]
        post_end = perf_counter()
        for call in stage.pack:
            call()
        pack_end = perf_counter()
        requests += [comm.Isend(*message) for message in stage.sends]
        send_end = perf_counter()
        if requests:
            MPI.Request.Waitall(requests)
        wait_end = perf_counter()
        for call in stage.unpack:
            call()
        meter.mpi += (post_end - begin) + (send_end - pack_end)
        meter.waiting += wait_end - send_end
        meter.buffering += (pack_end - post_end) + (perf_counter() - wait_end)
        self._messages += len(stage.sends)
        self._bytes += sum(buffer.nbytes for buffer, _, _ in stage.sends)
