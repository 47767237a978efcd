"""One run of Jacobi3D: set up, solve, verify, print."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from runner.apps.common_grid import Shape, checked_grid, coordinates, show_shape, split
from runner.apps.common_mpi import agree
from runner.apps.common_report import json_line, phase_summary
from runner.apps.jacobi3d.block import Block
from runner.apps.jacobi3d.inputs import stored_residual
from runner.apps.jacobi3d.options import Options, parse
from runner.apps.jacobi3d.problem import DEPTH, FLOPS_PER_CELL, check_size
from runner.apps.jacobi3d.variant_mpi import BasicMPI
from runner.apps.jacobi3d.verify import (
    Verdict,
    compare_with_serial,
    global_residual,
    judge_residual,
)


@dataclass(frozen=True)
class Solved:
    """The repetitions of one run: seconds of each (the slowest rank), their median as
    ``solver_s``, and the phases of the repetition that took so long."""

    seconds: list[float]
    solver_s: float
    phases: dict[str, dict[str, float]]
    verdict: Verdict
    startup_s: float


def main(comm: Any, arguments: list[str], begin: float) -> int:
    """The application on one rank; returns the exit code.  ``begin``: when the process started.

    Raises :class:`runner.apps.common_errors.AppError` on all ranks alike.
    """
    options = agree(comm, lambda: parse(arguments))
    if options.help is not None:
        if comm.rank == 0:
            print(options.help, flush=True)
        return 0
    grid, block = agree(comm, lambda: _set_up(comm, options))
    solved = _solve(comm, options, grid, block, begin)
    if comm.rank == 0:
        _print(comm.size, options, grid, solved)
    return 1 if solved.verdict.verified is False else 0


def _set_up(comm: Any, options: Options) -> tuple[Shape, Block]:
    check_size(options.size, options.iterations)
    grid = checked_grid(options.size, comm.size, DEPTH, options.grid)
    place = coordinates(comm.rank, grid)
    ranges = [split(n, p, c) for n, p, c in zip(options.size, grid, place, strict=True)]
    start, stop = tuple(a for a, _ in ranges), tuple(b for _, b in ranges)
    return grid, Block(options.size, start, stop, options.block)


def _solve(comm: Any, options: Options, grid: Shape, block: Block, begin: float) -> Solved:
    """All repetitions; the first one that is not verified decides the verdict."""
    solver = BasicMPI(comm, block, grid)
    seconds: list[float] = []
    phases: list[dict[str, float]] = []
    verdicts: list[Verdict] = []
    startup_s = 0.0
    for _ in range(options.repetitions):
        block.reset()
        at_start = global_residual(comm, block)
        startup_s = startup_s or comm.allreduce(perf_counter() - begin, op=_max())
        elapsed, spent = solver.solve(options.iterations)
        seconds.append(comm.allreduce(elapsed, op=_max()))
        phases.append(spent)
        verdicts.append(_verify(comm, options, block, at_start))
    verdict = next((v for v in verdicts if v.verified is False), verdicts[-1])
    solver_s = statistics.median_low(seconds)
    typical = phases[seconds.index(solver_s)]
    return Solved(seconds, solver_s, phase_summary(comm, typical), verdict, startup_s)


def _max() -> Any:
    from mpi4py import MPI

    return MPI.MAX


def _verify(comm: Any, options: Options, block: Block, at_start: float) -> Verdict:
    value = global_residual(comm, block)
    expected = stored_residual(options.size, options.iterations)
    if options.verify == "none":
        return Verdict(None, value, expected, f"residual {value!r} unchecked: --verify none")
    verdict = judge_residual(value, at_start, expected)
    if options.verify == "full" and verdict.verified is not False:
        difference = compare_with_serial(comm, block, options.iterations)
        message = difference or f"residual {value!r}, every bit as in the serial run"
        return Verdict(difference is None, value, expected, message)
    return verdict


def _print(ranks: int, options: Options, grid: Shape, solved: Solved) -> None:
    updates = math.prod(options.size) * options.iterations
    mflops = FLOPS_PER_CELL * updates / solved.solver_s / 1e6
    result: dict[str, Any] = {
        "app": "jacobi3d",
        "variant": options.variant,
        "input": options.input,
        "size": list(options.size),
        "iterations": options.iterations,
        "grid": list(grid),
        "ranks": ranks,
        "block": options.block,
        "solver_s": solved.solver_s,
        "verified": solved.verdict.verified,
        "residual": solved.verdict.residual,
        "expected": solved.verdict.expected,
        "mflops": mflops,
        "phases": solved.phases,
        "startup_s": solved.startup_s,
    }
    if options.repetitions > 1:
        result["repetitions_s"] = solved.seconds
    cells = f"{show_shape(options.size)} cells, {options.iterations} iterations"
    print(f"jacobi3d {options.variant}: {cells}, {ranks} ranks as {show_shape(grid)}")
    print(
        f"solver {solved.solver_s:.4f} s, {mflops:.0f} MFlop/s, start-up {solved.startup_s:.2f} s"
    )
    shares = (f"{name} {s['mean']:.4f}" for name, s in solved.phases.items())
    print(f"seconds, mean over ranks: {', '.join(shares)}")
    print(solved.verdict.message)
    print(json_line(result), flush=True)
