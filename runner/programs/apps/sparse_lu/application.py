"""One run: analyse, factor once before the clock starts, factor, solve and check, print."""

from __future__ import annotations

from typing import Any

import numpy as np

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.mpi import agree, print_help
from runner.programs.apps.common.report import json_line
from runner.programs.apps.common.timed_part import TimedPart
from runner.programs.apps.sparse_lu.matrices import MATRICES
from runner.programs.apps.sparse_lu.mesh import Blocks, Mesh, solution
from runner.programs.apps.sparse_lu.options import Options, parse
from runner.programs.apps.sparse_lu.symbolic import Analysis, analyse
from runner.programs.apps.sparse_lu.variant_mpi import factorize
from runner.programs.apps.sparse_lu.variant_tarragon import Factorization

EXACT = 1e-8
"""Largest relative residual of a solution that counts as right."""


def main(comm: Any, arguments: list[str]) -> int:
    """The application on one rank; returns the exit code.

    Raises :class:`runner.programs.apps.common.errors.AppError` on all ranks alike.
    """
    options = agree(comm, lambda: parse(arguments))
    if print_help(comm, options):
        return 0
    mesh = agree(comm, lambda: _mesh(comm.size, options))
    matrix = MATRICES[options.input][0](options.size)
    analysis = comm.bcast(analyse(matrix, options.width, options.relax) if comm.rank == 0 else None)
    blocks = agree(comm, lambda: Blocks(matrix, analysis, mesh, comm.rank))
    seconds = 0.0
    more: dict[str, float] = {}
    for _ in range(2):
        blocks.reset()
        seconds, more = _factor(comm, blocks, options)
    everyone = comm.gather((seconds, more, blocks.at))
    code = 0
    if comm.rank == 0:
        whole = {place: block for _, _, own in everyone for place, block in own.items()}
        right = np.linspace(-1.0, 1.0, matrix.shape[0])
        unknowns = solution(analysis, whole, right)
        residual = float(np.abs(matrix @ unknowns - right).max() / np.abs(right).max())
        slowest = max(duration for duration, _, _ in everyone)
        figures = {name: sum(m[name] for _, m, _ in everyone) for name in more}
        code = _print(options, mesh, analysis, matrix, slowest, residual, figures)
    exit_code: int = comm.bcast(code)
    return exit_code


def _mesh(processes: int, options: Options) -> Mesh:
    if options.mesh is None:
        rows = max(r for r in range(1, int(processes**0.5) + 1) if processes % r == 0)
        return Mesh(rows, processes // rows)
    if options.mesh[0] * options.mesh[1] != processes:
        raise AppUsageError(
            f"--mesh {options.mesh[0]}x{options.mesh[1]}: expected a mesh of {processes} processes",
            code="app_option.invalid",
        )
    return Mesh(*options.mesh)


def _factor(comm: Any, blocks: Blocks, options: Options) -> tuple[float, dict[str, float]]:
    """Seconds on this rank, and figures of the runtime."""
    if options.variant == "mpi":
        with TimedPart(comm) as part:
            factorize(comm, blocks)
        return part.seconds, {}
    graph = agree(comm, lambda: Factorization(comm, blocks, options.config))
    with TimedPart(comm):
        graph.run()
    graph.close()
    busy = sum(times.compute_s for times in graph.times)
    return graph.exec_time, {
        "tasks": float(graph.tasks),
        "compute_s": busy,
        "init_s": graph.init_time,
    }


def _print(
    options: Options,
    mesh: Mesh,
    analysis: Analysis,
    matrix: Any,
    seconds: float,
    residual: float,
    figures: dict[str, float],
) -> int:
    right = residual < EXACT
    ranks = mesh.rows * mesh.columns
    rate = analysis.operations / seconds / 1e9
    print(
        f"sparse-lu, {options.variant}: {options.input}, {matrix.shape[0]} rows, "
        f"{analysis.count} supernodes, {mesh.rows} x {mesh.columns} processes"
    )
    print(f"{seconds:.4f} s, {rate:.2f} GFLOP/s; residual {residual:.1e}")
    print("the solution is right" if right else "verification failed: the residual is too large")
    result = {
        "app": "sparse-lu",
        "input": options.input,
        "variant": options.variant,
        "rows": matrix.shape[0],
        "supernodes": analysis.count,
        "ranks": ranks,
        "seconds": seconds,
        "gflops": rate,
        "residual": residual,
        "verified": right,
        **figures,
    }
    print(json_line(result), flush=True)
    return 0 if right else 1
