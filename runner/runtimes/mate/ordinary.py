"""The runtime's functions for an annotated program that runs as an ordinary MPI program.

A program that imports this module runs under plain MPI: every process is one rank. The translator
(:mod:`runner.runtimes.mate.translate`) replaces it by :mod:`runner.runtimes.mate.translated`.
"""

from __future__ import annotations

from typing import Any


def local_rank() -> int:
    """The rank's number in its process."""
    return 0


def local_count() -> int:
    """Number of ranks of the process."""
    return 1


def process() -> int:
    """The process's number."""
    from mpi4py import MPI

    return int(MPI.COMM_WORLD.rank)


def process_count() -> int:
    """Number of processes."""
    from mpi4py import MPI

    return int(MPI.COMM_WORLD.size)


def add_local_neighbor(local: int) -> None:
    """Make this rank's ``@`` dependencies wait for that local rank too."""


def local_bcast(value: Any = None, root: int = 0) -> Any:
    """The object that local rank ``root`` passed: the object itself, not a copy."""
    return value


def local_barrier() -> None:
    """Wait until all ranks of the process have arrived."""
