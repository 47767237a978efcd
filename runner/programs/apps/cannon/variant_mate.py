"""Cannon's algorithm on MATE: a rank per block of C, compiled regions, messages between processes.

The blocks of a process stay in place, and the ranks rotate the pointers to them, as in the original
(Martin 2018, 6.2, figure 6.7). An iteration of the graph has several steps, so that all blocks for
a line of ranks are under way at the same time (:mod:`runner.programs.apps.cannon.part`). Meanwhile
the ranks do the steps for which they have the blocks (``early``), then the others (``late``). The
process grid need not be square.
"""

from __future__ import annotations

from typing import Any

from runner.programs.apps.cannon import regions
from runner.programs.apps.cannon.matrices import Layout, Matrix
from runner.programs.apps.cannon.part import Blocks, Part
from runner.programs.apps.common.mated import JobClock
from runner.programs.apps.common.meter import RunTimes
from runner.runtimes import mate

GRAPH = mate.Graph("cannon")


# Messages start before other work: the priority lets a rank with one overtake.
@GRAPH.region(depends=["receive*"], compiled=True, priority=1)
def send(part: Part, i: int) -> None:
    regions.send(part, i)


# A slot of the ring is free again once all ranks of the line have done the iteration before the
# last one (early waits for late*@), and the block has been sent on.
@GRAPH.region(depends=["early*", "send*"], compiled=True, priority=1)
def receive(part: Part, i: int) -> None:
    regions.receive(part, i)


@GRAPH.region(depends=["late*", "late*@"], compiled=True)
def early(part: Part, i: int) -> None:
    regions.multiply(part, i, 0, part.ready)


@GRAPH.region(depends=["early", "receive", "receive@"], compiled=True)
def late(part: Part, i: int) -> None:
    regions.multiply(part, i, part.ready, part.group)


class OnMate:
    """The solver of one process; :meth:`solve` may be called again."""

    def __init__(self, comm: Any, layout: Layout, config: mate.Config) -> None:
        self._comm, self._layout, self._config = comm, layout, config
        blocks = Blocks(layout)
        self._group = blocks.group
        self._parts = [
            Part(layout, comm.rank, local, blocks, config.split)
            for local in range(layout.local_count)
        ]
        self._clock = JobClock()

    @property
    def c(self) -> dict[tuple[int, int], Matrix]:
        """The blocks of C by block row and column."""
        return {(part.x, part.y): part.c for part in self._parts}

    def reset(self) -> None:
        """Do nothing: every solve starts afresh."""

    def solve(self, iterations: int) -> RunTimes:
        """Compute the product and add it up this number of times, after a barrier."""
        count = iterations * self._layout.blocks // self._group
        report = mate.run(self._main, self._config, count, comm=self._comm)
        return self._clock.times(report, self._parts)

    async def _main(self, ctx: mate.Context, count: int) -> None:
        part = self._parts[ctx.local_rank]
        part.ctx = ctx
        part.reset()
        for local in part.near:
            ctx.add_local_neighbor(local)
        # No iterations load the compiled regions before the clock starts.
        await ctx.execute(GRAPH, 0, state=part)
        await self._clock.time(ctx, self._parts, lambda: ctx.execute(GRAPH, count, state=part))
