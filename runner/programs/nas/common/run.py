"""One run of a kernel: build, repeat, verify, print."""

from __future__ import annotations

import statistics
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from runner.programs.apps.common.mpi import agree
from runner.programs.apps.common.report import phase_summary
from runner.programs.apps.common.timed_part import TimedPart
from runner.programs.nas.common.kernel import Check, Kernel
from runner.programs.nas.common.options import Options, parse
from runner.programs.nas.common.report import Solution, print_result
from runner.runtimes.core.openmp import max_threads

if TYPE_CHECKING:
    from runner.programs.nas.common.on_mate import OnMate
    from runner.runtimes.mate import Config


def main(comm: Any, arguments: list[str], begin: float) -> int:
    """The program on one rank; returns the exit code.

    ``begin`` is the time at which the process started. Raises
    :class:`runner.programs.apps.common.errors.AppError` on all ranks alike.
    """
    options = agree(comm, lambda: parse(arguments))
    kernel: Kernel | OnMate[Any]
    if options.module is None:
        if comm.rank == 0:
            print(options.help, flush=True)
        return 0
    if options.config is None:
        kernel, threads = agree(comm, lambda: _build(comm, options))
        ranks, solution = comm.size, _solve(comm, kernel, options, begin)
    else:
        kernel, threads = _build_on_mate(comm, options, options.config), 1
        ranks, solution = kernel.ranks, _solve_on_mate(comm, kernel, options.config, options, begin)
    if comm.rank == 0:
        print_result(ranks, options, kernel.facts, solution, threads)
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


def _build_on_mate(comm: Any, options: Options, config: Config) -> OnMate[Any]:
    from runner.runtimes import mate

    assert options.module is not None
    module = options.module
    mate.world(config)  # This call checks if MPI granted the thread level.
    kernel: OnMate[Any] = agree(comm, lambda: module.build(comm, options))
    return kernel


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
    solver_s = statistics.median_low(seconds)
    typical = phase_summary(comm, phases[seconds.index(solver_s)])
    return Solution(seconds, solver_s, typical, _decisive(checks), startup_s)


def _solve_on_mate(
    comm: Any, kernel: OnMate[Any], config: Config, options: Options, begin: float
) -> Solution:
    from runner.programs.apps.common.mated import as_usage_error, typical
    from runner.programs.apps.common.meter import breakdown

    startup_s = _slowest(comm, perf_counter() - begin)
    runs, checks = [], []
    for _ in range(options.repetitions):
        with as_usage_error():
            runs.append(kernel.solve())
        checks.append(kernel.checks())
    solver_s, middle, seconds = typical(comm, runs)
    parts = breakdown(comm, middle, solver_s, config.ranks_per_process / config.workers)
    layout = {"variant": "mate", "processes": comm.size, "workers": config.workers}
    figures = {**layout, **parts.figures}
    return Solution(seconds, solver_s, parts.phases, _decisive(checks), startup_s, figures)


def _decisive(checks: list[list[Check]]) -> list[Check]:
    """Those of the first wrong repetition, else of the last one."""
    wrong = (c for c in checks if not all(check.right for check in c))
    return next(wrong, checks[-1])


def _slowest(comm: Any, seconds: float) -> float:
    from mpi4py import MPI

    largest = np.zeros(1)
    comm.Allreduce(np.array([seconds]), largest, op=MPI.MAX)
    return float(largest[0])
