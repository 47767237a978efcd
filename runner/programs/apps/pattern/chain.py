"""Blocking messages from rank to rank: a pipeline, and sweeps over a grid."""

from __future__ import annotations

from typing import Any

from runner.programs.apps.common.grid import coordinates, neighbour
from runner.programs.apps.pattern.options import Options
from runner.programs.apps.pattern.work import Message, Work, share

PLANES = 16
"""Steps of a sweep before the next one comes back from the other corner."""


class Chain:
    """In a step a rank receives from the ranks before it, works, and sends to those after it.

    ``axes`` 1: a pipeline, always in one direction. 2: sweeps over a 2-D grid, which reverse after
    every :data:`PLANES` steps.
    """

    def __init__(self, comm: Any, options: Options, work: Work, axes: int) -> None:
        from mpi4py import MPI

        self._comm, self._work = comm, work
        self._calls = share(options, comm.rank, comm.size)
        grid = tuple(MPI.Compute_dims(comm.size, axes))
        position = coordinates(comm.rank, grid)
        self._turns = axes > 1
        self._out = Message(options.size, comm.rank, is_outgoing=True)
        # The neighbours towards the first and towards the last corner.
        self._ways: list[list[int]] = []
        for direction in (-1, 1):
            ranks = (neighbour(position, grid, axis, direction) for axis in range(axes))
            self._ways.append([rank for rank in ranks if rank is not None])
        self._incoming = {
            rank: Message(options.size, rank, is_outgoing=False)
            for rank in self._ways[0] + self._ways[1] * self._turns
        }

    def run(self, first: int, end: int) -> None:
        send, receive, out = self._comm.Send, self._comm.Recv, self._out
        buffer = out.buffer
        before, after = self._ways
        arriving = {rank: message.buffer for rank, message in self._incoming.items()}
        for step in range(first, end):
            back = self._turns and step // PLANES % 2
            for rank in after if back else before:
                receive(arriving[rank], rank)
                self._incoming[rank].check(step)
            self._work.do(self._calls)
            out.stamp(step)
            for rank in before if back else after:
                send(buffer, rank)

    def wrong(self) -> str:
        return "".join({message.wrong() for message in self._incoming.values()})
