"""What the library refuses, on two ranks; prints what it did not refuse as expected."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI

from runner.runtimes.intranode.mcoll import Config, MultiObject
from tests.intranode.refusing import refused

COMM = MPI.COMM_WORLD


def main() -> None:
    refused("--nodes 3: 2 ranks cannot be split", lambda: MultiObject(COMM, Config(), 3))
    refused("--objects 2: a node has 1 ranks", lambda: MultiObject(COMM, Config(objects=2), 2))
    refused("--radix 4: 2 objects have no more than 3", lambda: MultiObject(COMM, Config(radix=4)))
    made = MultiObject(COMM, Config(), nodes=2)
    one, four, both = np.zeros(1), np.zeros(4), np.zeros(2)
    refused("recv has 32 bytes: expected 16", lambda: made.allgather(one, four))
    refused("recv has 8 bytes: expected 16", lambda: made.allreduce(both, one))
    refused("without gaps", lambda: made.allgather(four[::2], four))
    refused("without gaps", lambda: made.allgather([1.0], both))  # type: ignore[arg-type]
    refused("operation 'prod': expected one of sum", lambda: made.allreduce(one, one, "prod"))
    refused("expected one of sum, min, max", lambda: made.allreduce(one, one, MPI.PROD))
    refused("are reduced to int64", lambda: made.allreduce(one, np.zeros(1, np.int64)))
    complex_ = np.zeros(1, np.complex128)
    refused("complex128 cannot be reduced", lambda: made.allreduce(complex_, complex_))
    swapped = np.zeros(1, ">f8")
    refused("cannot be reduced", lambda: made.allreduce(swapped, swapped))
    refused("root 2: expected a rank from 0 to 1", lambda: made.scatter(None, one, 2))
    if COMM.rank == 0:
        refused("send: expected an array of numpy", lambda: made.scatter(None, one))
        refused("send has 8 bytes: expected 16", lambda: made.scatter(one, one))
    refused("root 1: expected a local rank from 0 to 0", lambda: made.node_bcast(one, 1))
    refused("expected 0 (all) to 1", lambda: made.configure(Config(objects=2)))
    # What was refused has left nothing behind.
    made.allgather(one + COMM.rank, both)
    assert both.tolist() == [0, 1]
    made.close()


if __name__ == "__main__":
    main()
