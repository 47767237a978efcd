"""One rank on MATE: its slices of the levels, and its messages to other processes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from runner.programs.apps.common.meter import SAMPLE
from runner.programs.apps.flowcart import cycle
from runner.programs.apps.flowcart.domain import Domain, Place, as_it_is
from runner.programs.apps.flowcart.mesh import LEVELS
from runner.runtimes import mate


class Part:
    """One rank of a domain and its messages to other processes.

    Iteration ``i`` of the regions is stage ``i % cycle.COUNT`` of a cycle. The public attributes
    are what compiled regions use (:mod:`runner.programs.apps.flowcart.regions`); the methods are
    the same work for Python.
    """

    ctx: mate.Context

    def __init__(self, domain: Domain, number: int, place: Place = as_it_is) -> None:
        layers = domain.layers
        slices = [layer.slices[number] for layer in layers]
        self.local = domain.neighbours[number]
        """Local ranks whose cells are neighbours."""
        # Array ``2 * level + source``, as in cycle.Stage.exchange_array.
        self.values = [values for layer in layers for values in layer.values]
        self.right = [layer.right for layer in layers]
        self.table = [layer.table for layer in layers]
        self.work = [layer.work for layer in layers]
        self.parents = [layer.parents for layer in layers]
        bounds = [(s.first, s.last, s.first_ghost, s.last_ghost) for s in slices]
        self.bounds = place(np.array(bounds, dtype=np.int64).reshape(-1))
        exchanges = [own.exchanges for own in slices]
        # Messages send_starts[level] to send_starts[level + 1] belong to a level.
        self.send_starts = _starts([len(some) for some in exchanges])
        self.targets = [e.rank for some in exchanges for e in some]
        self.places = [e.places for some in exchanges for e in some]
        self.send_buffers = [e.outgoing for some in exchanges for e in some]
        # Messages receive_starts[k] to receive_starts[k + 1] belong to array k.
        self.receive_starts = _starts([len(exchanges[k // 2]) for k in range(2 * LEVELS)])
        self.sources = [e.rank for k in range(2 * LEVELS) for e in exchanges[k // 2]]
        self.ghosts = [
            values[e.first : e.last]
            for k, values in enumerate(self.values)
            for e in exchanges[k // 2]
        ]
        self.kernels_s = place(np.zeros(3))
        """Seconds of the rank's kernels; wall and CPU seconds of the sampled ones."""
        self._stages = domain.stages(number)
        self._packing = domain.packing(number)

    def receive(self, i: int) -> list[mate.Request]:
        """Start to receive the ghosts of the next stage."""
        which = cycle.EXCHANGE_ARRAYS[i % cycle.COUNT]
        if which < 0:
            return []
        messages = range(self.receive_starts[which], self.receive_starts[which + 1])
        return [self.ctx.irecv(self.ghosts[n], self.sources[n], which // 2) for n in messages]

    def pack(self, i: int) -> None:
        """Copy the new values that others need into the buffers."""
        if copies := self._packing[i % cycle.COUNT]:
            with self.ctx.buffering():
                for copy in copies:
                    copy()

    def send(self, i: int) -> list[mate.Request]:
        """Start to send the buffers."""
        which = cycle.EXCHANGE_ARRAYS[i % cycle.COUNT]
        if which < 0:
            return []
        messages = range(self.send_starts[which // 2], self.send_starts[which // 2 + 1])
        return [self.ctx.isend(self.send_buffers[n], self.targets[n], which // 2) for n in messages]

    def compute(self, i: int) -> None:
        """Compute a stage."""
        is_sample = i % SAMPLE == 0
        cpu = self.ctx.cpu_seconds() if is_sample else 0.0
        begin = self.ctx.seconds()
        for call in self._stages[i % cycle.COUNT]:
            call()
        seconds = self.ctx.seconds() - begin
        self.kernels_s[0] += seconds
        if is_sample:
            self.kernels_s[1:] += seconds, self.ctx.cpu_seconds() - cpu

    async def connect(self) -> None:
        """Exchange the start values, which the ghosts already hold; this opens the connections."""
        for stage in range(cycle.COUNT):
            requests = self.receive(stage)
            self.pack(stage)
            await self.ctx.waitall([*requests, *self.send(stage)])


def _starts(counts: list[int]) -> list[int]:
    return [0, *itertools.accumulate(counts)]


BODIES: dict[str, Callable[[Part, int], Any]] = {
    name: getattr(Part, name) for name in ("receive", "pack", "send", "compute")
}
