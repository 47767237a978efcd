"""What the library refuses, on two ranks; prints it in JSON, by rank."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI

from runner.runtimes.intranode.mcoll import Config, MultiObject
from tests.intranode.refusing import refused, report

COMM = MPI.COMM_WORLD


def main() -> None:
    refused(lambda: MultiObject(COMM, Config(), 3))
    refused(lambda: MultiObject(COMM, Config(objects=2), 2))
    refused(lambda: MultiObject(COMM, Config(radix=4)))
    made = MultiObject(COMM, Config(), nodes=2)
    one, four, both = np.zeros(1), np.zeros(4), np.zeros(2)
    refused(lambda: made.allgather(one, four))
    refused(lambda: made.allreduce(both, one))
    refused(lambda: made.allgather(four[::2], four))
    refused(lambda: made.allgather([1.0], both))  # type: ignore[arg-type]
    refused(lambda: made.allreduce(one, one, "prod"))
    refused(lambda: made.allreduce(one, one, MPI.PROD))
    refused(lambda: made.allreduce(one, np.zeros(1, np.int64)))
    complex_ = np.zeros(1, np.complex128)
    refused(lambda: made.allreduce(complex_, complex_))
    swapped = np.zeros(1, ">f8")
    refused(lambda: made.allreduce(swapped, swapped))
    refused(lambda: made.scatter(None, one, 2))
    if COMM.rank == 0:
        refused(lambda: made.scatter(None, one))
        refused(lambda: made.scatter(one, one))
    refused(lambda: made.node_bcast(one, 1))
    refused(lambda: made.configure(Config(objects=2)))
    # What was refused has left nothing behind.
    made.allgather(one + COMM.rank, both)
    assert both.tolist() == [0, 1]
    report(COMM)
    made.close()


if __name__ == "__main__":
    main()
