"""Variant mate, the whole model: shared grid, regions, dependencies (Martin 2018, 3.16)."""

from __future__ import annotations

from runner.programs.apps.common.ranks import GraphSolver
from runner.programs.apps.common.regions import shared_grid
from runner.programs.apps.jacobi3d import regions
from runner.programs.apps.jacobi3d.mated import Hierarchical


class WithDependencies(GraphSolver, Hierarchical):
    """A rank waits only for its neighbours and its own messages."""

    graph = shared_grid("jacobi3d", regions.compute)
