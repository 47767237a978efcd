"""What the library refuses, seen by two ranks; prints it in JSON, by rank."""

from __future__ import annotations

import numpy as np

from runner.runtimes.intranode import Cab
from tests.intranode.refusing import refused, report


def main() -> None:
    from mpi4py import MPI

    cab = Cab(MPI.COMM_WORLD)
    array, short, other = cab.zeros(100), cab.zeros(99), 1 - cab.rank
    refused(lambda: cab.isend(np.zeros(3), other))
    refused(lambda: cab.isend(array, 2))
    refused(lambda: cab.copy(short, array))
    refused(lambda: cab.accumulate(array[::2], array[:50]))
    refused(lambda: cab.accumulate(array, cab.zeros(100, np.int64)))  # fmt: skip
    request = cab.irecv(array, other, 1)
    refused(lambda: cab.start(request))
    cab.waitall([request, cab.isend(cab.zeros(100), other, 1)])
    # A message of another size is an error of the receiver alone, and both go on.
    if cab.rank == 0:
        cab.send(array, 1, 2)
    else:
        refused(lambda: cab.recv(short, 0, 2))
    many = [cab.isend(array, other, 3) for _ in range(64)]
    refused(lambda: cab.isend(array, other, 3))
    cab.waitall([*many, *(cab.irecv(array, other, 3) for _ in range(64))])
    report(MPI.COMM_WORLD)
    cab.close()


if __name__ == "__main__":
    main()
