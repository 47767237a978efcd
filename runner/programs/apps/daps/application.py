"""One run: all modes in random order, round by round; verify, print."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

from runner.programs.apps.common.intranode import run_program, sweep
from runner.programs.apps.common.mpi import agree
from runner.programs.apps.common.report import json_line
from runner.programs.apps.daps.options import Options, parse
from runner.programs.apps.daps.product import Product
from runner.programs.apps.daps.programs import Capability, Program, Seconds
from runner.programs.apps.daps.stencil import Stencil
from runner.runtimes.intranode.daps import Counts, Daps

PROGRAMS: dict[str, Callable[[Daps, Options], Program]] = {
    "capability": Capability,
    "product": Product,
    "stencil": Stencil,
}


class ModeRuns:
    """The runs of a mode: seconds of each part, and steps of progress of all ranks."""

    def __init__(self) -> None:
        self.runs: list[Seconds] = []
        self.own = self.foreign = 0

    def median(self, part: str) -> float:
        return statistics.median(run[part] for run in self.runs)


def main(comm: Any, arguments: list[str]) -> int:
    """The programs on one rank; returns the exit code.

    Raises :class:`runner.programs.apps.common.errors.AppError` on all ranks alike.
    """
    return run_program(comm, "daps", lambda: parse(arguments, comm.size), _run)


def _run(comm: Any, options: Options) -> int:
    first = next(iter(options.modes.values()))
    assumed_nodes = options.nodes if _one_node(comm) else 0
    daps = agree(comm, lambda: Daps(comm, first, assumed_nodes))
    program: Program = agree(comm, lambda: PROGRAMS[options.program](daps, options))
    mode_runs = {name: ModeRuns() for name in options.modes}
    right = _sweep(daps, options, program, mode_runs)
    nodes = len(set(daps.nodes))
    daps.close()
    if comm.rank == 0:
        places = {"ranks": comm.size, "nodes": nodes, "assumed_nodes": assumed_nodes}
        _print(options, places, mode_runs, right, program)
    return 0 if right else 1


def _one_node(comm: Any) -> bool:
    """True if all ranks share memory."""
    from mpi4py import MPI

    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    is_one_node: bool = node.size == comm.size
    node.Free()
    return is_one_node


def _sweep(daps: Daps, options: Options, program: Program, mode_runs: dict[str, ModeRuns]) -> bool:
    """Run all modes in all rounds; True if all data were right. The first round warms up."""
    right = True
    for number, name in sweep(sorted(mode_runs), options.rounds, options.seed):
        agree(daps.comm, partial(daps.configure, options.modes[name]))
        before = daps.counts
        seconds = agree(daps.comm, program.run)
        own, foreign = _more(daps, before)
        right = all(daps.comm.allgather(program.right())) and right
        if number:
            one = mode_runs[name]
            one.runs.append(seconds)
            one.own, one.foreign = one.own + own, one.foreign + foreign
    return right


def _more(daps: Daps, before: Counts) -> tuple[int, int]:
    """Steps of all ranks since then: by themselves, and by others for them."""
    after = daps.counts
    steps = daps.comm.allgather((after.own - before.own, after.given - before.given))
    return sum(own for own, _ in steps), sum(foreign for _, foreign in steps)


def _print(
    options: Options,
    places: dict[str, int],
    mode_runs: dict[str, ModeRuns],
    right: bool,
    program: Program,
) -> None:
    parts = list(next(iter(mode_runs.values())).runs[0])
    print(
        f"{options.program}: {places['ranks']} ranks on {places['nodes']} nodes, "
        f"{options.rounds} rounds"
    )
    if isinstance(program, Product) and program.dgemm_seconds > 0:
        print(f"simulated computing: {1e3 * program.dgemm_seconds:.3f} ms of sleep for a DGEMM")
    print(" ".join([f"{'mode':<16}", *(f"{part:>13}" for part in parts), "  by others"]))
    cells: list[dict[str, Any]] = []
    for name, one in mode_runs.items():
        medians = {part: one.median(part) for part in parts}
        share = one.foreign / (one.own + one.foreign) if one.own + one.foreign else 0.0
        row = [f"{name:<16}", *(f"{medians[part]:>11.4f} s" for part in parts)]
        print(" ".join([*row, f"{100 * share:>9.0f} %"]))
        cells.append({"mode": name, **medians, "by_others": share, "runs": one.runs})
    result: dict[str, Any] = {
        "app": "daps",
        "program": options.program,
        **places,
        "rounds": options.rounds,
        **{part: cells[-1][part] for part in parts},
        "us": 1e6 * cells[-1]["seconds"],
        "cells": cells,
        "configured": options.config_source,
        "verified": right,
    }
    if isinstance(program, Product):
        result["compute"] = options.compute
        result["dgemm_seconds"] = program.dgemm_seconds
    print("the data are right" if right else "verification failed: the data are wrong")
    print(json_line(result), flush=True)
