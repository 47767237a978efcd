"""FT: a diffusion equation by three-dimensional FFTs; all-to-all messages transpose the grid.

Source: NAS-95-020, section 2.2.5; decomposition and messages of NPB 3.4-MPI.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from runner.programs.nas.common.grid import log2_ranks
from runner.programs.nas.common.kernel import Check, Facts, Stopwatch
from runner.programs.nas.common.random import SEED, fill_uniform, jump
from runner.programs.nas.ft_layout import Layout, Shape, Turner, rank_grid
from runner.programs.nas.ft_transform import Transforms
from runner.programs.nas.ft_values import SUMS_A, SUMS_B, SUMS_S, SUMS_W
from runner.runtimes.core.kernels import load, scalars

ALPHA = 1e-6
SAMPLES = 1024
"""Number of points that a checksum adds up."""
TOLERANCE = 1e-12

Call = Callable[[], None]


@dataclass(frozen=True)
class Problem:
    """One class: points per axis and the checksum of each iteration."""

    points: Shape
    sums: tuple[complex, ...]


PROBLEMS = {
    "S": Problem((64, 64, 64), SUMS_S),
    "W": Problem((128, 128, 32), SUMS_W),
    "A": Problem((256, 256, 128), SUMS_A),
    "B": Problem((512, 256, 256), SUMS_B),
}


def build(comm: Any, problem: Problem) -> FT:
    """The kernel; raises :class:`AppUsageError` if the ranks are not a power of two or too many."""
    nz = problem.points[2]
    log2_ranks("ft", comm.size, largest=nz * nz)
    return FT(comm, problem, rank_grid(comm.size, nz))


class FT:
    """See :class:`runner.programs.nas.common.kernel.Kernel`.  ``grid`` = ranks along two axes."""

    def __init__(self, comm: Any, problem: Problem, grid: tuple[int, int]) -> None:
        self._comm, self._problem = comm, problem
        self.mpi = Stopwatch()
        total = math.prod(problem.points)
        self.facts = _facts(problem, total)
        self._layout = Layout(problem.points, grid, comm.rank)
        local = total // comm.size
        # Fourier space, the same after a step of time, and real space.
        self._u0, self._u1, self._u2 = (np.zeros(local, dtype=complex) for _ in range(3))
        self._sums = np.zeros((len(problem.sums), 1), dtype=complex)
        self._part = np.zeros(1, dtype=complex)
        self._samples = _samples(self._layout)
        self._transforms = Transforms(set(problem.points))
        self._forward, self._inverse = self._sequences(self._turner())
        self._bind(local)

    def _turner(self) -> Turner:
        """The transpositions between the layouts."""
        return Turner(self._comm, self._layout, self.mpi)

    def _bind(self, local: int) -> None:
        bind = load("runner.programs.nas.ft_kernels").bind
        shape = self._layout.shapes[2]
        factors = np.zeros(local)
        self._squares = np.zeros(sum(shape))
        self._decay = bind("decay", factors, self._squares, scalars(list(shape)))
        u0, u1 = self._u0.view(np.float64), self._u1.view(np.float64)
        self._evolve = bind("evolve", u0, u1, factors, scalars([local]))

    def _sequences(self, turner: Turner) -> tuple[list[Call], list[Call]]:
        """The steps of the transforms u1 -> u0 (forward) and u1 -> u2 (inverse)."""
        u0, u1, u2 = self._u0, self._u1, self._u2
        first, second, third = self._layout.shapes
        along = self._transforms.along
        np1, np2 = self._layout.grid
        if np1 == np2 == 1:
            forward = [along(axis, 1, first, u1, (u1, u1, u0)[axis]) for axis in (0, 1, 2)]
            inverse = [along(axis, -1, first, u1, (u2, u1, u1)[axis]) for axis in (2, 1, 0)]
        elif np1 == 1:
            forward = [
                along(0, 1, first, u1, u1),
                along(1, 1, second, u1, u1),
                turner.slabs_to_third(u1, u0),
                along(0, 1, third, u0, u0),
            ]
            inverse = [
                along(0, -1, third, u1, u1),
                turner.third_to_slabs(u1, u2),
                along(1, -1, second, u2, u2),
                along(0, -1, first, u2, u2),
            ]
        else:
            forward = [
                along(0, 1, first, u1, u1),
                turner.first_to_second(u1, u0),
                along(0, 1, second, u0, u0),
                turner.second_to_third(u0, u1),
                along(0, 1, third, u1, u0),
            ]
            inverse = [
                along(0, -1, third, u1, u1),
                turner.third_to_second(u1, u2),
                along(0, -1, second, u2, u2),
                turner.second_to_first(u2, u1),
                along(0, -1, first, u1, u2),
            ]
        return forward, inverse

    def _start(self) -> None:
        """Compute decay factors, random start values and the forward transform of these values."""
        self._fill_start_values()
        for step in self._forward:
            step()

    def _fill_start_values(self) -> None:
        self._fill_squares()
        self._decay()
        self._fill_random()
        self._transforms.make_roots()

    def _fill_squares(self) -> None:
        layout = self._layout
        axes = []
        for axis, count in zip(layout.third_axes, layout.shapes[2], strict=True):
            n = layout.points[axis]
            frequency = (layout.third_start[axis] + np.arange(count) + n // 2) % n - n // 2
            axes.append(-4.0 * ALPHA * np.pi**2 * frequency.astype(float) ** 2)
        self._squares[...] = np.concatenate(axes)

    def _fill_random(self) -> None:
        nx, ny, _ = self._problem.points
        n1, n2, n3 = self._layout.shapes[0]
        _, y, z = self._layout.first_start
        planes = self._u1.view(np.float64).reshape(n3, 2 * n1 * n2)
        for k in range(n3):
            fill_uniform(planes[k], jump(SEED, 2 * nx * ((z + k) * ny + y)))

    def prepare(self) -> None:
        self._start()

    def solve(self) -> None:
        self._start()
        for total in self._sums:
            self._evolve()
            for step in self._inverse:
                step()
            self._part[0] = self._u2[self._samples].sum() / math.prod(self._problem.points)
            with self.mpi:
                self._comm.Reduce(self._part, total, root=0)

    def checks(self) -> list[Check]:
        sums = self._sums[:, 0]
        checks = []
        for n, (sum_, reference) in enumerate(zip(sums, self._problem.sums, strict=True), start=1):
            for part, value, right in (
                ("real", sum_.real, reference.real),
                ("imaginary", sum_.imag, reference.imag),
            ):
                name = f"Checksum {n} ({part})"
                checks.append(Check(name, float(value), right, TOLERANCE))
        return checks


def _samples(layout: Layout) -> Any:
    """Positions in layout 1 of the checksum's points that are on this rank."""
    j = np.arange(1, SAMPLES + 1)
    place = np.zeros(SAMPLES, dtype=np.int64)
    is_local = np.ones(SAMPLES, dtype=bool)
    stride = 1
    for factor, points, start, count in zip(
        (1, 3, 5), layout.points, layout.first_start, layout.shapes[0], strict=True
    ):
        local = factor * j % points - start
        is_local &= (local >= 0) & (local < count)
        place += local * stride
        stride *= count
    return place[is_local]


def _facts(problem: Problem, total: int) -> Facts:
    log, steps = math.log(total), len(problem.sums)
    operations = total * (14.8157 + 7.19641 * log + (5.23518 + 7.21113 * log) * steps)
    size = "x".join(str(n) for n in problem.points)
    return Facts(size, steps, operations, "floating point")
