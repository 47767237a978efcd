"""A rank of a node dies while the others are in a collective; each writes what it was told.

mpirun --enable-recovery -n 4 python -m tests.intranode.mcoll.killed FOLDER
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

from runner.runtimes.intranode.mcoll import Config, MultiObject
from tests.intranode.noting import noted

COMM = MPI.COMM_WORLD


def main(folder: Path) -> None:
    made = MultiObject(COMM, Config(waiting="sleep"), nodes=1)
    send, recv = np.zeros(8), np.zeros(8)
    prepared = made.allreduce_init(send, recv)
    prepared.run()
    if COMM.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)

    def work() -> None:
        for _ in range(3):
            prepared.run()

    noted(COMM.rank, COMM.size, folder, work)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
