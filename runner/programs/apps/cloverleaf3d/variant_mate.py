"""The hydrodynamics step on MATE: a block per rank; ranks of a process write halos directly.

An iteration of the graph is one stage of an exchange
(:mod:`runner.programs.apps.cloverleaf3d.regions`), so the whole run is one entry of the graph.
``compute*@`` makes a rank wait for its neighbours at every stage. This suffices in both directions.
A rank computes only when its neighbours have written its ghosts. And it may write into a
neighbour's ghosts once that one has finished the previous stage: no kernel or copy of a stage reads
the ghosts that the stage fills, and their last readers came at least one kernel earlier. In the
original's graph (Martin 2018, 7.2) a rank does not wait for its neighbours' writes and uses old
values; tests/apps/test_cloverleaf3d.py provokes this.
"""

from __future__ import annotations

from typing import Any

from runner.programs.apps.cloverleaf3d import regions
from runner.programs.apps.cloverleaf3d.part import BODIES, Part
from runner.programs.apps.cloverleaf3d.problem import PHASES
from runner.programs.apps.common.layout import Layout
from runner.programs.apps.common.mated import JobClock
from runner.programs.apps.common.meter import RunTimes
from runner.runtimes import mate


def compute(part: Part, i: int) -> None:
    regions.compute(part, i)


def receive(part: Part, i: int) -> None:
    regions.receive(part, i)


def send(part: Part, i: int) -> None:
    regions.send(part, i)


def unpack(part: Part, i: int) -> None:
    regions.unpack(part, i)


def make_graph(is_compiled: bool = True, neighbours: bool = True) -> mate.Graph:
    """The graph; ``neighbours`` False: a rank wrongly does not wait for its neighbours.

    ``is_compiled`` False: the same regions in Python, for the Python core.
    """
    graph = mate.Graph("cloverleaf3d")
    wait = ["compute*@"] if neighbours else []
    for body, depends in (
        (compute, ["unpack*", "send*", *wait]),
        (receive, ["unpack*"]),
        (send, ["compute"]),
        (unpack, ["receive", "compute"]),
    ):
        add = graph.region(body.__name__, depends, compiled=is_compiled)
        add(body if is_compiled else BODIES[body.__name__])
    return graph


GRAPH, IN_PYTHON = make_graph(), make_graph(is_compiled=False)


class OnMate:
    """The solver of one process; :meth:`solve` may be called again after the blocks are reset."""

    def __init__(
        self, comm: Any, layout: Layout, config: mate.Config, graph: mate.Graph | None = None
    ) -> None:
        self._comm, self._config = comm, config
        self._graph = graph or (GRAPH if config.core == "native" else IN_PYTHON)
        process = 0 if comm is None else comm.rank
        self._parts = [
            Part(layout, process, local, config.split) for local in range(layout.local_count)
        ]
        for part in self._parts:
            part.connect(self._parts)
        self.blocks = [part.block for part in self._parts]
        self._clock = JobClock()

    def solve(self, steps: int) -> RunTimes:
        """Make this number of time steps, after an untimed one and a barrier."""
        report = mate.run(self._main, self._config, steps, comm=self._comm)
        return self._clock.times(report, self._parts)

    async def _main(self, ctx: mate.Context, steps: int) -> None:
        part = self._parts[ctx.local_rank]
        part.ctx = ctx
        for local in part.local:
            ctx.add_local_neighbor(local)
        # The first step opens the connections, loads the regions and touches all memory.
        await self._step(ctx, part, 1)
        await ctx.local_barrier()
        part.block.reset()
        await self._clock.time(ctx, self._parts, lambda: self._step(ctx, part, steps))

    async def _step(self, ctx: mate.Context, part: Part, steps: int) -> None:
        part.last = steps * PHASES * part.stages
        # The last iteration runs the last kernel of the last step, after its neighbours' halos.
        await ctx.execute(self._graph, part.last + 1, state=part)
