"""What is timed: each operation as a function that does it ``count`` times on given buffers.

The sizes are bytes of the message that one rank sends to one other (ping-pong) or contributes
(collectives), as in the OSU suite.  A ping-pong may walk through several buffers: one that is used
again and again stays in the processors' caches, where a second copy costs little.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

Operation = Callable[[int], None]


def pingpong(comm: Any, size: int, buffers: int = 1) -> Operation:
    """Ranks 0 and 1 send a message to and fro; other ranks do nothing.

    Each round trip sends the next of ``buffers`` buffers of ``size`` bytes and receives into the
    one half the ring away, so that with many of them neither was in use a short time ago.
    """
    from mpi4py import MPI

    # Written, not only allocated: pages never touched are all the kernel's one page of zeros.
    ring = [[np.full(size, 1, np.uint8), MPI.BYTE] for _ in range(buffers)]
    turns = itertools.cycle([(ring[i], ring[i - buffers // 2]) for i in range(buffers)])

    def work(count: int) -> None:
        if comm.rank == 0:
            for out, back in itertools.islice(turns, count):
                comm.Send(out, 1, 1)
                comm.Recv(back, 1, 2)
        elif comm.rank == 1:
            for out, back in itertools.islice(turns, count):
                comm.Recv(back, 0, 1)
                comm.Send(out, 0, 2)

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
