"""What the library refuses, seen by two ranks; prints it in JSON, by rank."""

from __future__ import annotations

import sys

import numpy as np

from runner.runtimes.intranode.daps import Config, Daps
from tests.intranode.refusing import refused, report


def main(nodes: int) -> None:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    refused(lambda: Daps(comm, Config(), 3))
    daps = Daps(comm, Config(), nodes)
    array, short, other = daps.zeros((10, 10)), daps.zeros(99), 1 - daps.rank
    window = daps.window(array)
    numbers = daps.window(daps.zeros(3, np.int64))
    refused(lambda: daps.isend(np.zeros(3), other))
    refused(lambda: window.put(other, np.zeros((10, 10))))
    refused(lambda: daps.window(np.zeros(3 * (daps.rank == 1))))
    refused(lambda: daps.isend(array, 2))
    refused(lambda: window.get(-1, array))
    refused(lambda: window.put(other, short))
    refused(lambda: numbers.put(other, short))
    refused(lambda: window.get(other, array, 10))
    refused(lambda: window.get(other, array, (1, 1, 1)))
    refused(lambda: window.fetch_add(other, (0, 0), 1))
    refused(lambda: numbers.fetch_add(other, slice(None), 1))
    refused(lambda: window.accumulate(other, daps.zeros(8, bool)))
    refused(lambda: window.get(other, array[::-1]))
    refused(lambda: daps.configure(Config(progress="ghosts", ghosts=2)))
    refused(lambda: daps.configure(Config(eager=9000)))
    # A message of another size is an error of the receiver alone, and both go on.
    for size in (50, 5000):
        big, wrong = daps.zeros(size), daps.zeros(size + 1)
        sent = daps.isend(big, other, 2)
        refused(lambda wrong=wrong: daps.recv(wrong, other, 2))
        daps.waitall([sent, sent])
        daps.wait(sent)
    many_sends = [daps.isend(short, other, 3) for _ in range(64)]
    refused(lambda: daps.isend(short, other, 3))
    comm.Barrier()
    daps.waitall([*many_sends, *(daps.irecv(short, other, 3) for _ in range(64))])
    report(comm)
    daps.close()


if __name__ == "__main__":
    main(int(sys.argv[1]))
