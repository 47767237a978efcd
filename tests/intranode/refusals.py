"""What the library refuses, seen by two ranks; prints one line for each that it does not."""

from __future__ import annotations

import numpy as np

from runner.runtimes.intranode import Cab
from tests.intranode.refusing import refused


def main() -> None:
    from mpi4py import MPI

    cab = Cab(MPI.COMM_WORLD)
    array, short, other = cab.zeros(100), cab.zeros(99), 1 - cab.rank
    refused("not in shared memory", lambda: cab.isend(np.zeros(3), other))
    refused("rank 2: this node has the ranks 0 to 1", lambda: cab.isend(array, 2))
    refused("800 bytes do not fit 792 bytes", lambda: cab.copy(short, array))
    refused("only arrays without gaps", lambda: cab.accumulate(array[::2], array[:50]))
    refused("array of int64 is added to one of float64",
            lambda: cab.accumulate(array, cab.zeros(100, np.int64)))  # fmt: skip
    request = cab.irecv(array, other, 1)
    refused("is started again before it is over", lambda: cab.start(request))
    cab.waitall([request, cab.isend(cab.zeros(100), other, 1)])
    # A message of another size is an error of the receiver alone, and both go on.
    if cab.rank == 0:
        cab.send(array, 1, 2)
    else:
        refused("a message from rank 0 has 800 bytes, the array 792", lambda: cab.recv(short, 0, 2))
    many = [cab.isend(array, other, 3) for _ in range(64)]
    refused("64 messages are under way to rank", lambda: cab.isend(array, other, 3))
    cab.waitall([*many, *(cab.irecv(array, other, 3) for _ in range(64))])
    cab.close()


if __name__ == "__main__":
    main()
