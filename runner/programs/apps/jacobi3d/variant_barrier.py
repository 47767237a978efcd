"""Variant barrier: a shared grid with a barrier of the process in every iteration.

It follows Toucan (Martin 2018, 5.2.4). The barrier after the update replaces the dependencies of
the variant ``mate``: no rank reads another rank's cells before they are new, or overwrites them
while they are read.
"""

from __future__ import annotations

from runner.programs.apps.jacobi3d.mated import Hierarchical, Part
from runner.runtimes import mate


class WithBarrier(Hierarchical):
    """All ranks of a process compute, wait at the barrier, and then exchange."""

    async def _iterate(self, ctx: mate.Context, part: Part, iterations: int) -> None:
        for i in range(iterations):
            part.compute(i)
            await ctx.local_barrier()
            await part.exchange((i + 1) % 2)
