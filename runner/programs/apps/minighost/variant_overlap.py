"""Variant overlap, written by hand: messages travel while the inner cells are swept by tiles.

A step begins with sending the faces of all variables. Inner cells, which need no ghosts, are swept
in tiles, with a call into MPI after each tile. Then the process waits for the messages and sweeps
the cells at the cut faces, group after group of variables.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from runner.programs.apps.common.box import cut, split_phase
from runner.programs.apps.common.layout import Layout
from runner.programs.apps.common.meter import Meter, RunTimes
from runner.programs.apps.common.timed_part import TimedPart
from runner.programs.apps.minighost.options import Options
from runner.programs.apps.minighost.problem import DEPTH
from runner.programs.apps.minighost.variant_mpi import Bulk


class OverlapBulk(Bulk):
    """The inner cells of a process in ``layout.local`` tiles."""

    def __init__(self, comm: Any, options: Options, layout: Layout) -> None:
        self._tiles = layout.local
        super().__init__(comm, options, dataclasses.replace(layout, local=(1, 1, 1)))

    def _prepare(self) -> None:
        domain = self.domain
        # z first: its slabs have whole rows, and the rest for x is smallest.
        faces = list(reversed(self._exchanges[0].remote))
        inner, slabs = split_phase(domain.whole, faces, DEPTH)
        tiles = cut(inner, self._tiles)
        self._inner = [domain.advance(tile, group) for group in self._groups for tile in tiles]
        self._edges = [[domain.advance(slab, group) for slab in slabs] for group in self._groups]

    def _run(self, steps: int) -> RunTimes:
        meter = Meter()
        with TimedPart(self._comm) as part:
            for step in range(1, steps + 1):
                self._step(meter, step < steps)
        return self._run_times(steps, part.seconds, [meter])

    def _step(self, meter: Meter, more: bool) -> None:
        field, exchanges = self.domain.current, self._exchanges
        requests = [exchange.start(field, meter) for exchange in exchanges]
        every = [request for own in requests for request in own]
        for tile in self._inner:
            meter.run(tile[field])
            exchanges[0].progress(every, meter)
        for exchange, own, edges in zip(exchanges, requests, self._edges, strict=True):
            exchange.finish(field, own, meter, more)
            for slab in edges:
                meter.run(slab[field])
        self.domain.current = 1 - field
