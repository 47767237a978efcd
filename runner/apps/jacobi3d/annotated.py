"""Basic Jacobi3D as one ordinary annotated mpi4py program: the input of the translator.

    mpirun -n 2 python -m runner.apps.jacobi3d.annotated 64x64x64 200
    autotune mate translate runner/apps/jacobi3d/annotated.py -o jacobi_mate.py
    mpirun -n 1 python jacobi_mate.py 64x64x64 200 --workers 2 --ranks-per-process 8

The last line of output is JSON: seconds of the iterations, the residual, a hash of each process's
field.
"""

from __future__ import annotations

import hashlib
import json
import sys
from time import perf_counter
from typing import Any

import numpy as np
from mpi4py import MPI

from runner.apps.common_layout import make_layout
from runner.apps.jacobi3d.block import Block
from runner.apps.jacobi3d.faces import Faces
from runner.apps.jacobi3d.verify import residual
from runner.mate import ordinary as mate


def exchange(comm: MPI.Intracomm, messages: Faces, field: int) -> None:
    """Fill the ghosts of a field; this opens the connections before the clock starts."""
    requests = [comm.Irecv(buffer, rank, tag) for buffer, rank, tag in messages.receives]
    messages.pack[field]()
    requests += [comm.Isend(buffer, rank, tag) for buffer, rank, tag in messages.sends]
    MPI.Request.Waitall(requests)
    messages.unpack[field]()


def main() -> None:
    comm = MPI.COMM_WORLD
    size = tuple(int(n) for n in sys.argv[1].split("x"))
    iterations = int(sys.argv[2])
    process, local = mate.process(), mate.local_rank()
    layout = make_layout(size, mate.process_count(), None, mate.local_count(), None)
    block: Any = None
    if local == 0:
        block = Block(size, *layout.block(process), cache_block=64)
        block.reset()
    block = mate.local_bcast(block, 0)
    box = block.box_of(*layout.part(process, local))
    remote = []
    for face in layout.faces(process, local):
        if face.process == process:
            mate.add_local_neighbor(face.local)
        else:
            rank = face.process * layout.local_count + face.local
            remote.append((face.axis, face.side, rank))
    stencil, messages = block.stencil(box), Faces(block, box, remote)
    exchange(comm, messages, 0)
    comm.Barrier()
    begin = perf_counter()
    # pragma mate graph
    for i in range(iterations):
        # pragma mate region(compute) depends(pack*, unpack*, compute*@)
        stencil[i % 2]()
        # pragma mate region(receive) depends(unpack*)
        incoming = [comm.Irecv(buffer, rank, tag) for buffer, rank, tag in messages.receives]
        # pragma mate region(pack) depends(compute, send*)
        messages.pack[(i + 1) % 2]()
        # pragma mate region(send) depends(pack)
        outgoing = [comm.Isend(buffer, rank, tag) for buffer, rank, tag in messages.sends]
        # pragma mate region(unpack) depends(compute, receive)
        MPI.Request.Waitall(incoming)
        MPI.Request.Waitall(outgoing)
        messages.unpack[(i + 1) % 2]()
    comm.Barrier()
    seconds = perf_counter() - begin
    if local == 0:
        block.current = iterations % 2
    mate.local_barrier()
    report(comm, block, local, seconds)


def report(comm: MPI.Intracomm, block: Block, local: int, seconds: float) -> None:
    """Print one line from rank 0."""
    squares, total = np.array([block.square_sum() if local == 0 else 0.0]), np.empty(1)
    comm.Allreduce(squares, total)
    digest = hashlib.sha256(block.interior.tobytes()).digest() if local == 0 else bytes(32)
    hashes = np.empty((comm.size, 32), dtype=np.uint8)
    comm.Allgather(np.frombuffer(digest, dtype=np.uint8), hashes)
    if comm.rank == 0:
        fields = [row.tobytes().hex() for row in hashes if row.any()]
        value = residual(float(total[0]), block.size)
        print(json.dumps({"seconds": seconds, "residual": repr(value), "fields": fields}))


if __name__ == "__main__":
    main()
