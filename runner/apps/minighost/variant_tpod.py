"""Variant tpod: the blocks of a process as tasks that exchange their own faces (Barrett et al.)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runner.apps.common_box import Box
from runner.apps.common_layout import Layout
from runner.apps.common_meter import SAMPLE, Timed
from runner.apps.common_tpod import Decomposed, Faces, Grids, Meeting, exchange
from runner.apps.minighost import stencil
from runner.apps.minighost.domain import Domain
from runner.apps.minighost.options import Options
from runner.apps.minighost.problem import DEPTH


class BlockTask(Faces):
    """A block: its boundary and its stencil."""

    def __init__(self, solver: AsBlocks, box: Box, meetings: Sequence[Meeting]) -> None:
        super().__init__(solver, box, meetings)
        domain = solver.domain
        self.fields = tuple(field.reshape(-1) for field in domain.fields)
        tables = [domain.tables(box, group) for group in solver.grids.groups]
        self.geometry = [geometry for geometry, _, _ in tables]
        self.walls = tables[0][1]
        self.lost = [lost for _, _, lost in tables]


class InnerTask(BlockTask):
    """A block without messages."""

    def step(self, step: int) -> None:
        """Advance each group of variables."""
        for group in range(self.groups):
            advance(self, step, (self.begin + step) % 2, group)


class OuterTask(BlockTask):
    """A block with messages of its own."""

    def step(self, step: int) -> None:
        """Exchange and advance each group of variables in turn, or exchange all at once."""
        field = (self.begin + step) % 2
        if self.ahead != 0:
            exchange(self, step, field, 0, self.groups)
        for group in range(self.groups):
            if self.ahead == 0:
                exchange(self, step, field, group, group + 1)
            advance(self, step, field, group)


def advance(task: BlockTask, step: int, field: int, group: int) -> None:
    """The boundary's account and the stencil of a group of variables."""
    sampled = step % SAMPLE == 0
    cpu = task.ctx.cpu_seconds() if sampled else 0.0
    begin = task.ctx.seconds()
    old, new = task.fields[field], task.fields[1 - field]
    stencil.outflow(old, task.geometry[group], task.walls, task.lost[group])
    stencil.sweep(old, new, task.geometry[group])
    spent = task.ctx.seconds() - begin
    task.kernels_s[0] += spent
    if sampled:
        task.kernels_s[1] += spent
        task.kernels_s[2] += task.ctx.cpu_seconds() - cpu


class AsBlocks(Decomposed):
    """The solver of one process; :meth:`solve` may be called again after the domain is reset."""

    def __init__(self, comm: Any, options: Options, layout: Layout) -> None:
        self.domain = domain = Domain(layout.size, *layout.block(comm.rank), options.variables)
        _, planes, rows, row = domain.fields[0].shape
        a, b = (field.reshape(-1, rows, row) for field in domain.fields)
        grids = Grids((a, b), DEPTH, options.groups, planes)
        super().__init__(comm, layout, options.tpod, grids, domain.whole)

    def task(self, box: Box, meetings: list[Meeting]) -> Faces:
        return (OuterTask if meetings else InnerTask)(self, box, meetings)

    def solve(self, steps: int) -> Timed:
        """Time the steps on this process, after a barrier."""
        timed = self.run(steps, self.domain.current)
        self.domain.current = (self.domain.current + steps) % 2
        return timed
