"""SP: the Navier-Stokes equations by alternating directions with scalar pentadiagonal systems.

The flow is compressible. p^2 ranks have p cells each and send to six neighbours. Source:
NAS-95-020, section 4.6; decomposition and messages of NPB 3.4-MPI.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runner.programs.nas.cfd_cell_fields import CellFields
from runner.programs.nas.cfd_cells import Partition, partition
from runner.programs.nas.cfd_check import Problem, norm_checks
from runner.programs.nas.common.kernel import Check, Facts, Stopwatch
from runner.programs.nas.sp_sweep import UPPER, Sweep
from runner.runtimes.core.kernels import load, scalars

PROBLEMS = {
    "S": Problem(
        12, 100, 1.5e-2,
        (2.7470315451339479e-02, 1.0360746705285417e-02, 1.6235745065095532e-02,
         1.5840557224455615e-02, 3.4849040609362460e-02),
        (2.7289258557377227e-05, 1.0364446640837285e-05, 1.6154798287166471e-05,
         1.5750704994480102e-05, 3.4177666183390531e-05),
    ),
    "W": Problem(
        36, 400, 1.5e-3,
        (0.1893253733584e-02, 0.1717075447775e-03, 0.2778153350936e-03, 0.2887475409984e-03,
         0.3143611161242e-02),
        (0.7542088599534e-04, 0.6512852253086e-05, 0.1049092285688e-04, 0.1128838671535e-04,
         0.1212845639773e-03),
    ),
    "A": Problem(
        64, 400, 1.5e-3,
        (2.4799822399300195, 1.1276337964368832, 1.5028977888770491, 1.4217816211695179,
         2.1292113035138280),
        (1.0900140297820550e-04, 3.7343951769282091e-05, 5.0092785406541633e-05,
         4.7671093939528255e-05, 1.3621613399213001e-04),
    ),
    "B": Problem(
        102, 400, 1.0e-3,
        (0.6903293579998e02, 0.3095134488084e02, 0.4103336647017e02, 0.3864769009604e02,
         0.5643482272596e02),
        (0.9810006190188e-02, 0.1022827905670e-02, 0.1720597911692e-02, 0.1694479428231e-02,
         0.1847456263981e-01),
    ),
}  # fmt: skip
CONVERSIONS = ("x_to_y", "y_to_z", "from_z")
"""The conversions that follow the sweeps along x, y and z."""


def build(comm: Any, problem: Problem) -> SP:
    """The kernel; raises :class:`AppUsageError` if the ranks are not a square number or too
    many."""
    return SP(comm, problem, partition("sp", problem.size, comm.size, comm.rank))


class SP:
    """See :class:`runner.programs.nas.common.kernel.Kernel`."""

    def __init__(self, comm: Any, problem: Problem, own: Partition) -> None:
        self._problem = problem
        self.mpi = Stopwatch()
        self.facts = _facts(problem)
        self._fields = CellFields(comm, own, problem.dt, self.mpi)
        self._begin = _per_cell("to_x", own, self._fields)
        upper = [np.zeros((*cell.shape[:3], UPPER)) for cell in own.cells]
        self._sweeps = [
            Sweep(comm, own, self._fields, upper, _per_cell(name, own, self._fields), axis,
                  problem.dt, self.mpi)
            for axis, name in enumerate(CONVERSIONS)
        ]  # fmt: skip

    def prepare(self) -> None:
        self._fields.start()
        self._step()
        self._fields.start()

    def solve(self) -> None:
        for _ in range(self._problem.iterations):
            self._step()

    def _step(self) -> None:
        self._fields.right_hand_side()
        for convert in self._begin:
            convert()
        for sweep in self._sweeps:
            sweep.run()
        self._fields.update()

    def checks(self) -> list[Check]:
        return norm_checks(self._fields, self._problem)


def _per_cell(name: str, own: Partition, fields: CellFields) -> list[Callable[[], None]]:
    bind = load("runner.programs.nas.sp_kernels").bind
    return [
        bind(
            name,
            u,
            rest,
            scalars([*cell.inner(2), *cell.inner(1), *cell.inner(0), *cell.shape[2::-1]]),
        )
        for cell, u, rest in zip(own.cells, fields.u, fields.rest, strict=True)
    ]


def _facts(problem: Problem) -> Facts:
    n = float(problem.size)
    operations = 881.174 * n**3 - 4683.91 * n**2 + 11484.5 * n - 19272.4
    size = "x".join([str(problem.size)] * 3)
    return Facts(size, problem.iterations, problem.iterations * operations, "floating point")
