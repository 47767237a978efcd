"""One run of the hydrodynamics step: set up, step, verify, print."""

from __future__ import annotations

import math
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from runner.programs.apps.cloverleaf3d.block import Block, serial
from runner.programs.apps.cloverleaf3d.options import ENERGIES, Options, parse
from runner.programs.apps.cloverleaf3d.problem import DEPTH, FACE_BYTES
from runner.programs.apps.cloverleaf3d.variant_mate import OnMate
from runner.programs.apps.cloverleaf3d.variant_mpi import Flat
from runner.programs.apps.common.grid import show_shape
from runner.programs.apps.common.layout import make_layout
from runner.programs.apps.common.mated import as_usage_error, largest, typical
from runner.programs.apps.common.meter import RunTimes, breakdown
from runner.programs.apps.common.models import face_limit
from runner.programs.apps.common.mpi import agree, print_help
from runner.programs.apps.common.report import json_line
from runner.runtimes import mate

ENERGY_TOLERANCE = 1e-11
"""Share of the mass that rounding may lose."""
ROUNDING = 1e-12
"""Largest change of the energy by the order of summation, as a share of it."""


class Solver(Protocol):
    """The interface of every variant."""

    blocks: list[Block]

    def solve(self, steps: int) -> RunTimes: ...


def main(comm: Any, arguments: list[str], begin: float) -> int:
    """The application on one rank; returns the exit code.

    ``begin`` is the time at which the process started. Raises
    :class:`runner.programs.apps.common.errors.AppError` on all ranks alike.
    """
    options = agree(comm, lambda: parse(arguments))
    if print_help(comm, options):
        return 0
    config = options.config
    layout = agree(
        comm,
        lambda: make_layout(
            options.size,
            comm.size,
            options.grid,
            config.ranks_per_process,
            config.local_grid,
            DEPTH,
            face_limit(options.variant, FACE_BYTES),
        ),
    )

    def set_up() -> Solver:
        if options.variant != "mate":
            return Flat(comm, layout)
        mate.world(config)  # This call checks if MPI granted the thread level.
        return OnMate(comm, layout, config)

    solver = agree(comm, set_up)
    startup_s = largest(comm, perf_counter() - begin)
    before = comm.allreduce(sum(block.mass() for block in solver.blocks))
    runs = [_time_run(solver, options) for _ in range(options.repetitions)]
    solver_s, middle, seconds = typical(comm, runs)
    parts = breakdown(comm, middle, solver_s, layout.local_count / config.workers)
    after = comm.allreduce(sum(block.mass() for block in solver.blocks))
    energy = comm.allreduce(sum(block.energy() for block in solver.blocks))
    wrong = _wrong(comm, options, solver, before, after, energy)
    if comm.rank == 0:
        is_verified = None if options.verify == "none" else not wrong
        cells = math.prod(options.size) * options.steps
        print(
            f"cloverleaf3d {options.variant}: {show_shape(options.size)} cells, {options.steps} "
            f"steps, {comm.size} processes as {show_shape(layout.processes)}, each "
            f"{show_shape(layout.local)}"
        )
        print(f"solver {solver_s:.4f} s, {cells / solver_s / 1e6:.1f} million cells a second")
        print(f"verification failed: {wrong}" if wrong else f"energy {energy!r}")
        result = {
            "app": "cloverleaf3d",
            "variant": options.variant,
            "input": options.input,
            "size": list(options.size),
            "steps": options.steps,
            "grid": list(layout.processes),
            "local_grid": list(layout.local),
            "processes": comm.size,
            "ranks": comm.size * layout.local_count,
            "workers": config.workers,
            "solver_s": solver_s,
            "verified": is_verified,
            "energy": energy,
            "cells_per_s": cells / solver_s,
            **parts.result(startup_s, seconds),
        }
        print(json_line(result), flush=True)
    return 1 if wrong else 0


def _time_run(solver: Solver, options: Options) -> RunTimes:
    for block in solver.blocks:
        block.reset()
    with as_usage_error():
        return solver.solve(options.steps)


def _wrong(
    comm: Any, options: Options, solver: Solver, before: float, after: float, energy: float
) -> str:
    """Faults of the result as text, on every rank; "" if there are none."""
    if options.verify == "none":
        return ""
    if not (math.isfinite(energy) and abs(after - before) <= ENERGY_TOLERANCE * before):
        return f"mass was {before!r} and is {after!r}, energy {energy!r}"
    reference_energy = ENERGIES.get((*options.size, options.steps), energy)
    if abs(energy - reference_energy) > ROUNDING * reference_energy:
        return f"energy {energy!r}, expected {reference_energy!r}"
    if options.verify != "full":
        return ""
    whole = serial(options.size, options.steps).interior
    for block in solver.blocks:
        (x0, y0, z0), (x1, y1, z1) = block.start, block.stop
        reference = whole[:, z0:z1, y0:y1, x0:x1]
        different = np.argwhere(reference.view(np.uint64) != block.interior.view(np.uint64))
        mine = ""
        if len(different):
            field, k, j, i = different[0].tolist()
            mine = f"field {field} at x={x0 + i} y={y0 + j} z={z0 + k} differs from a serial run"
            break
    else:
        mine = ""
    return next((text for text in comm.allgather(mine) if text), "")
