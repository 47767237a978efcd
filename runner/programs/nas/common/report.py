"""The printed result: the usual lines of NPB, then one line of JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from runner.programs.apps.common.report import json_line
from runner.programs.nas.common.kernel import Check, Facts
from runner.programs.nas.common.options import Options


@dataclass(frozen=True)
class Solution:
    """The repetitions of one run.

    It has the seconds of each repetition (the slowest rank) and their (lower) median ``solver_s``.
    ``phases`` are those of the median repetition. ``checks`` are those of the first wrong
    repetition, else of the last one. ``figures`` are more keys of the JSON line: those of a run on
    MATE.
    """

    seconds: list[float]
    solver_s: float
    phases: dict[str, dict[str, float]]
    checks: list[Check]
    startup_s: float
    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def is_verified(self) -> bool:
        return all(check.right for check in self.checks)


def print_result(
    ranks: int, options: Options, facts: Facts, solution: Solution, threads: int = 1
) -> None:
    """Print the result of a run; for rank 0, which has this many threads."""
    lines = [
        "",
        f" NAS Parallel Benchmarks 3.4 (mpi4py, numba) -- {options.kernel.upper()} Benchmark",
        "",
        f" Size: {facts.size}  (class {options.problem_class})",
        f" Iterations: {facts.iterations}",
        f" Total number of processes: {ranks}",
        "",
        *_verification(solution.checks, solution.is_verified),
        "",
        *_summary(ranks, options, facts, solution),
        *(
            f" Repetition {n:<4} =              {seconds:11.6f}"
            for n, seconds in enumerate(solution.seconds, start=1)
            if options.repetitions > 1
        ),
        json_line(_json(ranks, options, facts, solution, threads)),
    ]
    print("\n".join(lines), flush=True)


def _verification(checks: list[Check], success: bool) -> list[str]:
    lines = [" VERIFICATION SUCCESSFUL" if success else " VERIFICATION FAILED"]
    for check in checks:
        lines.append(f" {check.name} is {check.value:.14E}, error {check.error:.2E}")
        if not check.right:
            lines.append(
                f" The correct {check.name} is {check.reference:.14E}, "
                f"allowed error {check.tolerance:.2E}"
            )
    return lines


def _summary(ranks: int, options: Options, facts: Facts, solution: Solution) -> list[str]:
    mops = facts.operations / solution.solver_s / 1e6
    values = [
        ("Class", options.problem_class),
        ("Size", facts.size),
        ("Iterations", str(facts.iterations)),
        ("Time in seconds", f"{solution.solver_s:.6f}"),
        ("Total processes", str(ranks)),
        ("Mop/s total", f"{mops:.2f}"),
        ("Mop/s/process", f"{mops / ranks:.2f}"),
        ("Operation type", facts.operation_type),
        ("Verification", "SUCCESSFUL" if solution.is_verified else "UNSUCCESSFUL"),
    ]
    head = f" {options.kernel.upper()} Benchmark Completed."
    return [head, *(f" {name:<16}= {value:>24}" for name, value in values)]


def _finite(value: float) -> float | None:
    """The value without NaN and infinity, which JSON lacks."""
    return value if math.isfinite(value) else None


def _json(
    ranks: int, options: Options, facts: Facts, solution: Solution, threads: int
) -> dict[str, Any]:
    total = sum(phase["mean"] for phase in solution.phases.values())
    result: dict[str, Any] = {
        "app": f"nas-{options.kernel}",
        "class": options.problem_class,
        "size": facts.size,
        "iterations": facts.iterations,
        "ranks": ranks,
        "solver_s": solution.solver_s,
        "mops": facts.operations / solution.solver_s / 1e6,
        "verified": solution.is_verified,
        "checks": [
            {"name": c.name, "value": _finite(c.value), "expected": c.reference}
            for c in solution.checks
        ],
        "phases": solution.phases,
        "mpi_share": 1.0 - solution.phases["compute"]["mean"] / total if total else 0.0,
        "startup_s": solution.startup_s,
        **solution.figures,
    }
    if options.openmp:
        result["threads"] = threads
    if options.repetitions > 1:
        result["repetitions_s"] = solution.seconds
    return result
