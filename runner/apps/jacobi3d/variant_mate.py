"""Variant mate, the whole model: shared grid, regions, dependencies (Martin 2018, 3.16)."""

from __future__ import annotations

from runner import mate
from runner.apps.jacobi3d import regions
from runner.apps.jacobi3d.mated import Hierarchical, Part, Scheduled

GRAPH = mate.Graph("jacobi3d")


@GRAPH.region(depends=["pack*", "unpack*", "compute*@"], compiled=True)
def compute(part: Part, i: int) -> None:
    regions.compute(part, i)


@GRAPH.region(depends=["unpack*"], compiled=True)
def receive(part: Part, i: int) -> None:
    regions.receive(part)


@GRAPH.region(depends=["compute", "send*"], compiled=True)
def pack(part: Part, i: int) -> None:
    regions.pack(part, (i + 1) % 2)


@GRAPH.region(depends=["pack"], compiled=True)
def send(part: Part, i: int) -> None:
    regions.send(part)


@GRAPH.region(depends=["compute", "receive"], compiled=True)
def unpack(part: Part, i: int) -> None:
    regions.unpack(part, (i + 1) % 2)


class WithDependencies(Scheduled, Hierarchical):
    """A rank waits only for its neighbours and its own messages."""

    graph = GRAPH
