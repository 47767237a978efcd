"""The sweeps of BT along one axis: cell by cell through the ranks, forth and back.

As in the original, messages always have the size of the largest cell.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runner.programs.nas.cfd_cell_fields import SPREAD, CellFields
from runner.programs.nas.cfd_cells import GHOSTS, Cell, Field, Partition
from runner.programs.nas.common.kernel import Stopwatch
from runner.runtimes.core.kernels import load, scalars

MATRIX = 25
VECTOR = 5


class Sweep:
    """Solves the block tridiagonal systems of all lines along ``axis``.

    The right-hand sides become the solution. ``blocks`` are matrices per point, shared by the axes.
    """

    def __init__(
        self, comm: Any, partition: Partition, fields: CellFields, blocks: list[Field],
        axis: int, dt: float, mpi: Stopwatch,
    ) -> None:  # fmt: skip
        self._comm, self._partition, self._axis, self._mpi = comm, partition, axis, mpi
        self._order = partition.sweep(axis)
        self._next, self._previous = partition.successors[axis], partition.predecessors[axis]
        self._eliminate: list[Callable[[], None]] = []
        self._substitute: list[Callable[[], None]] = []
        h = 1.0 / (partition.size - 1)
        numbers = np.array([dt * 0.5 / h, dt / h**2, SPREAD[axis]])
        bind = load("runner.programs.nas.bt_kernels").bind
        for cell, u, rest, block in zip(
            partition.cells, fields.u, fields.rest, blocks, strict=True
        ):
            state = scalars(_geometry(cell, axis, u.size))
            self._eliminate.append(bind("eliminate", u, rest, block, numbers, state))
            self._substitute.append(bind("substitute", rest, block, state))
        # Layers of every cell across the axis: matrices and vectors.
        self._blocks = [_layers(block, axis) for block in blocks]
        self._rest = [_layers(rest, axis) for rest in fields.rest]
        n = partition.widest
        self._down = [np.zeros((n, n, MATRIX + VECTOR)) for _ in range(2)]
        self._back = [np.zeros((n, n, VECTOR)) for _ in range(2)]

    def run(self) -> None:
        request = None
        for step, number in enumerate(self._order):
            self._start_line(step, number, request)
            self._eliminate[number]()
            request = self._pass_on(step, number)
        for step in reversed(range(len(self._order))):
            number = self._order[step]
            self._end_line(step, number, request)
            self._substitute[number]()
            request = self._hand_back(step, number)

    def _start_line(self, step: int, number: int, request: Any) -> None:
        """Before the first point: zero next to a wall, else the values of the previous cell."""
        if step == 0:
            self._blocks[number][GHOSTS] = 0.0
            return
        incoming = self._down[1]
        with self._mpi:
            receipt = self._comm.Irecv(incoming, self._previous, self._tag(number, 0))
            request.Wait()
            receipt.Wait()
        blocks, rest = self._blocks[number][GHOSTS - 1], self._rest[number][GHOSTS - 1]
        m, n, _ = rest.shape
        blocks[...] = incoming[:m, :n, :MATRIX]
        rest[...] = incoming[:m, :n, MATRIX:]

    def _pass_on(self, step: int, number: int) -> Any:
        if step == len(self._order) - 1:
            return None
        outgoing = self._down[0]
        blocks, rest = self._blocks[number][-GHOSTS - 1], self._rest[number][-GHOSTS - 1]
        m, n, _ = rest.shape
        outgoing[:m, :n, :MATRIX] = blocks
        outgoing[:m, :n, MATRIX:] = rest
        with self._mpi:
            return self._comm.Isend(outgoing, self._next, self._tag(number, 0))

    def _end_line(self, step: int, number: int, request: Any) -> None:
        """After the last point: a wall, or the solution computed by the next cell."""
        if step == len(self._order) - 1:
            return
        incoming = self._back[1]
        with self._mpi:
            receipt = self._comm.Irecv(incoming, self._next, self._tag(number, 1))
            if request is not None:
                request.Wait()
            receipt.Wait()
        rest = self._rest[number][-GHOSTS]
        m, n, _ = rest.shape
        rest[...] = incoming[:m, :n]

    def _hand_back(self, step: int, number: int) -> Any:
        if step == 0:
            return None
        outgoing = self._back[0]
        rest = self._rest[number][GHOSTS]
        m, n, _ = rest.shape
        outgoing[:m, :n] = rest
        with self._mpi:
            return self._comm.Isend(outgoing, self._previous, self._tag(number, 1))

    def _tag(self, number: int, direction: int) -> int:
        """The tag of an axis, a direction and a line of cells."""
        side = self._partition.side
        first, second = (
            p for n, p in enumerate(self._partition.cells[number].place) if n != self._axis
        )
        return ((3 + self._axis) * 2 + direction) * side * side + first + second * side


def _layers(field: Field, axis: int) -> Field:
    """The field with its layers across ``axis`` first, without ghosts of the other two axes."""
    part = [slice(GHOSTS, -GHOSTS)] * 3
    part[2 - axis] = slice(None)
    return np.moveaxis(field[tuple(part)], 2 - axis, 0)


def _geometry(cell: Cell, axis: int, size: int) -> list[int]:
    _, ey, ex, _ = cell.shape
    strides = (5, 5 * ex, 5 * ex * ey)
    others = [n for n in range(3) if n != axis]
    return [
        size,
        *(v for n in others for v in (*cell.inner(n), strides[n])),
        *cell.inner(axis),
        strides[axis],
        axis + 1,
        *(n + 1 for n in others),
    ]
