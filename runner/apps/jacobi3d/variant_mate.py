"""Variant mate, the whole model: shared grid, regions, dependencies (Martin 2018, 3.16)."""

from __future__ import annotations

from runner import mate
from runner.apps.jacobi3d.mated import Hierarchical, Part

GRAPH = mate.Graph("jacobi3d")


@GRAPH.region(depends=["pack*", "unpack*", "compute*@"])
def compute(part: Part, i: int) -> None:
    part.compute(i % 2)


@GRAPH.region(depends=["unpack*"])
def receive(part: Part, i: int) -> None:
    part.receive()


@GRAPH.region(depends=["compute", "send*"])
def pack(part: Part, i: int) -> None:
    part.pack((i + 1) % 2)


@GRAPH.region(depends=["pack"])
def send(part: Part, i: int) -> None:
    part.send()


@GRAPH.region(depends=["compute", "receive"])
def unpack(part: Part, i: int) -> None:
    part.unpack((i + 1) % 2)


class WithDependencies(Hierarchical):
    """A rank waits only for its neighbours and its own messages."""

    async def _iterate(self, ctx: mate.Context, part: Part, iterations: int) -> None:
        for local in part.local:
            ctx.add_local_neighbor(local)
        await ctx.execute(GRAPH, iterations, state=part)
