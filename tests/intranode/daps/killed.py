"""A program one of whose ranks is killed while the others work with it."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from runner.runtimes.intranode.daps import Config, Daps
from runner.runtimes.intranode.daps.daps_records import OWNER
from tests.intranode.noting import MOST_S, noted

VICTIM = 1


def main(how: str, after_s: float, place: Path) -> None:
    """Rank 1 is killed some time after the start; the others note in files what they saw of it."""
    from mpi4py import MPI

    # Others would go on to work on the memory of a rank that has died.
    progress = "none" if how == "window" else "dynamic"
    daps = Daps(MPI.COMM_WORLD, Config(progress=progress), 2)
    array, other = daps.zeros(1 << 16), daps.zeros(1 << 16)
    window = daps.window(array)
    daps.barrier()
    if daps.rank == VICTIM:
        if how == "holder":
            # It dies while it makes the progress of rank 0, of its node.
            record = daps.record_of(0)
            while record[OWNER.in_progress >> 3]:
                time.sleep(0.001)
            record[OWNER.in_progress >> 3] = VICTIM + 1
        threading.Timer(after_s, os.kill, (os.getpid(), signal.SIGKILL)).start()
    elif how == "holder":
        time.sleep(0.05)
    noted(daps.rank, daps.size, place, lambda: work(daps, how, window, other))


def work(daps: Daps, how: str, window: Any, other: Any) -> None:
    """Work together until one is missing, or for long."""
    until = time.monotonic() + MOST_S
    while time.monotonic() < until:
        if how == "barrier":
            daps.barrier()
        elif how == "message":
            daps.waitall([daps.irecv(other, VICTIM), *_sent(daps, other)])
        elif daps.rank == VICTIM:
            time.sleep(MOST_S)
        else:
            window.put(VICTIM, other)
            daps.flush()


def _sent(daps: Daps, array: Any) -> list[Any]:
    if daps.rank != VICTIM:
        return []
    return [daps.isend(array, rank) for rank in range(daps.size)]


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), Path(sys.argv[3]))
