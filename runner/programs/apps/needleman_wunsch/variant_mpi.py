"""Needleman-Wunsch as plain MPI: rows of blocks dealt out to the processes (Cicotti 2011, 6.2)."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from runner.programs.apps.needleman_wunsch.options import Options
from runner.programs.apps.needleman_wunsch.problem import Bases, Block, Scores, cut

_TAG = 3


class Rows:
    """The rows of blocks of this process: every ``comm.size``-th one, from left to right."""

    def __init__(self, comm: Any, first: Bases, second: Bases, options: Options) -> None:
        self._comm = comm
        rows, columns = cut(len(first), options.rows), cut(len(second), options.columns)
        self._blocks = {
            number: [Block(first, second, rows[number], part) for part in columns]
            for number in range(comm.rank, len(rows), comm.size)
        }
        self._rows, self._columns = rows, columns
        self._before, self._after = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
        self.score: int | None = None

    def _sweep(self, number: int, place: int, line: Scores, left: Scores) -> Scores:
        """Compute a block; returns its last column.  ``line`` becomes its last row."""
        block = self._blocks[number][place]
        if place == 0:
            left = block.first_column()
        right = np.empty(len(self._rows[number]), np.int32)
        block.sweep(line, left, right)
        if number == len(self._rows) - 1 and place == len(self._columns) - 1:
            self.score = int(line[-1])
        return right

    def synchronous(self) -> None:
        """In steps: each process computes a block, then all exchange around the ring with blocking
        calls. Even ranks send first, odd ones receive first."""
        comm, last = self._comm, len(self._rows) - 1
        steps = schedule(comm.size, len(self._rows), len(self._columns))
        order = [(number, place) for number in self._blocks for place in range(len(self._columns))]
        came: deque[Scores] = deque()
        left = np.empty(0, np.int32)
        for computing in steps:
            line: Scores | None = None
            index = computing[comm.rank]
            if index is not None:
                number, place = order[index]
                line = self._blocks[0][place].first_line() if number == 0 else came.popleft()
                left = self._sweep(number, place, line, left)
                if number == last:
                    line = None
            if comm.size == 1:
                if line is not None:
                    came.append(line)
                continue
            arriving = self._arriving(computing)
            if comm.rank % 2 == 0 and line is not None:
                comm.Send(line, self._after, _TAG)
            if arriving is not None:
                comm.Recv(arriving, self._before, _TAG)
                came.append(arriving)
            if comm.rank % 2 == 1 and line is not None:
                comm.Send(line, self._after, _TAG)

    def _arriving(self, computing: list[int | None]) -> Scores | None:
        """Room for the line that the previous process sends in this step; None if it sends none."""
        index = computing[self._before]
        if index is None:
            return None
        number = self._before + index // len(self._columns) * self._comm.size
        if number == len(self._rows) - 1:
            return None
        return np.empty(len(self._columns[index % len(self._columns)]) + 1, np.int32)

    def asynchronous(self, window: int) -> None:
        """The same schedule with receives posted ``window`` blocks ahead and late completion of
        sends."""
        from mpi4py import MPI

        comm, last = self._comm, len(self._rows) - 1
        order = [(number, place) for number in self._blocks for place in range(len(self._columns))]
        pending = deque(one for one in order if one[0] > 0) if comm.size > 1 else deque()
        receives: deque[tuple[Any, Scores]] = deque()
        local_lines: deque[Scores] = deque()
        sends: deque[tuple[Any, Scores]] = deque()

        def post() -> None:
            while pending and len(receives) < window:
                line = np.empty(len(self._columns[pending.popleft()[1]]) + 1, np.int32)
                receives.append((comm.Irecv(line, self._before, _TAG), line))

        left = np.empty(0, np.int32)
        post()
        for number, place in order:
            if number == 0:
                line = self._blocks[0][place].first_line()
            elif comm.size == 1:
                line = local_lines.popleft()
            else:
                request, line = receives.popleft()
                request.Wait()
                post()
            left = self._sweep(number, place, line, left)
            if number == last:
                continue
            if comm.size == 1:
                local_lines.append(line)
                continue
            sends.append((comm.Isend(line, self._after, _TAG), line))
            while sends and sends[0][0].Test():
                sends.popleft()
        MPI.Request.Waitall([request for request, _ in sends])


def schedule(processes: int, rows: int, columns: int) -> list[list[int | None]]:
    """For each step the number of the block that each process computes, counted among its own."""
    counts = [len(range(rank, rows, processes)) * columns for rank in range(processes)]
    when: list[list[int]] = [[] for _ in range(processes)]
    for group in range(-(-rows // processes)):
        for rank in range(processes):
            for place in range(columns):
                index = group * columns + place
                if index >= counts[rank]:
                    break
                step = when[rank][-1] + 1 if when[rank] else 0
                if rank > 0:
                    step = max(step, when[rank - 1][index] + 1)
                elif group > 0:
                    step = max(step, when[-1][index - columns] + 1)
                when[rank].append(step)
    steps = 1 + max(own[-1] for own in when if own)
    blocks: list[list[int | None]] = [[None] * processes for _ in range(steps)]
    for rank, own in enumerate(when):
        for index, step in enumerate(own):
            blocks[step][rank] = index
    return blocks
