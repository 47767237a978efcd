"""What is timed: each operation as a function that does it ``count`` times on given buffers.

The sizes are bytes of the message that one rank sends to one other (ping-pong) or contributes
(collectives), as in the OSU suite.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Operation = Callable[[int], None]


def pingpong(comm: Any, size: int) -> Operation:
    """Ranks 0 and 1 send a message to and fro; other ranks do nothing."""
    from mpi4py import MPI

    buffer = np.zeros(size, np.uint8)
    message = [buffer, MPI.BYTE]

    def work(count: int) -> None:
        if comm.rank == 0:
            for _ in range(count):
                comm.Send(message, 1, 1)
                comm.Recv(message, 1, 2)
        elif comm.rank == 1:
            for _ in range(count):
                comm.Recv(message, 0, 1)
                comm.Send(message, 0, 2)

    return work


def barrier(comm: Any, size: int) -> Operation:
    def work(count: int) -> None:
        for _ in range(count):
            comm.Barrier()

    return work


def bcast(comm: Any, size: int) -> Operation:
    buffer = np.zeros(size, np.uint8)

    def work(count: int) -> None:
        for _ in range(count):
            comm.Bcast(buffer, 0)

    return work


def reduce(comm: Any, size: int) -> Operation:
    mine, whole = _doubles(size), _doubles(size)

    def work(count: int) -> None:
        for _ in range(count):
            comm.Reduce(mine, whole, root=0)

    return work


def allreduce(comm: Any, size: int) -> Operation:
    mine, whole = _doubles(size), _doubles(size)

    def work(count: int) -> None:
        for _ in range(count):
            comm.Allreduce(mine, whole)

    return work


def allgather(comm: Any, size: int) -> Operation:
    mine, whole = np.zeros(size, np.uint8), np.zeros(size * comm.size, np.uint8)

    def work(count: int) -> None:
        for _ in range(count):
            comm.Allgather(mine, whole)

    return work


def alltoall(comm: Any, size: int) -> Operation:
    mine, whole = np.zeros(size * comm.size, np.uint8), np.zeros(size * comm.size, np.uint8)

    def work(count: int) -> None:
        for _ in range(count):
            comm.Alltoall(mine, whole)

    return work


def _doubles(size: int) -> Any:
    return np.zeros(max(size // 8, 1))


OPERATIONS: dict[str, Callable[[Any, int], Operation]] = {
    "pingpong": pingpong,
    "barrier": barrier,
    "bcast": bcast,
    "reduce": reduce,
    "allreduce": allreduce,
    "allgather": allgather,
    "alltoall": alltoall,
}
