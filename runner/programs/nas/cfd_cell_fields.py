"""Shared parts of SP and BT on the cells of a rank.

They are start values, forcing, right-hand side, update and norms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runner.programs.nas.cfd_cells import Cell, Field, Partition
from runner.programs.nas.cfd_exact import exact, start_values
from runner.programs.nas.cfd_faces import Faces
from runner.programs.nas.common.kernel import Stopwatch
from runner.runtimes.core.kernels import load, scalars

SPREAD = (0.75, 0.75, 1.0)
"""Second-order dissipation along x, y and z."""
DISSIPATION = 0.25


class CellFields:
    """The fields u (state) and rest (right-hand side, later the change) of all cells."""

    def __init__(self, comm: Any, partition: Partition, dt: float, mpi: Stopwatch) -> None:
        self._comm, self._partition, self._dt, self._mpi = comm, partition, dt, mpi
        shapes = [cell.shape for cell in partition.cells]
        self.u = [np.zeros(shape) for shape in shapes]
        self.rest = [np.zeros(shape) for shape in shapes]
        self._forcing = [np.zeros(shape) for shape in shapes]
        longest = max(max(shape) for shape in shapes)
        self._lines = np.zeros(20 * (longest + 1))
        self._faces = Faces(comm, partition, self.u, mpi)
        self._fluxes = [
            self._flux(cell, u, rest, axis)
            for cell, u, rest in zip(partition.cells, self.u, self.rest, strict=True)
            for axis in range(3)
        ]
        self._local, self._total = np.zeros(5), np.zeros(5)
        self._bind()
        self._set_forcing()

    def _bind(self) -> None:
        bind = load("runner.programs.nas.cfd_field_kernels").bind
        boxes = [
            scalars([*cell.inner(2), *cell.inner(1), *cell.inner(0), *cell.shape[2::-1]])
            for cell in self._partition.cells
        ]
        step, one = np.array([self._dt]), np.ones(1)
        self._scale = [bind("scale", r, step, b) for r, b in zip(self.rest, boxes, strict=True)]
        self._update = [
            bind("update", u, r, one, b) for u, r, b in zip(self.u, self.rest, boxes, strict=True)
        ]
        self._squares = [
            bind("squares", r, self._local, b) for r, b in zip(self.rest, boxes, strict=True)
        ]

    def _flux(self, cell: Cell, field: Field, result: Field, axis: int) -> Callable[[], None]:
        _, ey, ex, _ = cell.shape
        strides = (5, 5 * ex, 5 * ex * ey)
        others = [n for n in range(3) if n != axis]
        state = [
            field.size,
            *(v for n in others for v in (*cell.inner(n), strides[n])),
            *cell.inner(axis),
            strides[axis],
            axis + 1,
            *(n + 1 for n in others),
            int(cell.first(axis)),
            int(cell.last(axis)),
        ]
        h = 1.0 / (self._partition.size - 1)
        numbers = np.array([0.5 / h, 1.0 / h, 1.0 / h**2, SPREAD[axis], DISSIPATION])
        return load("runner.programs.nas.cfd_flux_kernels").bind(
            "add_fluxes", field, result, self._lines, numbers, scalars(state)
        )

    def _exact(self, cell: Cell) -> Field:
        x, y, z = cell.coordinates(self._partition.size)
        return exact(x[None, None, :], y[None, :, None], z[:, None, None])

    def _set_forcing(self) -> None:
        """Set the forcing for which the exact solution is steady."""
        for cell, forcing in zip(self._partition.cells, self._forcing, strict=True):
            solution = self._exact(cell)
            for axis in range(3):
                self._flux(cell, solution, forcing, axis)()
            np.negative(forcing, out=forcing)

    def start(self) -> None:
        for cell, u in zip(self._partition.cells, self.u, strict=True):
            u[...] = start_values(*cell.coordinates(self._partition.size))

    def right_hand_side(self) -> None:
        """Exchange ghosts; rest = dt times (forcing + fluxes of u) at inner points, 0 elsewhere."""
        self._faces.exchange()
        for rest, forcing in zip(self.rest, self._forcing, strict=True):
            rest[...] = forcing
        for flux in self._fluxes:
            flux()
        for scale in self._scale:
            scale()

    def update(self) -> None:
        for update in self._update:
            update()

    def error_norms(self) -> Field:
        """Root mean squares of the difference from the exact solution; overwrites ``rest``."""
        for cell, u, rest in zip(self._partition.cells, self.u, self.rest, strict=True):
            rest[...] = u - self._exact(cell)
        return self._norms()

    def residual_norms(self) -> Field:
        """Root mean squares of the right-hand side."""
        self.right_hand_side()
        return self._norms() / self._dt

    def _norms(self) -> Field:
        sums = np.zeros(5)
        for squares in self._squares:
            squares()
            sums += self._local
        with self._mpi:
            self._comm.Allreduce(sums, self._total)
        return np.sqrt(self._total / (self._partition.size - 2) ** 3)
