"""BT: the Navier-Stokes equations by alternating directions with 5x5 block tridiagonal systems.

The flow is compressible. p^2 ranks have p cells each and send to six neighbours. Source:
NAS-95-020, section 4.7; decomposition and messages of NPB 3.4-MPI.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runner.programs.nas.bt_sweep import MATRIX, Sweep
from runner.programs.nas.cfd_cell_fields import CellFields
from runner.programs.nas.cfd_cells import Partition, partition
from runner.programs.nas.cfd_check import Problem, norm_checks
from runner.programs.nas.common.kernel import Check, Facts, Stopwatch

PROBLEMS = {
    "S": Problem(
        12, 60, 1.0e-2,
        (1.7034283709541311e-01, 1.2975252070034097e-02, 3.2527926989486055e-02,
         2.6436421275166801e-02, 1.9211784131744430e-01),
        (4.9976913345811579e-04, 4.5195666782961927e-05, 7.3973765172921357e-05,
         7.3821238632439731e-05, 8.9269630987491446e-04),
    ),
    "W": Problem(
        24, 200, 0.8e-3,
        (0.1125590409344e03, 0.1180007595731e02, 0.2710329767846e02, 0.2469174937669e02,
         0.2638427874317e03),
        (0.4419655736008e01, 0.4638531260002, 0.1011551749967e01, 0.9235878729944,
         0.1018045837718e02),
    ),
    "A": Problem(
        64, 200, 0.8e-3,
        (1.0806346714637264e02, 1.1319730901220813e01, 2.5974354511582465e01,
         2.3665622544678910e01, 2.5278963211748344e02),
        (4.2348416040525025, 4.4390282496995698e-01, 9.6692480136345650e-01,
         8.8302063039765474e-01, 9.7379901770829278),
    ),
    "B": Problem(
        102, 200, 3.0e-4,
        (1.4233597229287254e03, 9.9330522590150238e01, 3.5646025644535285e02,
         3.2485447959084092e02, 3.2707541254659363e03),
        (5.2969847140936856e01, 4.4632896115670668, 1.3122573342210174e01,
         1.2006925323559144e01, 1.2459576151035986e02),
    ),
}  # fmt: skip


def build(comm: Any, problem: Problem) -> BT:
    """The kernel; raises :class:`AppUsageError` if the ranks are not a square number or too
    many."""
    return BT(comm, problem, partition("bt", problem.size, comm.size, comm.rank))


class BT:
    """See :class:`runner.programs.nas.common.kernel.Kernel`."""

    def __init__(self, comm: Any, problem: Problem, own: Partition) -> None:
        self._problem = problem
        self.mpi = Stopwatch()
        self.facts = _facts(problem)
        self._fields = CellFields(comm, own, problem.dt, self.mpi)
        blocks = [np.zeros((*cell.shape[:3], MATRIX)) for cell in own.cells]
        self._sweeps = [
            Sweep(comm, own, self._fields, blocks, axis, problem.dt, self.mpi) for axis in range(3)
        ]

    def prepare(self) -> None:
        self._fields.start()
        self._step()
        self._fields.start()

    def solve(self) -> None:
        for _ in range(self._problem.iterations):
            self._step()

    def _step(self) -> None:
        self._fields.right_hand_side()
        for sweep in self._sweeps:
            sweep.run()
        self._fields.update()

    def checks(self) -> list[Check]:
        return norm_checks(self._fields, self._problem)


def _facts(problem: Problem) -> Facts:
    n = float(problem.size)
    operations = 3478.8 * n**3 - 17655.7 * n**2 + 28023.7 * n
    size = "x".join([str(problem.size)] * 3)
    return Facts(size, problem.iterations, problem.iterations * operations, "floating point")
