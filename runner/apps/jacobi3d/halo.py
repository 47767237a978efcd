"""Exchange of the ghost cells over the six faces, without blocking calls.

A star stencil reads no edges or corners, so each face is one message of two layers of cells and
all six are independent.
"""

from __future__ import annotations

import math
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.apps.common_grid import Shape, coordinates, neighbour
from runner.apps.jacobi3d.block import Block, Box
from runner.apps.jacobi3d.problem import DEPTH

PHASES = ("compute", "mpi", "buffering", "waiting")
"""Kernel; issuing sends and receives; pack and unpack; waiting (Martin 2018, section 5.1)."""


def face_box(cells: Shape, axis: int, side: int, ghost: bool) -> Box:
    """The two layers of cells at a face (``side`` 0 low, 1 high): own cells, or the ghosts."""
    bounds = [(DEPTH, n + DEPTH) for n in cells]
    low = (0 if ghost else DEPTH) if side == 0 else cells[axis] + (DEPTH if ghost else 0)
    bounds[axis] = (low, low + DEPTH)
    (x0, x1), (y0, y1), (z0, z1) = bounds
    return (z0, z1, y0, y1, x0, x1)


def box_cells(box: Box) -> int:
    z0, z1, y0, y1, x0, x1 = box
    return math.prod((z1 - z0, y1 - y0, x1 - x0))


class Halo:
    """Buffers, neighbours and bound copies of one block, made once before the iterations."""

    def __init__(self, comm: Any, block: Block, grid: Shape) -> None:
        from mpi4py import MPI

        self._comm, self._block = comm, block
        self._wait = MPI.Request.Waitall
        place = coordinates(comm.rank, grid)
        faces = [
            (axis, side, rank)
            for axis in range(3)
            for side in (0, 1)
            if (rank := neighbour(place, grid, axis, 2 * side - 1)) is not None
        ]
        own = [face_box(block.cells, axis, side, ghost=False) for axis, side, _ in faces]
        ghosts = [face_box(block.cells, axis, side, ghost=True) for axis, side, _ in faces]
        lengths = [box_cells(box) for box in own]
        starts = [sum(lengths[:n]) for n in range(len(lengths))]
        outgoing, incoming = np.zeros(sum(lengths)), np.zeros(sum(lengths))
        self._pack = block.copier("pack", outgoing, zip(starts, own, strict=True))
        self._unpack = block.copier("unpack", incoming, zip(starts, ghosts, strict=True))
        # A message is named by the face of its sender: what comes in at my low face left the
        # neighbour through its high one.
        self._sends: list[tuple[NDArray[np.float64], int, int]] = []
        self._receives: list[tuple[NDArray[np.float64], int, int]] = []
        for (axis, side, rank), a, n in zip(faces, starts, lengths, strict=True):
            self._sends.append((outgoing[a : a + n], rank, 2 * axis + side))
            self._receives.append((incoming[a : a + n], rank, 2 * axis + 1 - side))

    def exchange(self, seconds: dict[str, float]) -> None:
        """Fill the ghosts of the newest field; adds to the phases in ``seconds``."""
        comm, current = self._comm, self._block.current
        begin = perf_counter()
        requests = [comm.Irecv(buffer, rank, tag) for buffer, rank, tag in self._receives]
        posted = perf_counter()
        self._pack[current]()
        packed = perf_counter()
        requests += [comm.Isend(buffer, rank, tag) for buffer, rank, tag in self._sends]
        sent = perf_counter()
        self._wait(requests)
        arrived = perf_counter()
        self._unpack[current]()
        seconds["mpi"] += (posted - begin) + (sent - packed)
        seconds["waiting"] += arrived - sent
        seconds["buffering"] += (packed - posted) + (perf_counter() - arrived)
