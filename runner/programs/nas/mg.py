"""MG: a periodic Poisson equation by multigrid V-cycles.

Every step on every level exchanges the faces of a box with six neighbours. Source: NAS-95-020,
section 2.2.4; decomposition and messages of NPB 3.4-MPI.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.nas.common.grid import log2_ranks
from runner.programs.nas.common.kernel import Check, Facts, Kernel, Stopwatch
from runner.programs.nas.mg_charges import Charges
from runner.programs.nas.mg_grid import Level, levels, origin, place_of, process_grid
from runner.programs.nas.mg_halo import Grid, Halo
from runner.runtimes.core.kernels import load, scalars

OPERATOR = (-8 / 3, 1 / 6, 1 / 12)
"""Weights of a point, its 12 edge neighbours, its 8 corner neighbours; that of faces is 0."""
SMOOTHER_A = (-3 / 8, 1 / 32, -1 / 64)
SMOOTHER_B = (-3 / 17, 1 / 33, -1 / 61)
"""Weights of a point, its 6 face neighbours, its 12 edge neighbours; that of corners is 0."""
TOLERANCE = 1e-8
OPERATIONS_PER_POINT = 58.0

Call = Callable[[], None]


@dataclass(frozen=True)
class Problem:
    """One class: 2^log2_points points per axis, V-cycles, smoother's weights, residual's norm."""

    log2_points: int
    iterations: int
    smoother: tuple[float, float, float]
    norm: float


PROBLEMS = {
    "S": Problem(5, 4, SMOOTHER_A, 0.5307707005734e-4),
    "W": Problem(7, 4, SMOOTHER_A, 0.6467329375339e-5),
    "A": Problem(8, 4, SMOOTHER_A, 0.2433365309069e-5),
    "B": Problem(8, 20, SMOOTHER_B, 0.1800564401355e-5),
}


def build(comm: Any, problem: Problem) -> MG:
    """The kernel; raises :class:`AppUsageError` for an impossible number of ranks.

    The number must be a power of two and leave every rank points on the finest level.
    """
    return MG(comm, problem, checked_log2(problem, comm.size))


def checked_log2(problem: Problem, ranks: int) -> int:
    """log2 of the number of ranks; raises :class:`AppUsageError` as :func:`build` does."""
    log2 = log2_ranks("mg", ranks)
    points = 1 << problem.log2_points
    if max(process_grid(log2)) * 2 > points:
        raise AppUsageError(
            f"nas mg on {ranks} ranks cuts {points} points per axis into less than 2 a rank: "
            "use fewer ranks or a larger class",
            code="app_option.ranks",
        )
    return log2


class MG(Kernel):
    """See :class:`runner.programs.nas.common.kernel.Kernel`.

    Level 0 is the coarsest. ``_u`` and ``_r`` hold solution and residual of each level; the
    right-hand side exists only on the finest level.
    """

    def __init__(self, comm: Any, problem: Problem, log2: int) -> None:
        self._comm, self._problem = comm, problem
        self.mpi = Stopwatch()
        points = 1 << problem.log2_points
        operations = OPERATIONS_PER_POINT * problem.iterations * float(points) ** 3
        self.facts = Facts(
            "x".join([str(points)] * 3), problem.iterations, operations, "floating point"
        )
        self._norm = math.nan
        self._levels = levels(problem.log2_points, log2, comm.rank)
        self._u = [np.zeros(level.size[::-1]) for level in self._levels]
        self._r = [np.zeros(level.size[::-1]) for level in self._levels]
        self._v = np.zeros(self._levels[-1].size[::-1])
        self._u_halo: Sequence[Halo] = [
            self._halo(u, level) for u, level in zip(self._u, self._levels, strict=True)
        ]
        self._r_halo: Sequence[Halo] = [
            self._halo(r, level) for r, level in zip(self._r, self._levels, strict=True)
        ]
        self._bind()
        grid = process_grid(log2)
        first = origin(points, grid, place_of(comm.rank, grid))
        self.charges = Charges(comm, self._v, first, points)
        self._v_halo = self._halo(self._v, self._levels[-1])

    def _halo(self, grid: Grid, level: Level) -> Halo:
        return Halo(self._comm, grid, level, self.mpi)

    def _bind(self) -> None:
        bind = load("runner.programs.nas.mg_kernels").bind
        operator, smoother = np.array(OPERATOR), np.array(self._problem.smoother)
        rows = np.zeros(2 * max(level.size[0] for level in self._levels))
        sizes = [scalars(list(level.size)) for level in self._levels]
        grids = list(zip(self._u, self._r, sizes, strict=True))
        self._smooth = [bind("smooth", r, u, smoother, rows, size) for u, r, size in grids]
        self._residual_in_place = [
            bind("residual_in_place", u, r, operator, rows, size) for u, r, size in grids
        ]
        u, r, size = grids[-1]
        self._residual = bind("residual", u, self._v, r, operator, rows, size)
        self._norms_local, self._norms_global = np.zeros(2), np.zeros(2)
        self._norms = bind("norms", r, self._norms_local, size)
        # Entry n is for the step between the levels n and n + 1.
        self._restrict: list[Call] = []
        self._interpolate: list[Call] = []
        for n, (coarse, fine) in enumerate(zip(self._levels, self._levels[1:], strict=False)):
            single = [int(points == 3) for points in fine.size]
            down = scalars([*fine.size, *coarse.size, *single])
            up = scalars([*coarse.size, *fine.size, *single])
            self._restrict.append(bind("restrict", self._r[n + 1], self._r[n], rows, down))
            self._interpolate.append(bind("interpolate", self._u[n], self._u[n + 1], rows, up))

    def prepare(self) -> None:
        self.charges.place()
        self._v_halo.exchange()
        self._u[-1].fill(0.0)
        self._finest_residual()
        self._cycle()
        self._finest_residual()
        self._u[-1].fill(0.0)

    def solve(self) -> None:
        self._finest_residual()
        self._measure()
        for _ in range(self._problem.iterations):
            self._cycle()
            self._finest_residual()
        self._measure()

    def _finest_residual(self) -> None:
        self._residual()
        self._r_halo[-1].exchange()

    def _cycle(self) -> None:
        """One V-cycle: restrict the residual to the coarsest level, then correct upwards."""
        finest = len(self._levels) - 1
        for n in range(finest - 1, -1, -1):
            self._restrict[n]()
            self._r_halo[n].exchange()
        self._u[0].fill(0.0)
        self._smooth_level(0)
        for n in range(1, finest + 1):
            if n < finest:
                self._u[n].fill(0.0)
            self._interpolate[n - 1]()
            self._u_halo[n].spread()
            if n < finest:
                self._residual_in_place[n]()
                self._r_halo[n].exchange()
            else:
                self._finest_residual()
            self._smooth_level(n)

    def _smooth_level(self, n: int) -> None:
        self._smooth[n]()
        self._u_halo[n].exchange()

    def _measure(self) -> None:
        """Compute the norm of the residual: its root mean square.

        The largest value is computed too, as in the original.
        """
        from mpi4py import MPI

        self._norms()
        local, total = self._norms_local, self._norms_global
        with self.mpi:
            self._comm.Allreduce(local[:1], total[:1], op=MPI.MAX)
            self._comm.Allreduce(local[1:], total[1:], op=MPI.SUM)
        self._norm = math.sqrt(total[1] / 8.0**self._problem.log2_points)

    def checks(self) -> list[Check]:
        return [Check("L2 Norm", self._norm, self._problem.norm, TOLERANCE)]
