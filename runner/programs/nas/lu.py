"""LU: the compressible Navier-Stokes equations by symmetric successive over-relaxation.

Both sweeps run as a wave through the ranks, with a message per plane and neighbour. Source:
NAS-95-020, section 4.5; decomposition and messages of NPB 3.4-MPI.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from runner.programs.nas.cfd_exact import exact, start_values
from runner.programs.nas.common.kernel import Check, Facts, Stopwatch
from runner.programs.nas.lu_domain import Domain, Field, Messages, domain
from runner.programs.nas.lu_surface import Column, surface_integral
from runner.programs.nas.lu_values import VALUES_A, VALUES_B, VALUES_S, VALUES_W, Norms, Values
from runner.runtimes.core.kernels import load, scalars

OMEGA = 1.2
DISSIPATION = 0.25
SPREAD = (0.75, 0.75, 1.0)
"""Second-order dissipation along x, y and z."""
TOLERANCE = 1e-8

Call = Callable[[], None]


@dataclass(frozen=True)
class Problem:
    """One class: points per axis, iterations, time step, official results."""

    size: int
    iterations: int
    dt: float
    values: Values


PROBLEMS = {
    "S": Problem(12, 50, 0.5, VALUES_S),
    "W": Problem(33, 300, 1.5e-3, VALUES_W),
    "A": Problem(64, 250, 2.0, VALUES_A),
    "B": Problem(102, 250, 2.0, VALUES_B),
}


def build(comm: Any, problem: Problem) -> LU:
    """The kernel; raises :class:`AppUsageError` if the number of ranks does not fit the class."""
    return LU(comm, problem, domain(problem.size, comm.size, comm.rank))


class LU:
    """See :class:`runner.programs.nas.common.kernel.Kernel`."""

    def __init__(self, comm: Any, problem: Problem, own: Domain) -> None:
        self._comm, self._problem, self._domain = comm, problem, own
        self.mpi = Stopwatch()
        self.facts = _facts(problem)
        self._messages = Messages(comm, own, self.mpi)
        self._u, self._rest, self._forcing = (np.zeros(own.shape) for _ in range(3))
        self._lines = np.zeros(20 * (max(own.shape[:3]) + 1))
        self._plane = np.zeros(8, dtype=np.uint64)
        self._local, self._total = np.zeros(5), np.zeros(5)
        self._residual = np.full(5, math.nan)
        self._bind()
        self._set_forcing()

    def _bind(self) -> None:
        nz, ey, ex, _ = self._domain.shape
        dt, h = self._problem.dt, 1.0 / (self._problem.size - 1)
        inner = [*self._domain.inner_y, *self._domain.inner_x, ex, ey, nz]
        self._plane[1:] = inner
        steps = [v for spread in SPREAD for v in (0.5 / h, 1.0 / h**2, spread)]
        self._numbers = np.array([dt, OMEGA * dt, *steps])
        self._lower, self._upper = self._sweeps(self._plane)
        box = scalars([1, nz - 1, *inner])
        bind = load("runner.programs.nas.cfd_field_kernels").bind
        self._scale = bind("scale", self._rest, np.array([dt]), box)
        factor = np.array([1.0 / (OMEGA * (2.0 - OMEGA))])
        self._update = bind("update", self._u, self._rest, factor, box)
        self._squares = bind("squares", self._rest, self._local, box)
        self._fluxes = [self._flux(self._u, self._rest, axis) for axis in range(3)]

    def _sweeps(self, plane: Any) -> tuple[Call, Call]:
        """The lower and the upper sweep of a plane; ``plane`` is the state of their kernels."""
        kernels, fields = load("runner.programs.nas.lu_kernels"), (self._u, self._rest)
        lower = kernels.bind("lower_plane", *fields, self._numbers, plane)
        return lower, kernels.bind("upper_plane", *fields, self._numbers, plane)

    def _flux(self, field: Field, result: Field, axis: int) -> Call:
        own = self._domain
        nz, ey, ex, _ = own.shape
        inner = ((*own.inner_x, 5), (*own.inner_y, 5 * ex), (1, nz - 1, 5 * ex * ey))
        walls = ((own.north, own.south), (own.west, own.east), (None, None))[axis]
        others = [n for n in range(3) if n != axis]
        components = [axis + 1, *(n + 1 for n in others)]
        state = [
            field.size,
            *inner[others[0]],
            *inner[others[1]],
            *inner[axis],
            *components,
            *(int(neighbour is None) for neighbour in walls),
        ]
        h = 1.0 / (self._problem.size - 1)
        numbers = np.array([0.5 / h, 1.0 / h, 1.0 / h**2, SPREAD[axis], DISSIPATION])
        return load("runner.programs.nas.cfd_flux_kernels").bind(
            "add_fluxes", field, result, self._lines, numbers, scalars(state)
        )

    def _set_forcing(self) -> None:
        """Set the forcing for which the exact solution is steady."""
        x, y, z = self._domain.coordinates()
        solution = exact(x[None, None, :], y[None, :, None], z[:, None, None])
        for axis in range(3):
            self._flux(solution, self._forcing, axis)()
        # The start of the right-hand side.
        np.negative(self._forcing, out=self._forcing)

    def prepare(self) -> None:
        self._start()
        self._iterate()
        self._start()

    def _start(self) -> None:
        self._u[...] = start_values(*self._domain.coordinates())
        self._rest.fill(0.0)
        self._right_hand_side()
        self._norms()

    def solve(self) -> None:
        last = self._problem.iterations
        for step in range(1, last + 1):
            self._iterate(measure=step == last)

    def _iterate(self, measure: bool = False) -> None:
        planes = range(1, self._problem.size - 1)
        messages, rest = self._messages, self._rest
        self._scale()
        for plane in planes:
            messages.before_lower(rest, plane)
            self._plane[0] = plane
            self._lower()
            messages.after_lower(rest, plane)
        for plane in reversed(planes):
            messages.before_upper(rest, plane)
            self._plane[0] = plane
            self._upper()
            messages.after_upper(rest, plane)
        self._update()
        if measure:
            # The norm of the change; the original computes it at the last step, too.
            self._norms()
        self._right_hand_side()
        if measure:
            self._residual = self._norms()

    def _right_hand_side(self) -> None:
        self._rest[...] = self._forcing
        self._messages.exchange_x(self._u)
        self._fluxes[0]()
        self._messages.exchange_y(self._u)
        self._fluxes[1]()
        self._fluxes[2]()

    def _norms(self) -> Field:
        """Root mean squares of the five components of ``rest``."""
        self._squares()
        with self.mpi:
            self._comm.Allreduce(self._local, self._total)
        return root_mean_square(self._total, self._problem.size)

    @property
    def column(self) -> Column:
        """The part of this rank and its solution."""
        return self._domain, self._u

    def error_squares(self) -> Field:
        """Sums of the squared differences from the exact solution; overwrites ``rest``."""
        x, y, z = self._domain.coordinates()
        self._rest[...] = self._u - exact(x[None, None, :], y[None, :, None], z[:, None, None])
        self._squares()
        return self._local

    def checks(self) -> list[Check]:
        return checks_of(self._comm, self._problem, [self], self._residual)


def root_mean_square(squares: Field, size: int) -> Field:
    """The root mean squares of which these are the sums over all inner points."""
    norms: Field = np.sqrt(squares / (size - 2) ** 3)
    return norms


def checks_of(comm: Any, problem: Problem, columns: Sequence[LU], residual: Field) -> list[Check]:
    """The checks of a result; ``columns`` are those of this process.  Collective."""
    values = problem.values
    surface = surface_integral(comm, [one.column for one in columns])
    squares, total = np.zeros(5), np.zeros(5)
    for one in columns:
        squares += one.error_squares()
    comm.Allreduce(squares, total)
    return [
        *_norm_checks("residual", residual, values.residual),
        *_norm_checks("error", root_mean_square(total, problem.size), values.error),
        Check("Surface integral", surface, values.surface, TOLERANCE),
    ]


def _norm_checks(what: str, norms: Field, reference: Norms) -> list[Check]:
    return [
        Check(f"RMS norm {n} of the {what}", float(value), right, TOLERANCE)
        for n, (value, right) in enumerate(zip(norms, reference, strict=True), start=1)
    ]


def _facts(problem: Problem) -> Facts:
    n = float(problem.size)
    operations = 1984.77 * n**3 - 10923.3 * n**2 + 27770.9 * n - 144010.0
    size = "x".join([str(problem.size)] * 3)
    return Facts(size, problem.iterations, problem.iterations * operations, "floating point")
