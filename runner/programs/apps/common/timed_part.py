"""The timed part of a program, which its figure covers.

It is marked by MPI_Pcontrol, the standard's call for profiling libraries, which separates its MPI
calls from those before and after (:func:`runner.trace.run.run_with_counts`).
"""

from __future__ import annotations

from time import perf_counter
from typing import Any


class TimedPart:
    """A ``with`` block that starts with a barrier; then ``seconds`` are its time on this rank."""

    def __init__(self, comm: Any) -> None:
        self.seconds = 0.0
        self._comm = comm
        self._begin = 0.0

    def __enter__(self) -> TimedPart:
        from mpi4py import MPI

        self._mark = MPI.Pcontrol
        self._comm.Barrier()
        self._mark(1)
        self._begin = perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = perf_counter() - self._begin
        self._mark(0)
