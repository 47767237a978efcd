"""CG: the smallest eigenvalue of a sparse random matrix by inverse iteration.

Each step is solved by 25 conjugate-gradient iterations. Each product needs sums along rows of ranks
and one transpose. Source: NAS-95-020, section 2.2.3; decomposition and messages of NPB 3.4-MPI.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.programs.nas.cg_grid import block
from runner.programs.nas.cg_matrix import make_matrix
from runner.programs.nas.common.grid import log2_ranks
from runner.programs.nas.common.kernel import Check, Facts, Kernel, Stopwatch
from runner.runtimes.core.kernels import load, scalars
from runner.runtimes.core.openmp import ParallelRegion, Task

INNER = 25
TOLERANCE = 1e-10

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """One class: order, random entries of a vector, outer iterations, shift, eigenvalue."""

    order: int
    nonzeros: int
    iterations: int
    shift: float
    zeta: float


PROBLEMS = {
    "S": Problem(1400, 7, 15, 10.0, 8.5971775078648),
    "W": Problem(7000, 8, 15, 12.0, 10.362595087124),
    "A": Problem(14000, 11, 15, 20.0, 17.130235054029),
    "B": Problem(75000, 13, 75, 60.0, 22.712745482631),
}


def build(comm: Any, problem: Problem) -> CG:
    """The kernel; raises :class:`AppUsageError` if the number of ranks is not a power of two."""
    return CG(comm, problem, log2_ranks("cg", comm.size))


def _operations(problem: Problem) -> float:
    per_row = problem.nonzeros * (problem.nonzeros + 1.0)
    inner = 3.0 + per_row + INNER * (5.0 + per_row) + 3.0
    return 2.0 * problem.iterations * problem.order * inner


class CG(Kernel):
    """See :class:`runner.programs.nas.common.kernel.Kernel`.

    Vectors x, z, p, q, r are divided by columns of the matrix. The product w of this rank's block
    with one of them is divided by rows; it must be summed along the row of ranks and transposed.
    """

    def __init__(self, comm: Any, problem: Problem, log2: int) -> None:
        self._comm, self._problem = comm, problem
        self.mpi = Stopwatch()
        self.facts = Facts(
            str(problem.order), problem.iterations, _operations(problem), "floating point"
        )
        self._zeta = math.nan
        self._block = block(problem.order, log2, comm.rank)
        self._rows = self._block.rows[1] - self._block.rows[0]
        self._columns = self._block.columns[1] - self._block.columns[0]
        self._x, self._z, self._p, self._q, self._r = (np.zeros(self._columns) for _ in range(5))
        self._w, self._incoming = np.zeros(self._rows), np.zeros(self._rows)
        self._sum, self._factor = np.zeros(2), np.zeros(1)
        self._partial, self._one = np.zeros(2), self._sum[:1]
        self._bind_products()
        self._bind_vectors()

    def share(self, threads: int) -> None:
        """Let this many OpenMP threads share the rows of each product; the sums keep their bits.

        Raises :class:`runner.errors.RunnerError` without an OpenMP run-time.
        """
        if threads == 1:
            return
        matrix, kernels = self._matrix, load("runner.programs.nas.cg_kernels")
        # Each thread has equally many entries of the matrix; rows differ in length.
        shares = np.linspace(0, int(matrix.starts[self._rows]), threads + 1)[1:-1]
        cuts = np.searchsorted(matrix.starts[: self._rows + 1], shares).tolist()
        bounds = [0, *cuts, self._rows]

        def product(vector: Vector) -> Callable[[], None]:
            tasks: list[Task] = []
            for first, end in pairwise(bounds):
                starts, sizes = matrix.starts[first : end + 1], scalars([end - first, len(vector)])
                rows = (starts, matrix.columns, matrix.values, vector, self._w[first:end], sizes)
                tasks += [("multiply", rows)] if end > first else []
            return ParallelRegion(kernels, tasks)

        self._multiply_p, self._multiply_z = product(self._p), product(self._z)

    def _bind_products(self) -> None:
        problem = self._problem
        kernels = load("runner.programs.nas.cg_kernels")
        matrix = make_matrix(problem.order, problem.nonzeros, problem.shift, self._block)
        self._matrix = matrix
        sizes = scalars([self._rows, self._columns])

        def product(vector: Vector) -> Callable[[], None]:
            return kernels.bind(
                "multiply", matrix.starts, matrix.columns, matrix.values, vector, self._w, sizes
            )

        self._multiply_p, self._multiply_z = product(self._p), product(self._z)

    def _bind_vectors(self) -> None:
        bind, length = load("runner.programs.nas.cg_kernels").bind, scalars([self._columns])
        self._dot_rr = bind("dot", self._r, self._r, self._sum, length)
        self._dot_pq = bind("dot", self._p, self._q, self._sum, length)
        self._advance = bind("advance", self._z, self._r, self._p, self._q, self._sum, length)
        self._direct = bind("direct", self._p, self._r, self._factor, length)
        self._distance = bind("distance", self._x, self._r, self._sum, length)
        self._two_dots = bind("two_dots", self._x, self._z, self._sum, length)

    def prepare(self) -> None:
        self._x.fill(1.0)
        self._iterate()
        self._x.fill(1.0)

    def solve(self) -> None:
        for _ in range(self._problem.iterations):
            self._iterate()

    def _iterate(self) -> None:
        """One step of inverse iteration: solve A z = x, estimate the eigenvalue, x = z / |z|."""
        self._conjugate_gradient()
        self._two_dots()
        self._sum_along_row(self._sum)
        self._zeta = self._problem.shift + 1.0 / float(self._sum[0])
        np.multiply(self._z, 1.0 / math.sqrt(self._sum[1]), out=self._x)

    def _conjugate_gradient(self) -> None:
        one, factor = self._one, self._factor
        self._z.fill(0.0)
        self._r[:] = self._x
        self._p[:] = self._x
        self._dot_rr()
        self._sum_along_row(one)
        rho = float(one[0])
        for _ in range(INNER):
            self._multiply_p()
            self._sum_and_transpose(self._q)
            self._dot_pq()
            self._sum_along_row(one)
            one[0] = rho / one[0]
            self._advance()
            self._sum_along_row(one)
            before, rho = rho, float(one[0])
            factor[0] = rho / before
            self._direct()
        # The length of the residual, |x - A z|, which the original prints.
        self._multiply_z()
        self._sum_and_transpose(self._r)
        self._distance()
        self._sum_along_row(one)

    def _sum_and_transpose(self, target: Vector) -> None:
        """Sum the product over the row of ranks and copy the columns of this rank into target."""
        block, w, incoming = self._block, self._w, self._incoming
        if not block.steps:
            target[:] = w
            return
        comm = self._comm
        with self.mpi:
            for tag, step in zip(range(len(block.steps), 0, -1), block.steps, strict=True):
                part = slice(*step.receive)
                request = comm.Irecv(incoming[part], step.partner, tag)
                comm.Send(w[slice(*step.send)], step.partner, tag)
                request.Wait()
                w[part] += incoming[part]
            request = comm.Irecv(target, block.transpose, 1)
            comm.Send(w[slice(*block.piece)], block.transpose, 1)
            request.Wait()

    def _sum_along_row(self, values: Vector) -> None:
        """Sum one or two numbers over the row of ranks by pairwise exchanges."""
        partners = self._block.partners
        if not partners:
            return
        comm, partial = self._comm, self._partial[: len(values)]
        with self.mpi:
            for tag, partner in enumerate(partners, start=1):
                request = comm.Irecv(partial, partner, tag)
                comm.Send(values, partner, tag)
                request.Wait()
                values += partial

    def checks(self) -> list[Check]:
        return [Check("Zeta", self._zeta, self._problem.zeta, TOLERANCE)]
