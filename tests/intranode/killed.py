"""A program one of whose ranks is killed while the others work with it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from runner.runtimes.intranode import Cab, Config
from tests.intranode.noting import noted

VICTIM = 1


def main(how: str, after_s: float, place: Path) -> None:
    """Rank 1 is killed some time after the start; the others note in files what they saw of it."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    small = Config(threshold=1024, chunk_small=1024, chunk_medium=1024, chunk_large=1024)
    cab = Cab(comm, small)
    big, other = cab.zeros(1 << 18), cab.zeros(1 << 18)
    far = cab.arrays_of_all(big)[VICTIM]
    cab.barrier()
    if cab.rank == VICTIM:
        threading.Timer(after_s, os.kill, (os.getpid(), signal.SIGKILL)).start()
    noted(cab.rank, cab.size, place, lambda: work(cab, comm, how, (big, other, far)))


def work(cab: Cab, comm: Any, how: str, arrays: tuple[Any, Any, Any]) -> None:
    """Work together for ever."""
    big, other, far = arrays
    while True:
        if how == "barrier":
            if cab.rank == 0:
                cab.copy(other, big)
            cab.barrier()
        elif how == "message":
            if cab.rank == 0:
                cab.send(big, VICTIM)
            elif cab.rank == VICTIM:
                cab.recv(other, 0)
                cab.send(other, 2)
            else:
                cab.recv(other, VICTIM)
        elif how == "lock":
            cab.accumulate(far, other, VICTIM)
            cab.barrier()
        elif cab.rank != VICTIM:
            cab.wait(comm.Irecv(bytearray(1), VICTIM))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), Path(sys.argv[3]))
