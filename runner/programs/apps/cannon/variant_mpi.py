"""Cannon's algorithm in flat MPI: a process multiplies all its blocks and shifts them.

It shifts them between the steps or during a step. With P = Q a process has one block of each
matrix, as in the original (Martin 2018, 6.1).
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from runner.programs.apps.cannon.matrices import Layout, Matrix
from runner.programs.apps.common.meter import Meter, RunTimes
from runner.programs.apps.common.timed_part import TimedPart
from runner.runtimes.core import blas, library


class Flat:
    """The solver of one process.

    ``overlap``: the blocks of the next step travel while those of this step are multiplied.
    """

    def __init__(self, comm: Any, layout: Layout, overlap: bool) -> None:
        self._comm, self._layout, self._overlap = comm, layout, overlap
        rows, columns = layout.local
        self._x, self._y = layout.first(comm.rank)
        row, column = layout.place(comm.rank)
        self._left, self._right = (layout.process_at(row, column + d) for d in (-1, 1))
        self._up, self._down = (layout.process_at(row + d, column) for d in (-1, 1))
        shape = (layout.width, layout.width)
        self._spare_a, self._spare_b = np.empty((rows, *shape)), np.empty((columns, *shape))
        self._dgemm = blas.dgemm()
        self.c: dict[tuple[int, int], Matrix] = {}
        self.reset()

    def reset(self) -> None:
        """Put the factors in their places and set the product to zero."""
        rows, columns = self._layout.local
        # Columns of A travel left, rows of B travel up: each is one array, so that it is one
        # message.
        self._a = [
            np.stack([self._layout.a_block(self._x + i, self._y + j) for i in range(rows)])
            for j in range(columns)
        ]
        self._b = [
            np.stack([self._layout.b_block(self._x + i, self._y + j) for j in range(columns)])
            for i in range(rows)
        ]
        self.c = {
            (self._x + i, self._y + j): np.zeros((self._layout.width, self._layout.width))
            for i in range(rows)
            for j in range(columns)
        }
        # The first product touches the memory of the BLAS library.
        self._multiply()
        for c in self.c.values():
            c.fill(0.0)

    def solve(self, iterations: int) -> RunTimes:
        """Add this number of products to C, after a barrier."""
        meter = Meter()
        with TimedPart(self._comm) as part:
            for _ in range(iterations * self._layout.blocks):
                if self._overlap:
                    requests = self._start(meter)
                    meter.run(self._multiply)
                    self._finish(requests, meter)
                else:
                    meter.run(self._multiply)
                    self._finish(self._start(meter), meter)
        steps = iterations * self._layout.blocks
        messages = [
            x
            for x, neighbour in ((self._a[0], self._left), (self._b[0], self._up))
            if neighbour != self._comm.rank
        ]
        return RunTimes(
            part.seconds,
            [meter],
            [meter.compute],
            steps * len(messages),
            steps * sum(x.nbytes for x in messages),
        )

    def _multiply(self) -> None:
        for (x, y), c in self.c.items():
            i, j = x - self._x, y - self._y
            library.add_product(self._dgemm, self._a[j][i], self._b[i][j], c)

    def _start(self, meter: Meter) -> list[Any]:
        begin = perf_counter()
        comm, requests = self._comm, []
        if self._left != comm.rank:
            requests.append(comm.Irecv(self._spare_a, self._right, 0))
            requests.append(comm.Isend(self._a[0], self._left, 0))
        if self._up != comm.rank:
            requests.append(comm.Irecv(self._spare_b, self._down, 1))
            requests.append(comm.Isend(self._b[0], self._up, 1))
        meter.mpi += perf_counter() - begin
        return requests

    def _finish(self, requests: list[Any], meter: Meter) -> None:
        """Wait, then rotate the blocks: the received one is the last, and the sent one is free."""
        from mpi4py import MPI

        begin = perf_counter()
        MPI.Request.Waitall(requests)
        meter.waiting += perf_counter() - begin
        rank = self._comm.rank
        first_a, first_b = self._a.pop(0), self._b.pop(0)
        self._a.append(first_a if self._left == rank else self._spare_a)
        self._b.append(first_b if self._up == rank else self._spare_b)
        if self._left != rank:
            self._spare_a = first_a
        if self._up != rank:
            self._spare_b = first_b
