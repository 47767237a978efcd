"""The output of a run of Jacobi3D: a few lines for people and one line of JSON."""

from __future__ import annotations

import math
from typing import Any

from runner.programs.apps.common.grid import show_shape
from runner.programs.apps.common.layout import Layout
from runner.programs.apps.common.meter import RunSummary
from runner.programs.apps.common.models import CELL_SHARING, GRAPHS, MATE_VARIANTS
from runner.programs.apps.common.report import json_line
from runner.programs.apps.jacobi3d.options import Options
from runner.programs.apps.jacobi3d.problem import FLOPS_PER_CELL
from runner.programs.apps.jacobi3d.verify import Verdict


def print_result(
    processes: int, options: Options, layout: Layout, summary: RunSummary[Verdict]
) -> None:
    """Print the result; called by rank 0."""
    size, iterations = options.size, options.iterations
    ranks = processes * (layout.local_count if options.variant in (*MATE_VARIANTS, *GRAPHS) else 1)
    mflops = FLOPS_PER_CELL * math.prod(size) * iterations / summary.solver_s / 1e6
    result: dict[str, Any] = {
        "app": "jacobi3d",
        "variant": options.variant,
        "input": options.input,
        "size": list(size),
        "iterations": iterations,
        "grid": list(layout.processes),
        "ranks": ranks,
        "processes": processes,
        "workers": options.config.workers,
        "threads": layout.local_count if options.variant in CELL_SHARING else 1,
        "local_grid": list(layout.local),
        "block": options.block,
        "solver_s": summary.solver_s,
        "verified": summary.verdict.is_verified,
        "residual": summary.verdict.residual,
        "expected": summary.verdict.reference,
        "mflops": mflops,
        **summary.breakdown.result(summary.startup_s, summary.seconds),
    }
    cells = f"{show_shape(size)} cells, {iterations} iterations"
    print(f"jacobi3d {options.variant}: {cells}, {ranks} ranks as {layout}")
    print(
        f"solver {summary.solver_s:.4f} s, {mflops:.0f} MFlop/s, start-up {summary.startup_s:.2f} s"
    )
    print(f"seconds, mean over {_WHOM.get(options.variant, 'workers')}: {summary.breakdown.words}")
    print(summary.verdict.message)
    print(json_line(result), flush=True)


_WHOM = {"mpi": "ranks", "openmp": "ranks", "overlap": "ranks"}
