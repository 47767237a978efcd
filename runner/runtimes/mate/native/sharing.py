"""Checks if other processes of the node (guests) can run the regions of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from runner.runtimes.core.arena import Arena
from runner.runtimes.mate.errors import MateError
from runner.runtimes.mate.graph import Graph

if TYPE_CHECKING:
    from runner.runtimes.mate.compiled import Block

Shareable = Mapping[int, tuple[int, frozenset[str]]]
"""Regions for guests: the number of the code, equal in all processes, and its attributes."""


def check_sharing(graph: Graph, shareable: Shareable, block: Block, arena: Arena) -> None:
    """Raise :class:`MateError` if guests can run no region of the graph, or cannot reach an
    array."""
    for region, (_, uses) in shareable.items():
        if array := block.outside(uses, arena):
            raise MateError(
                f"--steal node: {array}, which region {graph.regions[region].name} of "
                f"graph {graph.name} uses, does not lie in the arena: make it with "
                "arena.zeros or arena.copy, or use --steal process",
                code="mate.option",
            )
    if not shareable:
        raise MateError(
            f"--steal node: graph {graph.name} has no region that another process could "
            "run, which is compiled, starts no messages and calls no C function of the state: "
            "use --steal process",
            code="mate.option",
        )
