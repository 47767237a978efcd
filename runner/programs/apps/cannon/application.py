"""One run of Cannon's algorithm: set up, multiply, verify, print."""

from __future__ import annotations

from time import perf_counter
from typing import Any, Protocol

from runner.programs.apps.cannon.matrices import Matrix, checksum, make_layout, verify
from runner.programs.apps.cannon.options import Options, parse
from runner.programs.apps.cannon.variant_mate import OnMate
from runner.programs.apps.cannon.variant_mpi import Flat
from runner.programs.apps.common.mated import as_usage_error, largest, typical
from runner.programs.apps.common.meter import RunTimes, breakdown
from runner.programs.apps.common.mpi import agree, print_help
from runner.programs.apps.common.report import json_line
from runner.runtimes import mate


class Solver(Protocol):
    """The interface of every variant."""

    @property
    def c(self) -> dict[tuple[int, int], Matrix]:
        """The blocks of C that this process has computed."""

    def reset(self) -> None: ...

    def solve(self, iterations: int) -> RunTimes: ...


def main(comm: Any, arguments: list[str], begin: float) -> int:
    """The application on one rank; returns the exit code.

    ``begin`` is the time at which the process started. Raises
    :class:`runner.programs.apps.common.errors.AppError` on all ranks alike.
    """
    options = agree(comm, lambda: parse(arguments))
    if print_help(comm, options):
        return 0
    on_mate = options.variant == "mate"
    local = options.config.ranks_per_process if on_mate else None
    layout = agree(comm, lambda: make_layout(options.size, comm.size, options.grid, local))
    solver: Solver
    if on_mate:
        mate.world(options.config)  # This call checks if MPI granted the thread level.
        solver = OnMate(comm, layout, options.config)
    else:
        solver = Flat(comm, layout, options.variant == "overlap")
    startup_s = largest(comm, perf_counter() - begin)
    runs = [_time_run(solver, options) for _ in range(options.repetitions)]
    solver_s, middle, seconds = typical(comm, runs)
    parts = breakdown(comm, middle, solver_s, layout.local_count / options.config.workers)
    total = checksum(comm, layout, solver.c)
    wrong = verify(comm, layout, solver.c, options.iterations) if options.verify else None
    if comm.rank == 0:
        is_right = None if wrong is None else not wrong
        ranks = comm.size * layout.local_count
        flops = 2.0 * options.size**3 * options.iterations
        message = {None: "unchecked: --verify none", True: "every bit is right"}
        print(
            f"cannon {options.variant}: {options.size} x {options.size}, {options.iterations} "
            f"times, {comm.size} processes as {layout.processes[0]}x{layout.processes[1]}, "
            f"{layout.blocks}x{layout.blocks} blocks"
        )
        print(f"solver {solver_s:.4f} s, {flops / solver_s / 1e6:.0f} MFlop/s")
        print(message.get(is_right, f"verification failed: {wrong}"))
        result = {
            "app": "cannon",
            "variant": options.variant,
            "input": options.input,
            "size": options.size,
            "iterations": options.iterations,
            "grid": list(layout.processes),
            "blocks": layout.blocks,
            "processes": comm.size,
            "ranks": ranks if on_mate else comm.size,
            "workers": options.config.workers,
            "solver_s": solver_s,
            "verified": is_right,
            "checksum": total,
            "mflops": flops / solver_s / 1e6,
            **parts.result(startup_s, seconds),
        }
        print(json_line(result), flush=True)
    return 1 if wrong else 0


def _time_run(solver: Solver, options: Options) -> RunTimes:
    solver.reset()
    with as_usage_error():
        return solver.solve(options.iterations)
