"""The solver of a process for each variant."""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol

from runner.apps.common_errors import AppUsageError
from runner.apps.common_grid import show_shape
from runner.apps.common_layout import Layout, local_grid, make_layout
from runner.apps.common_meter import Timed
from runner.apps.common_mpi import require_funneled
from runner.apps.minighost.domain import Domain
from runner.apps.minighost.options import Options
from runner.apps.minighost.problem import DEPTH
from runner.apps.minighost.variant_mpi import Bulk
from runner.apps.minighost.variant_threads import Threaded
from runner.apps.minighost.variant_tpod import AsBlocks
from runner.workers import affinity


class Solver(Protocol):
    """The interface of every variant."""

    domain: Domain
    """The cells of the process."""

    def solve(self, steps: int) -> Timed:
        """Move a reset domain on and return the times. Collective."""


def layout_of(comm: Any, options: Options) -> Layout:
    """The layout; raises :class:`AppUsageError` if it does not fit."""
    whole = make_layout(options.size, comm.size, options.grid, 1, None, DEPTH)
    if options.variant != "threads":
        return whole
    try:
        local = local_grid(options.size, whole.processes, options.workers, DEPTH)
    except AppUsageError:
        raise AppUsageError(
            f"--workers {options.workers} are too many for {show_shape(options.size)} cells in a "
            f"process grid of {show_shape(whole.processes)}: every thread needs a cell; use fewer"
        ) from None
    return dataclasses.replace(whole, local=local)


def make_solver(
    comm: Any, options: Options, layout: Layout, masks: list[affinity.CpuSet], number: int
) -> Solver:
    """The solver of a process.

    ``masks`` are the CPUs of each process of the node; ``number`` is the index of this process. Not
    collective. Raises :class:`runner.errors.RunnerError`.
    """
    if options.variant == "mpi":
        return Bulk(comm, options, layout)
    if options.variant == "tpod":
        return AsBlocks(comm, options, layout)
    require_funneled(options.variant)
    threads, pinning = options.workers, options.affinity
    affinity.check_affinity(threads, masks[number], pinning, AppUsageError, "--workers")
    cpus = affinity.cpu_places(threads, pinning, masks, number)
    return Threaded(comm, options, layout, cpus)
