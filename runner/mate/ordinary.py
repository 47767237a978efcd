"""What an annotated program may ask of the runtime, as an ordinary MPI program without it.

A program that imports this runs under plain MPI: every process is one rank.  The translator
(:mod:`runner.mate.translate`) puts :mod:`runner.mate.translated` in its place.
"""

from __future__ import annotations

from typing import Any


def local_rank() -> int:
    """The rank's number in its process."""
    return 0


def local_count() -> int:
    """Ranks of the process."""
    return 1


def process() -> int:
    """The process's number."""
    from mpi4py import MPI

    return int(MPI.COMM_WORLD.rank)


def process_count() -> int:
    """How many processes there are."""
    from mpi4py import MPI

    return int(MPI.COMM_WORLD.size)


def add_local_neighbor(local: int) -> None:
    """This rank's ``@`` dependencies wait for that local rank too."""


def local_bcast(value: Any = None, root: int = 0) -> Any:
    """The object that local rank ``root`` gave, itself and not a copy."""
    return value


def local_barrier() -> None:
    """Until all ranks of the process have come."""
