"""One run of the multigrid: mesh, ranks, cycles, verification, output; and the command line."""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.mated import (
    MatedOptions,
    add_common,
    as_usage_error,
    chosen_input,
    config_of,
    largest,
    level_of,
    typical,
)
from runner.programs.apps.common.meter import RunTimes, breakdown
from runner.programs.apps.common.mpi import agree, print_help
from runner.programs.apps.common.options import OptionParser, positive
from runner.programs.apps.common.report import json_line
from runner.programs.apps.flowcart.domain import Domain, right_side, serial
from runner.programs.apps.flowcart.flat import Flat
from runner.programs.apps.flowcart.mated import BALANCES, OnMate
from runner.programs.apps.flowcart.mesh import CUT_WORK, Mesh
from runner.runtimes import mate
from runner.runtimes.mate.balance import imbalance

VARIANTS = ("mpi", "mate")
INPUTS = {
    "tiny": (16, 2, CUT_WORK, "16 cubed, 2 cycles: for tests"),
    "small": (32, 60, CUT_WORK, "32 cubed, 60 cycles: messages of some kB"),
    "default": (64, 100, CUT_WORK, "64 cubed, 100 cycles: about a second on two cores"),
    "large": (128, 25, CUT_WORK, "128 cubed, 25 cycles: work far longer than messages"),
    # Half as many of its cells are cut as at 64 cubed, so each cut cell costs twice as much.
    "heavy": (
        128,
        25,
        2 * CUT_WORK,
        "as large, cut cells cost twice as much: as uneven as default",
    ),
}
"""Width, cycles, extra work of a cut cell, description."""
RESIDUALS = {
    (16, 2): 0.2624129409002466,
    (32, 60): 3.1147315189286814e-10,
    (64, 100): 4.294505294914143e-06,
    (128, 25): 0.010227760991541159,
}
"""Residuals at the end of a serial run, by width and cycles (tests/apps/test_flowcart.py)."""


@dataclass(frozen=True, kw_only=True)
class Options(MatedOptions):
    """The options of one run."""

    width: int
    cut_work: int
    cycles: int
    verify: str
    balance: str


def thread_level(arguments: list[str]) -> str:
    """The thread level for a command line; a wrong command line is reported once MPI runs."""
    return level_of(parse, arguments)


def parse(arguments: list[str]) -> Options:
    """The options; raises :class:`AppUsageError`."""
    parser = OptionParser(
        "python -m runner.programs.apps.flowcart",
        "Multigrid on a mesh with cut cells: uneven work.",
    )
    inputs = ", ".join(f"{name} ({words})" for name, (*_, words) in INPUTS.items())
    add = parser.add_argument
    add("--input", metavar="NAME", help=f"one of: {inputs}")
    add("--width", type=positive, metavar="N", help="cells along each side, instead of --input")
    add(
        "--cut-work",
        type=positive,
        metavar="STEPS",
        help=f"extra work in each update of a cut cell (default: the input's, or {CUT_WORK})",
    )
    add("--cycles", type=positive, metavar="C", help="V-cycles (default: the input's, or 10)")
    add("--verify", choices=("residual", "full", "none"), default="residual",
        help="residual: the stored one; full: also every bit against a serial run")  # fmt: skip
    add("--balance", choices=BALANCES, default="none",
        help="who holds which ranks, from a short run before the clock starts")  # fmt: skip
    add_common(parser, VARIANTS)
    options = parser.parse_args(arguments)
    name = chosen_input(INPUTS, options.input, ("--width", options.width))
    width, cycles, cut_work = (options.width, 10, CUT_WORK) if name is None else INPUTS[name][:3]
    config = config_of(options, "mate" if options.variant == "mate" else "")
    if options.variant != "mate" and (
        config.ranks_per_process > 1 or options.balance != "none" or config.steal != "process"
    ):
        raise AppUsageError(
            "--workers, --ranks-per-process, --balance and --steal mean nothing to --variant mpi",
            code="app_option.ranks",
        )
    if config.rank_map is not None or config.local_grid is not None:
        raise AppUsageError(
            "--rank-map and --local-grid: use --balance", code="app_option.not_applicable"
        )
    return Options(
        input=name,
        width=width,
        cut_work=options.cut_work or cut_work,
        cycles=options.cycles or cycles,
        verify=options.verify,
        repetitions=options.repetitions,
        variant=options.variant,
        balance=options.balance,
        config=config,
        help=parser.format_help() if options.help else None,
    )


def main(comm: Any, arguments: list[str], begin: float) -> int:
    """The application on one rank; returns the exit code.

    ``begin`` is the time at which the process started. Raises
    :class:`runner.programs.apps.common.errors.AppError` on all ranks alike.
    """
    options = agree(comm, lambda: parse(arguments))
    if print_help(comm, options):
        return 0
    mesh = agree(comm, lambda: Mesh(options.width, options.cut_work))
    config = options.config
    solver: Flat | OnMate
    if options.variant == "mate":
        mate.world(config)  # This call checks if MPI granted the thread level.
        agree(comm, lambda: mesh.shares(comm.size * config.ranks_per_process))
        with as_usage_error():
            solver = OnMate(comm, mesh, config, options.balance)
    else:
        solver = agree(comm, lambda: Flat(comm, mesh))
    startup_s = largest(comm, perf_counter() - begin)
    runs = [_time_run(solver, options) for _ in range(options.repetitions)]
    solver_s, middle, seconds = typical(comm, runs)
    ranks = comm.size * config.ranks_per_process
    parts = breakdown(comm, middle, solver_s, config.ranks_per_process / config.workers)
    stolen_regions = comm.allreduce(solver.stolen_regions if isinstance(solver, OnMate) else 0)
    cores = [c for own in comm.allgather([m.compute for m in middle.meters]) for c in own]
    cut = imbalance(cores, solver_s)
    left, before = residual(comm, mesh, solver.domain)
    wrong = _wrong(comm, mesh, options, solver.domain) or (
        residual_is_wrong(options.width, options.cycles, left, before)
        if options.verify != "none"
        else ""
    )
    if comm.rank == 0:
        is_verified = None if options.verify == "none" else not wrong
        counts = [len(row) for row in solver.map] if isinstance(solver, OnMate) else []
        print(
            f"flowcart {options.variant}: {mesh.levels[0].count} cells in a box of "
            f"{options.width} cubed, {options.cycles} cycles, {comm.size} processes, {ranks} ranks"
        )
        print(f"solver {solver_s:.4f} s; uneven work costs {cut:.1%} of it")
        print(f"verification failed: {wrong}" if wrong else f"residual {left!r}")
        result = {
            "app": "flowcart",
            "variant": options.variant,
            "balance": options.balance,
            "input": options.input,
            "width": options.width,
            "cut_work": options.cut_work,
            "cycles": options.cycles,
            "processes": comm.size,
            "ranks": ranks,
            "rank_counts": counts,
            "workers": config.workers,
            "steal": config.steal,
            "stolen": stolen_regions,
            "solver_s": solver_s,
            "verified": is_verified,
            "residual": left,
            "core_imbalance": cut,
            **parts.result(startup_s, seconds),
        }
        print(json_line(result), flush=True)
    return 1 if wrong else 0


def _time_run(solver: Flat | OnMate, options: Options) -> RunTimes:
    solver.domain.reset()
    with as_usage_error():
        return solver.solve(options.cycles)


def _wrong(comm: Any, mesh: Mesh, options: Options, domain: Domain) -> str:
    """Faults of the result as text, on every rank; "" if there are none."""
    if options.verify == "none":
        return ""
    mine = "" if np.isfinite(domain.values).all() else "a value is no number"
    if options.verify == "full" and not mine:
        reference, cells = serial(mesh, options.cycles), domain.layers[0].cells
        bits = domain.values.view(np.uint64)
        different = np.flatnonzero(bits != reference[cells].view(np.uint64))
        if len(different):
            mine = f"cell {cells[different[0]]} differs from a serial run"
    return next((text for text in comm.allgather(mine) if text), "")


def residual(comm: Any, mesh: Mesh, domain: Domain) -> tuple[float, float]:
    """Norms of the residual and of the right side, from all values of all ranks."""
    everything = np.zeros(mesh.levels[0].count + 1)
    everything[domain.layers[0].cells] = domain.values
    total = np.empty_like(everything)
    comm.Allreduce(everything, total)
    level = mesh.levels[0]
    right = right_side(np.arange(level.count))
    rest = right - (6.0 * total[:-1] - total[level.neighbours].sum(axis=1))
    after, before = (math.sqrt(float(np.sum(np.square(v)))) for v in (rest, right))
    return after, before


def residual_is_wrong(width: int, cycles: int, left: float, before: float) -> str:
    """The difference of the residual from the stored value, as text; "" if there is none.

    A late or lost ghost value slows the convergence. All variants have the same bits; only the
    summation of the norm may differ between machines.
    """
    reference = RESIDUALS.get((width, cycles))
    if reference is None:
        return "" if left < 0.5 * before else f"residual {left!r} after {before!r}"
    if abs(left - reference) <= 1e-9 * reference + 1e-13 * before:
        return ""
    return f"residual {left!r}, expected {reference!r}"
