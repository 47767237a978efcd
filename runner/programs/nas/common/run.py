"""One run of a kernel: build, repeat, verify, print."""

from __future__ import annotations

import statistics
from time import perf_counter
from typing import Any

import numpy as np

from runner.programs.apps.common.mpi import agree
from runner.programs.apps.common.report import phase_summary
from runner.programs.apps.common.timed_part import TimedPart
from runner.programs.nas.common.kernel import Check, Kernel
from runner.programs.nas.common.options import Options, parse
from runner.programs.nas.common.report import Solution, print_result
from runner.runtimes.core.openmp import max_threads


def main(comm: Any, arguments: list[str], begin: float) -> int:
    """The program on one rank; returns the exit code.

    ``begin`` is the time at which the process started. Raises
    :class:`runner.programs.apps.common.errors.AppError` on all ranks alike.
    """
    options = agree(comm, lambda: parse(arguments))
    if options.module is None:
        if comm.rank == 0:
            print(options.help, flush=True)
        return 0
    kernel, threads = agree(comm, lambda: _build(comm, options))
    solution = _solve(comm, kernel, options, begin)
    if comm.rank == 0:
        print_result(comm.size, options, kernel.facts, solution, threads)
    return int(comm.bcast(0 if solution.is_verified else 1))


def _build(comm: Any, options: Options) -> tuple[Kernel, int]:
    """The kernel, and the number of threads of this rank."""
    assert options.module is not None
    kernel = options.module.build(comm, options.problem)
    if not options.openmp:
        return kernel, 1
    threads = max_threads()
    kernel.share(threads)
    return kernel, threads


def _solve(comm: Any, kernel: Kernel, options: Options, begin: float) -> Solution:
    seconds: list[float] = []
    phases: list[dict[str, float]] = []
    checks: list[list[Check]] = []
    startup_s = 0.0
    for _ in range(options.repetitions):
        kernel.prepare()
        startup_s = startup_s or _slowest(comm, perf_counter() - begin)
        mpi_before = kernel.mpi.seconds
        with TimedPart(comm) as part:
            kernel.solve()
        mpi = kernel.mpi.seconds - mpi_before
        phases.append({"compute": part.seconds - mpi, "mpi": mpi})
        seconds.append(_slowest(comm, part.seconds))
        checks.append(kernel.checks())
    wrong = (c for c in checks if not all(check.right for check in c))
    solver_s = statistics.median_low(seconds)
    typical = phase_summary(comm, phases[seconds.index(solver_s)])
    return Solution(seconds, solver_s, typical, next(wrong, checks[-1]), startup_s)


def _slowest(comm: Any, seconds: float) -> float:
    from mpi4py import MPI

    largest = np.zeros(1)
    comm.Allreduce(np.array([seconds]), largest, op=MPI.MAX)
    return float(largest[0])
