"""Variant threads: one rank per process; its workers share each update, one of them communicates.

All workers compute, then the first one exchanges the faces while the others wait (Martin 2018,
5.2.5). There is neither over-decomposition nor overlap.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from runner.programs.apps.common.box import cut
from runner.programs.apps.common.layout import Layout
from runner.programs.apps.common.meter import Meter, RunTimes
from runner.programs.apps.common.team import Team
from runner.programs.apps.common.timed_part import TimedPart
from runner.programs.apps.jacobi3d.block import Block
from runner.programs.apps.jacobi3d.halo import Halo


class ThreadTeam:
    """One block per process, cut into ``layout.local`` parts, one for each worker."""

    def __init__(self, comm: Any, layout: Layout, cache_block: int, cpus: list[int | None]) -> None:
        self._comm, self._cpus = comm, cpus
        self._block = Block(layout.size, *layout.block(comm.rank), cache_block)
        self.blocks = [self._block]
        whole = dataclasses.replace(layout, local=(1, 1, 1))
        self._halo = Halo(comm, self._block, whole)
        parts = cut(self._block.whole, layout.local)
        self._tasks = [self._block.stencil(box) for box in parts]

    def solve(self, iterations: int) -> RunTimes:
        """Time the iterations on this process, after a barrier."""
        meters = [Meter() for _ in self._tasks]
        block, halo = self._block, self._halo
        halo.exchange(Meter())
        with Team(self._tasks, self._cpus, meters) as team, TimedPart(self._comm) as part:
            for _ in range(iterations):
                team.step(block.current)
                block.current = 1 - block.current
                halo.exchange(meters[0])
        for meter in meters[1:]:
            # The time that the first worker communicates, and the wait for slower workers.
            meter.waiting = part.seconds - meter.compute
        traffic = iterations * halo.messages, iterations * halo.bytes
        return RunTimes(part.seconds, meters, [m.compute for m in meters], *traffic)
