"""One run of Jacobi3D: set up, solve, verify, print."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from runner.programs.apps.common.layout import Layout
from runner.programs.apps.common.mated import as_usage_error, largest, typical
from runner.programs.apps.common.meter import RunSummary, RunTimes, breakdown
from runner.programs.apps.common.mpi import agree, print_help
from runner.programs.apps.common.serial import compare_with_serial
from runner.programs.apps.jacobi3d.block import serial_block
from runner.programs.apps.jacobi3d.inputs import stored_residual
from runner.programs.apps.jacobi3d.options import Options, parse
from runner.programs.apps.jacobi3d.output import print_result
from runner.programs.apps.jacobi3d.problem import check_size
from runner.programs.apps.jacobi3d.variants import Solver, layout_of, make_solver
from runner.programs.apps.jacobi3d.verify import (
    Verdict,
    global_residual,
    judge_residual,
)
from runner.runtimes.workers.affinity import masks_on_node


def main(comm: Any, arguments: list[str], begin: float) -> int:
    """The application on one rank; returns the exit code.

    ``begin`` is the time at which the process started. Raises
    :class:`runner.programs.apps.common.errors.AppError` on all ranks alike.
    """
    options = agree(comm, lambda: parse(arguments))
    if print_help(comm, options):
        return 0
    masks, number = masks_on_node(comm) if options.variant == "threads" else ([], 0)

    def set_up() -> tuple[Layout, Solver]:
        check_size(options.size, options.iterations)
        layout = layout_of(comm, options)
        return layout, make_solver(comm, options, layout, masks, number)

    layout, solver = agree(comm, set_up)
    summary = _solve(comm, options, layout, solver, begin)
    if comm.rank == 0:
        print_result(comm.size, options, layout, summary)
    return 1 if summary.verdict.is_verified is False else 0


def _solve(
    comm: Any, options: Options, layout: Layout, solver: Solver, begin: float
) -> RunSummary[Verdict]:
    """Run all repetitions; the first one that is not verified decides the verdict."""
    repetitions: list[RunTimes] = []
    verdicts: list[Verdict] = []
    startup_s = 0.0
    for _ in range(options.repetitions):
        for block in solver.blocks:
            block.reset()
        at_start = global_residual(comm, solver.blocks)
        startup_s = startup_s or largest(comm, perf_counter() - begin)
        repetitions.append(_time_run(solver, options))
        verdicts.append(_verify(comm, options, solver, at_start))
    verdict = next((v for v in verdicts if v.is_verified is False), verdicts[-1])
    solver_s, middle, seconds = typical(comm, repetitions)
    odf = 1.0 if options.variant == "openmp" else layout.local_count / options.config.workers
    return RunSummary(seconds, solver_s, breakdown(comm, middle, solver_s, odf), verdict, startup_s)


def _time_run(solver: Solver, options: Options) -> RunTimes:
    with as_usage_error():
        return solver.solve(options.iterations)


def _verify(comm: Any, options: Options, solver: Solver, at_start: float) -> Verdict:
    value = global_residual(comm, solver.blocks)
    reference = stored_residual(options.size, options.iterations)
    if options.verify == "none":
        return Verdict(None, value, reference, f"residual {value!r} unchecked: --verify none")
    verdict = judge_residual(value, at_start, reference)
    if options.verify == "full" and verdict.is_verified is not False:
        difference = compare_with_serial(
            comm, solver.blocks, lambda: serial_block(options.size, options.iterations).interior
        )
        message = difference or f"residual {value!r}, every bit as in the serial run"
        return Verdict(difference is None, value, reference, message)
    return verdict
