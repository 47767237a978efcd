"""Basic Jacobi3D as one ordinary annotated mpi4py program: the input of the translator.

    mpirun -n 2 python -m runner.programs.apps.jacobi3d.annotated 64x64x64 200
    autotune mate translate runner/programs/apps/jacobi3d/annotated.py -o jacobi_mate.py
    mpirun -n 1 --bind-to none python jacobi_mate.py 64x64x64 200 --workers 2 --ranks-per-process 8

Its loops over cells are functions of numba, so they are fast in both. The regions use numbers,
arrays and lists of them, so the translator can compile all of them. The last line of output is
JSON: seconds of the iterations, the residual, a hash of each process's field.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from mpi4py import MPI
from numba import njit

from runner.programs.apps.common.layout import make_layout
from runner.programs.apps.jacobi3d import stencil
from runner.programs.apps.jacobi3d.block import Block
from runner.programs.apps.jacobi3d.faces import face_of
from runner.programs.apps.jacobi3d.verify import residual
from runner.runtimes.mate import ordinary as mate

sweep = njit(nogil=True)(stencil.update)
"""One damped Jacobi update of a box, the same loop as in the other variants."""


@njit(nogil=True)
def pack(values: Any, box: Any, buffer: Any) -> None:
    """Copy a box of the field into a buffer of its extents."""
    for z in range(box[0], box[1]):
        for y in range(box[2], box[3]):
            for x in range(box[4], box[5]):
                buffer[z - box[0], y - box[2], x - box[4]] = values[z, y, x]


@njit(nogil=True)
def unpack(values: Any, box: Any, buffer: Any) -> None:
    """Fill a box of the field from a buffer."""
    for z in range(box[0], box[1]):
        for y in range(box[2], box[3]):
            for x in range(box[4], box[5]):
                values[z, y, x] = buffer[z - box[0], y - box[2], x - box[4]]


class Part:
    """The data for :func:`sweep`: the fields as arrays of one dimension, and the box."""

    def __init__(self, block: Any, box: Any) -> None:
        self.cells = [values.reshape(-1) for values in block.fields]
        self.geometry, self.weights = block.geometry(box), block.weights


@dataclass
class Messages:
    """The faces to other processes: boxes and buffers of each, the other rank, the tags."""

    own: list[Any] = field(default_factory=list)
    ghosts: list[Any] = field(default_factory=list)
    send_buffers: list[Any] = field(default_factory=list)
    receive_buffers: list[Any] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    tags: list[int] = field(default_factory=list)
    """Tags of outgoing messages: 2 * axis + side. Incoming ones left through the opposite side."""

    def add(self, box: Sequence[int], axis: int, side: int, rank: int) -> None:
        own, ghost = (face_of(tuple(box), axis, side, ghost=g) for g in (False, True))  # type: ignore[arg-type]
        extents = [own[2 * n + 1] - own[2 * n] for n in range(3)]
        self.own.append(np.array(own, np.uint64))
        self.ghosts.append(np.array(ghost, np.uint64))
        self.send_buffers.append(np.zeros(extents))
        self.receive_buffers.append(np.zeros(extents))
        self.ranks.append(rank)
        self.tags.append(2 * axis + side)


def iterate(comm: MPI.Intracomm, steps: int, fields: Any, part: Part, messages: Messages) -> None:
    """The iterations; field ``i % 2`` holds the values before iteration ``i``."""
    cells, geometry, weights = part.cells, part.geometry, part.weights
    own, ghosts, ranks, tags = messages.own, messages.ghosts, messages.ranks, messages.tags
    send_buffers, receive_buffers = messages.send_buffers, messages.receive_buffers
    count = len(messages.ranks)
    # pragma mate graph
    for i in range(steps):
        # pragma mate region(compute) depends(pack*, unpack*, compute*@)
        sweep(cells[i % 2], cells[(i + 1) % 2], geometry, weights)
        # pragma mate region(receive) depends(unpack*)
        incoming = [comm.Irecv(receive_buffers[k], ranks[k], tags[k] ^ 1) for k in range(count)]
        # pragma mate region(pack) depends(compute, send*)
        for k in range(count):
            pack(fields[(i + 1) % 2], own[k], send_buffers[k])
        # pragma mate region(send) depends(pack)
        outgoing = [comm.Isend(send_buffers[k], ranks[k], tags[k]) for k in range(count)]
        # pragma mate region(unpack) depends(compute, receive)
        MPI.Request.Waitall(incoming)
        MPI.Request.Waitall(outgoing)
        for k in range(count):
            unpack(fields[(i + 1) % 2], ghosts[k], receive_buffers[k])


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
    messages = Messages()
    for face in layout.faces(process, local):
        if face.process == process:
            mate.add_local_neighbor(face.local)
        else:
            rank = face.process * layout.local_count + face.local
            messages.add(box, face.axis, face.side, rank)
    problem = (block.fields, Part(block, box), messages)
    # Two iterations open the connections and compile, before the clock starts.
    iterate(comm, 2, *problem)
    mate.local_barrier()
    if local == 0:
        block.reset()
    comm.Barrier()
    begin = perf_counter()
    iterate(comm, iterations, *problem)
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
