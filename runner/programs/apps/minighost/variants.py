"""The solver of a process for each variant."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.grid import show_shape
from runner.programs.apps.common.layout import Layout, local_grid, make_layout
from runner.programs.apps.common.meter import RunTimes
from runner.programs.apps.common.models import MATE_VARIANTS, face_limit
from runner.programs.apps.common.mpi import require_funneled_level
from runner.programs.apps.common.tpod import with_published_blocks
from runner.programs.apps.minighost.domain import Domain
from runner.programs.apps.minighost.options import Options
from runner.programs.apps.minighost.problem import DEPTH
from runner.programs.apps.minighost.variant_cab import StealingBulk
from runner.programs.apps.minighost.variant_mate import AsRanks
from runner.programs.apps.minighost.variant_mpi import Bulk
from runner.programs.apps.minighost.variant_overlap import OverlapBulk
from runner.programs.apps.minighost.variant_tarragon import AsGraph
from runner.programs.apps.minighost.variant_threads import ThreadBulk
from runner.programs.apps.minighost.variant_tpod import AsBlocks
from runner.runtimes import mate
from runner.runtimes.workers import affinity


class Solver(Protocol):
    """The interface of every variant."""

    domain: Domain
    """The cells of the process."""

    def solve(self, steps: int) -> RunTimes:
        """Move a reset domain on and return the times. Collective."""


def layout_of(comm: Any, options: Options) -> Layout:
    """The layout; raises :class:`AppUsageError` if it does not fit."""
    config = options.config
    parts = 1 if options.variant in ("mpi", "threads", "tpod", "cab") else config.ranks_per_process
    local = config.local_grid
    largest = face_limit(options.variant, _bytes_of_cell(options))
    layout = make_layout(options.size, comm.size, options.grid, parts, local, DEPTH, largest)
    if options.variant != "threads":
        return layout
    try:
        share = local_grid(options.size, layout.processes, config.workers, DEPTH)
    except AppUsageError:
        raise AppUsageError(
            f"--workers {config.workers} are too many for {show_shape(options.size)} cells in a "
            f"process grid of {show_shape(layout.processes)}: every thread needs a cell; use fewer",
            code="app_option.not_applicable",
        ) from None
    return dataclasses.replace(layout, local=share)


def _bytes_of_cell(options: Options) -> int:
    """Bytes of a message for each cell of a face."""
    return 8 * options.variables * DEPTH


_SOLVERS: dict[str, Callable[[Any, Options, Layout], Solver]] = {
    "mpi": Bulk,
    "overlap": OverlapBulk,
    "mate": AsRanks,
    "tarragon": AsGraph,
    "cab": StealingBulk,
}


def make_solver(
    comm: Any, options: Options, layout: Layout, masks: list[affinity.CpuSet], number: int
) -> Solver:
    """The solver of a process.

    ``masks`` are the CPUs of each process of the node; ``number`` is the index of this process. Not
    collective. Raises :class:`runner.errors.RunnerError`.
    """
    variant, config = options.variant, options.config
    if variant in MATE_VARIANTS:
        mate.world(config)  # MPI runs already; this checks if it granted the thread level
    if variant == "tpod":
        limit = face_limit(variant, _bytes_of_cell(options))
        blocks = with_published_blocks(options.tpod, layout, limit)
        return AsBlocks(comm, dataclasses.replace(options, tpod=blocks), layout)
    if variant != "threads":
        return _SOLVERS[variant](comm, options, layout)
    require_funneled_level(variant)
    pinning = config.affinity
    affinity.check_affinity(config.workers, masks[number], pinning, AppUsageError, "--workers")
    cpus = affinity.cpu_places(config.workers, pinning, masks, number)
    return ThreadBulk(comm, options, layout, cpus)
