"""One run of miniGhost: set up, solve, verify, print."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from runner.programs.apps.common.intranode import abort_on_loss
from runner.programs.apps.common.layout import Layout
from runner.programs.apps.common.mated import as_usage_error, largest, typical
from runner.programs.apps.common.meter import RunSummary, RunTimes, breakdown
from runner.programs.apps.common.models import GRAPHS, MATE_VARIANTS
from runner.programs.apps.common.mpi import agree, print_help
from runner.programs.apps.common.serial import compare_with_serial
from runner.programs.apps.minighost.domain import serial_domain
from runner.programs.apps.minighost.heat import Verdict, balance, total
from runner.programs.apps.minighost.options import Options, parse
from runner.programs.apps.minighost.output import print_result
from runner.programs.apps.minighost.problem import check_size
from runner.programs.apps.minighost.variants import Solver, layout_of, make_solver
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
        check_size(options.size, options.steps)
        layout = layout_of(comm, options)
        return layout, make_solver(comm, options, layout, masks, number)

    layout, solver = agree(comm, set_up)
    with abort_on_loss(comm, "minighost"):
        summary = _solve(comm, options, layout, solver, begin)
    if comm.rank == 0:
        print_result(comm.size, options, layout, summary)
    return 1 if summary.verdict.is_right is False else 0


def _solve(
    comm: Any, options: Options, layout: Layout, solver: Solver, begin: float
) -> RunSummary[Verdict]:
    """Run all repetitions; the first one that is not verified decides the verdict."""
    repetitions: list[RunTimes] = []
    verdicts: list[Verdict] = []
    startup_s = 0.0
    for _ in range(options.repetitions):
        solver.domain.reset()
        put_in = total(comm, solver.domain.heat())
        startup_s = startup_s or largest(comm, perf_counter() - begin)
        with as_usage_error():
            repetitions.append(solver.solve(options.steps))
        verdicts.append(_verify(comm, options, solver, put_in))
    verdict = next((v for v in verdicts if v.is_right is False), verdicts[-1])
    solver_s, middle, seconds = typical(comm, repetitions)
    parts = options.variant in (*MATE_VARIANTS, *GRAPHS)
    odf = layout.local_count / options.config.workers if parts else 1.0
    return RunSummary(seconds, solver_s, breakdown(comm, middle, solver_s, odf), verdict, startup_s)


def _verify(comm: Any, options: Options, solver: Solver, put_in: list[float]) -> Verdict:
    verdict = balance(comm, solver.domain, put_in, options.steps)
    if options.verify == "none":
        return Verdict(None, verdict.error, verdict.bound, "unchecked: --verify none")
    if options.verify == "full" and verdict.is_right:
        difference = compare_with_serial(
            comm,
            [solver.domain],
            lambda: serial_domain(options.size, options.steps, options.variables).interior,
        )
        message = difference or f"{verdict.message}; every bit as in the serial run"
        return Verdict(difference is None, verdict.error, verdict.bound, message)
    return verdict
