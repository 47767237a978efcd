"""``ping_pong.py N``: N round trips of 1 KiB between ranks 0 and 1 of two."""

import sys

import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
# The other rank has another number here, and the same one in the world.
comm = world.Split(0, -world.Get_rank())
there = 1 - comm.Get_rank()
field = np.zeros(1024, dtype="b")
for _ in range(int(sys.argv[1])):
    if comm.Get_rank() == 0:
        comm.Send(field, dest=there)
        comm.Recv(field, source=there)
    else:
        request = comm.Irecv(field, there)
        request.Wait()
        request = comm.Isend(field, there)
        MPI.Request.Waitall([request])
total = np.zeros(4)
world.Allreduce(MPI.IN_PLACE, total)
comm.Bcast([total, 2, MPI.DOUBLE], root=0)
world.Barrier()
