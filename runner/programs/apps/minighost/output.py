"""The output of a run of miniGhost: a few lines for people and one line of JSON."""

from __future__ import annotations

import math
from typing import Any

from runner.programs.apps.common.grid import show_shape
from runner.programs.apps.common.layout import Layout
from runner.programs.apps.common.meter import RunSummary
from runner.programs.apps.common.models import GRAPHS, MATE_VARIANTS
from runner.programs.apps.common.report import json_line
from runner.programs.apps.minighost.heat import Verdict
from runner.programs.apps.minighost.options import CHUNK_VARIANTS, Options


def grind_ns(options: Options, layout: Layout, solver_s: float) -> float:
    """Nanoseconds for a cell, a step and a variable, by the cells of one process.

    Process 0 has the most cells, because the first parts of an axis are the largest.
    """
    start, stop = layout.block(0)
    cells = math.prod(b - a for a, b in zip(start, stop, strict=True))
    return 1e9 * solver_s / (cells * options.steps * options.variables)


def print_result(
    processes: int, options: Options, layout: Layout, summary: RunSummary[Verdict]
) -> None:
    """Print the result; called by rank 0."""
    grind = grind_ns(options, layout, summary.solver_s)
    parts = layout.local_count if options.variant in (*MATE_VARIANTS, *GRAPHS) else 1
    ranks = processes * parts
    result: dict[str, Any] = {
        "app": "minighost",
        "variant": options.variant,
        "input": options.input,
        "size": list(options.size),
        "steps": options.steps,
        "variables": options.variables,
        "grouping": options.messages,
        "order": options.order,
        "prepost": options.prepost,
        "grid": list(layout.processes),
        "ranks": ranks,
        "processes": processes,
        "workers": options.config.workers,
        "threads": options.config.workers,
        "local_grid": list(layout.local),
        "solver_s": summary.solver_s,
        "grind_ns": grind,
        "verified": summary.verdict.is_right,
        "heat_error": summary.verdict.error,
        "heat_bound": summary.verdict.bound,
        **summary.breakdown.result(summary.startup_s, summary.seconds),
    }
    if options.variant in CHUNK_VARIANTS:
        result["configured"] = options.config_source
    print(
        f"minighost {options.variant}: {show_shape(options.size)} cells, {options.variables} "
        f"variables, {options.steps} steps, {ranks} ranks as {layout}"
    )
    print(
        f"solver {summary.solver_s:.4f} s, grind time {grind:.3f} ns, "
        f"start-up {summary.startup_s:.2f} s"
    )
    print(f"seconds, mean over threads of all ranks: {summary.breakdown.words}")
    print(summary.verdict.message)
    print(json_line(result), flush=True)
