"""The sweeps of SP along one axis: cell by cell through the ranks, forth and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runner.programs.nas.cfd_cell_fields import DISSIPATION, SPREAD, CellFields
from runner.programs.nas.cfd_cells import GHOSTS, Cell, Field, Partition
from runner.programs.nas.common.kernel import Stopwatch
from runner.runtimes.core.kernels import load, scalars

UPPER = 6
VECTOR = 5


class Sweep:
    """Solves the pentadiagonal systems of all lines along ``axis``.

    The right-hand sides become the solution, and ``convert`` (a call per cell) then changes it to
    other variables. ``upper`` are coefficients per point, shared by the axes.
    """

    def __init__(
        self, comm: Any, partition: Partition, fields: CellFields, upper: list[Field],
        convert: list[Callable[[], None]], axis: int, dt: float, mpi: Stopwatch,
    ) -> None:  # fmt: skip
        self._comm, self._partition, self._axis, self._mpi = comm, partition, axis, mpi
        self._order, self._convert = partition.sweep(axis), convert
        self._next, self._previous = partition.successors[axis], partition.predecessors[axis]
        self._eliminate: list[Callable[[], None]] = []
        self._substitute: list[Callable[[], None]] = []
        h = 1.0 / (partition.size - 1)
        numbers = np.array([dt * 0.5 / h, dt / h**2, SPREAD[axis], dt * DISSIPATION])
        bind = load("runner.programs.nas.sp_kernels").bind
        for cell, u, rest, up in zip(partition.cells, fields.u, fields.rest, upper, strict=True):
            state = scalars(_geometry(cell, axis))
            self._eliminate.append(bind("eliminate", u, rest, up, numbers, state))
            self._substitute.append(bind("substitute", rest, up, state))
        # Layers of every cell across the axis, inner points only: coefficients and vectors.
        cells = partition.cells
        self._upper = [_layers(cell, up, axis) for cell, up in zip(cells, upper, strict=True)]
        self._rest = [_layers(cell, r, axis) for cell, r in zip(cells, fields.rest, strict=True)]
        lines = [layers.shape[1:3] for layers in self._rest]
        self._down = [[np.zeros((2, *n, UPPER + VECTOR)) for n in lines] for _ in range(2)]
        self._back = [[np.zeros((2, *n, VECTOR)) for n in lines] for _ in range(2)]

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
        self._convert[self._order[0]]()

    def _start_line(self, step: int, number: int, request: Any) -> None:
        """Before the first point: zeros at a wall, else the values of the previous cell."""
        if step == 0:
            self._upper[number][GHOSTS - 1 : GHOSTS + 1] = 0.0
            return
        incoming = self._down[1][number]
        with self._mpi:
            receipt = self._comm.Irecv(incoming, self._previous, self._tag(0))
            request.Wait()
            receipt.Wait()
        self._upper[number][:GHOSTS] = incoming[..., :UPPER]
        self._rest[number][:GHOSTS] = incoming[..., UPPER:]

    def _pass_on(self, step: int, number: int) -> Any:
        if step == len(self._order) - 1:
            return None
        outgoing = self._down[0][number]
        outgoing[..., :UPPER] = self._upper[number][-2 * GHOSTS : -GHOSTS]
        outgoing[..., UPPER:] = self._rest[number][-2 * GHOSTS : -GHOSTS]
        with self._mpi:
            return self._comm.Isend(outgoing, self._next, self._tag(0))

    def _end_line(self, step: int, number: int, request: Any) -> None:
        """After the last point: a wall, or the solution computed by the next cell.

        While that solution is on its way, the previous cell is converted.
        """
        if step == len(self._order) - 1:
            return
        incoming = self._back[1][number]
        with self._mpi:
            receipt = self._comm.Irecv(incoming, self._next, self._tag(1))
        self._convert[self._order[step + 1]]()
        with self._mpi:
            request.Wait()
            receipt.Wait()
        self._rest[number][-GHOSTS:] = incoming

    def _hand_back(self, step: int, number: int) -> Any:
        if step == 0:
            return None
        outgoing = self._back[0][number]
        outgoing[...] = self._rest[number][GHOSTS : 2 * GHOSTS]
        with self._mpi:
            return self._comm.Isend(outgoing, self._previous, self._tag(1))

    def _tag(self, direction: int) -> int:
        return (3 + self._axis) * 2 + direction


def _layers(cell: Cell, field: Field, axis: int) -> Field:
    """The field with its layers across ``axis`` first, inner points of the other two axes."""
    part = [slice(None) if n == axis else slice(*cell.inner(n)) for n in (2, 1, 0)]
    return np.moveaxis(field[tuple(part)], 2 - axis, 0)


def _geometry(cell: Cell, axis: int) -> list[int]:
    ez, ey, ex, _ = cell.shape
    strides = (1, ex, ex * ey)
    others = [n for n in range(3) if n != axis]
    return [
        ex * ey * ez,
        *(v for n in others for v in (*cell.inner(n), strides[n])),
        *cell.inner(axis),
        strides[axis],
        axis + 1,
        int(cell.first(axis)),
        int(cell.last(axis)),
    ]
