"""The exchange of ghosts in SP and BT (NPB 3.4-MPI: ``copy_faces``).

A rank sends six messages; each holds the faces of all its cells on one side.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runner.programs.nas.cfd_cells import GHOSTS, Field, Partition
from runner.programs.nas.common.kernel import Stopwatch

LAYERS = 2


class Faces:
    """Exchanges the two outermost layers of the cells' fields; buffers are made once."""

    def __init__(
        self, comm: Any, partition: Partition, fields: list[Field], mpi: Stopwatch
    ) -> None:
        self._comm, self._partition, self._mpi = comm, partition, mpi
        # Per axis and direction (0 = to lower places): the part to send, and the ghosts to fill.
        self._own = [[_slabs(partition, fields, a, d, False) for d in (0, 1)] for a in range(3)]
        self._ghosts = [[_slabs(partition, fields, a, d, True) for d in (0, 1)] for a in range(3)]
        self._outgoing = [[_buffer(slabs) for slabs in pair] for pair in self._own]
        self._incoming = [[_buffer(slabs) for slabs in pair] for pair in self._ghosts]

    def exchange(self) -> None:
        if self._partition.side == 1:
            return
        for axis in range(3):
            for direction in (0, 1):
                _pack(self._own[axis][direction], self._outgoing[axis][direction])
        with self._mpi:
            self._swap()
        for axis in range(3):
            for direction in (0, 1):
                _unpack(self._ghosts[axis][direction], self._incoming[axis][direction])

    def _swap(self) -> None:
        from mpi4py import MPI

        low, high = self._partition.predecessors, self._partition.successors
        comm, requests = self._comm, []
        for axis in range(3):
            for direction, rank in ((1, high[axis]), (0, low[axis])):
                # A message from the higher neighbour travels to lower places.
                tag = 2 * axis + 1 - direction
                requests.append(comm.Irecv(self._incoming[axis][direction], rank, tag))
        for axis in range(3):
            for direction, rank in ((1, high[axis]), (0, low[axis])):
                tag = 2 * axis + direction
                requests.append(comm.Isend(self._outgoing[axis][direction], rank, tag))
        MPI.Request.Waitall(requests)


def _slabs(
    partition: Partition, fields: list[Field], axis: int, direction: int, ghosts: bool
) -> list[Field]:
    """Layers on the low (0) or high (1) side of every cell that has a neighbour on that side."""
    slabs = []
    for cell, field in zip(partition.cells, fields, strict=True):
        if (cell.last if direction else cell.first)(axis):
            continue
        first = GHOSTS + (cell.points[axis] - LAYERS if direction else 0)
        if ghosts:
            first += LAYERS if direction else -LAYERS
        part = [slice(GHOSTS, -GHOSTS)] * 3
        part[2 - axis] = slice(first, first + LAYERS)
        slabs.append(field[tuple(part)])
    return slabs


def _buffer(slabs: list[Field]) -> Field:
    return np.zeros(sum(slab.size for slab in slabs))


def _pack(slabs: list[Field], buffer: Field) -> None:
    at = 0
    for slab in slabs:
        buffer[at : at + slab.size].reshape(slab.shape)[...] = slab
        at += slab.size


def _unpack(slabs: list[Field], buffer: Field) -> None:
    at = 0
    for slab in slabs:
        slab[...] = buffer[at : at + slab.size].reshape(slab.shape)
        at += slab.size
