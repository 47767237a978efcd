"""What the library refuses, seen by two ranks; prints one line for each that it does not."""

from __future__ import annotations

import sys

import numpy as np

from runner.runtimes.intranode.daps import Config, Daps
from tests.intranode.refusing import refused


def main(nodes: int) -> None:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    refused("--nodes 3: expected 0 to 2, the number of ranks", lambda: Daps(comm, Config(), 3))
    daps = Daps(comm, Config(), nodes)
    array, short, other = daps.zeros((10, 10)), daps.zeros(99), 1 - daps.rank
    window = daps.window(array)
    numbers = daps.window(daps.zeros(3, np.int64))
    refused("not in shared memory", lambda: daps.isend(np.zeros(3), other))
    refused("not in shared memory", lambda: window.put(other, np.zeros((10, 10))))
    refused("not in shared memory", lambda: daps.window(np.zeros(3 * (daps.rank == 1))))
    refused("rank 2: expected 0 to 1", lambda: daps.isend(array, 2))
    refused("rank -1: expected 0 to 1", lambda: window.get(-1, array))
    refused("99 elements of float64 for 100 of float64", lambda: window.put(other, short))
    refused("99 elements of float64 for 3 of int64", lambda: numbers.put(other, short))
    refused("index 10: expected -10 to 9", lambda: window.get(other, array, 10))
    refused("3 indices for an array with 2 axes", lambda: window.get(other, array, (1, 1, 1)))
    refused("fetch_add of 1 elements of float64", lambda: window.fetch_add(other, (0, 0), 1))
    refused("fetch_add of 3 elements", lambda: numbers.fetch_add(other, slice(None), 1))
    refused("an array of bool is added", lambda: window.accumulate(other, daps.zeros(8, bool)))
    refused("negative stride", lambda: window.get(other, array[::-1]))
    many = "--ghosts 2: a node has"
    refused(many, lambda: daps.configure(Config(progress="ghosts", ghosts=2)))
    refused("--eager 9000 is above 8192", lambda: daps.configure(Config(eager=9000)))
    # A message of another size is an error of the receiver alone, and both go on.
    for size in (50, 5000):
        big, wrong = daps.zeros(size), daps.zeros(size + 1)
        sent = daps.isend(big, other, 2)
        text = f"a message from rank {other} has {8 * size} bytes, the array {8 * size + 8}"
        refused(text, lambda wrong=wrong: daps.recv(wrong, other, 2))
        daps.waitall([sent, sent])
        daps.wait(sent)
    many_sends = [daps.isend(short, other, 3) for _ in range(64)]
    refused(f"64 messages to rank {other} have no receive", lambda: daps.isend(short, other, 3))
    comm.Barrier()
    daps.waitall([*many_sends, *(daps.irecv(short, other, 3) for _ in range(64))])
    daps.close()


if __name__ == "__main__":
    main(int(sys.argv[1]))
