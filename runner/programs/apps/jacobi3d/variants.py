"""The solver of a process for each variant."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol

from runner.programs.apps.common.layout import Layout, make_layout
from runner.programs.apps.common.meter import RunTimes
from runner.programs.apps.common.models import MATE_VARIANTS, face_limit
from runner.programs.apps.common.mpi import require_funneled_level
from runner.programs.apps.common.tpod import with_published_blocks
from runner.programs.apps.jacobi3d.block import Block
from runner.programs.apps.jacobi3d.options import Options
from runner.programs.apps.jacobi3d.problem import DEPTH, FACE_BYTES
from runner.programs.apps.jacobi3d.variant_barrier import WithBarrier
from runner.programs.apps.jacobi3d.variant_mate import WithDependencies
from runner.programs.apps.jacobi3d.variant_mpi import BasicMPI
from runner.programs.apps.jacobi3d.variant_openmp import WithOpenMP
from runner.programs.apps.jacobi3d.variant_over import OverDecomposition
from runner.programs.apps.jacobi3d.variant_overlap import OverlapMPI
from runner.programs.apps.jacobi3d.variant_tarragon import AsGraph
from runner.programs.apps.jacobi3d.variant_threads import ThreadTeam
from runner.programs.apps.jacobi3d.variant_tpod import AsBlocks
from runner.runtimes import mate
from runner.runtimes.core.openmp import max_threads
from runner.runtimes.workers import affinity


class Solver(Protocol):
    """The interface of every variant."""

    blocks: list[Block]
    """The cells of the process; each cell is in exactly one block."""

    def solve(self, iterations: int) -> RunTimes:
        """Update reset blocks and return the times. Collective."""


_PLAIN: dict[str, Callable[..., Solver]] = {
    "mpi": BasicMPI,
    "openmp": WithOpenMP,
    "overlap": OverlapMPI,
}
_MATE_SOLVERS: dict[str, Callable[..., Solver]] = {
    "over": OverDecomposition,
    "barrier": WithBarrier,
    "mate": WithDependencies,
}


def layout_of(comm: Any, options: Options) -> Layout:
    """The layout; raises :class:`runner.programs.apps.common.errors.AppUsageError` if it does not
    fit.
    """
    config = options.config
    parts = config.ranks_per_process
    if options.variant == "tpod":
        layout = make_layout(options.size, comm.size, options.grid, 1, None, DEPTH)
    elif options.variant == "openmp":
        # Whole planes: the memory of a thread is in one piece.
        whole = make_layout(options.size, comm.size, options.grid, 1, None, DEPTH)
        layout = Layout(whole.size, whole.processes, (1, 1, max_threads()))
    else:
        largest = face_limit(options.variant, FACE_BYTES)
        layout = make_layout(
            options.size, comm.size, options.grid, parts, config.local_grid, DEPTH, largest
        )
    return dataclasses.replace(layout, padding=options.padding)


def make_solver(
    comm: Any, options: Options, layout: Layout, masks: list[affinity.CpuSet], number: int
) -> Solver:
    """The solver of a process.

    ``masks`` are the CPUs of each process of the node; ``number`` is the index of this process. Not
    collective. Raises :class:`runner.errors.RunnerError`.
    """
    variant, config = options.variant, options.config
    if variant == "tarragon":
        return AsGraph(comm, layout, options.block, options.tarragon)
    if variant == "tpod":
        blocks = with_published_blocks(options.tpod, layout, face_limit(variant, FACE_BYTES))
        return AsBlocks(comm, layout, options.block, blocks)
    if variant in MATE_VARIANTS:
        mate.world(config)  # MPI runs already; this checks if it granted the thread level
        return _MATE_SOLVERS[variant](comm, layout, options.block, config)
    if variant == "openmp":
        require_funneled_level(variant)
    if variant != "threads":
        return _PLAIN[variant](comm, layout, options.block)
    require_funneled_level(variant)
    affinity.check_affinity(config.workers, masks[number], config.affinity, mate.ConfigError)
    cpus = affinity.cpu_places(config.workers, config.affinity, masks, number)
    return ThreadTeam(comm, layout, options.block, cpus)
