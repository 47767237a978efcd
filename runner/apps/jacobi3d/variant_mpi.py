"""Basic MPI: one block per rank, all computing, then all communicating (Martin 2018, 5.2.1)."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from runner.apps.common_grid import Shape
from runner.apps.jacobi3d.block import Block
from runner.apps.jacobi3d.halo import PHASES, Halo


class BasicMPI:
    """The solver of one rank; :meth:`solve` may be called again after ``block.reset()``."""

    def __init__(self, comm: Any, block: Block, grid: Shape) -> None:
        self._comm, self._block = comm, block
        self._halo = Halo(comm, block, grid)

    def solve(self, iterations: int) -> tuple[float, dict[str, float]]:
        """Seconds of this rank for the iterations, after a barrier, and how they were spent."""
        seconds = dict.fromkeys(PHASES, 0.0)
        # The ghosts already hold these values: this opens the connections before the clock runs.
        self._halo.exchange(dict(seconds))
        self._comm.Barrier()
        begin = perf_counter()
        for _ in range(iterations):
            before = perf_counter()
            self._block.step()
            seconds["compute"] += perf_counter() - before
            self._halo.exchange(seconds)
        return perf_counter() - begin, seconds
