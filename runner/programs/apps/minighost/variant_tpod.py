"""Variant tpod: the blocks of a process as tasks that exchange their own faces (Barrett et al.)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runner.programs.apps.common.box import Box
from runner.programs.apps.common.layout import Layout
from runner.programs.apps.common.meter import RunTimes
from runner.programs.apps.common.tpod import Faces, Grids, Meeting, TpodSolver, exchange
from runner.programs.apps.minighost.domain import Domain
from runner.programs.apps.minighost.options import Options
from runner.programs.apps.minighost.problem import DEPTH
from runner.programs.apps.minighost.regions import CellTables, advance


class BlockTask(Faces, CellTables):
    """A block: its boundary and its stencil."""

    def __init__(self, solver: AsBlocks, box: Box, meetings: Sequence[Meeting]) -> None:
        super().__init__(solver, box, meetings)
        domain = solver.domain
        self.give_cells(domain, [domain.tables(box, group) for group in solver.grids.groups])


class InnerTask(BlockTask):
    """A block without messages."""

    def step(self, step: int) -> None:
        """Advance each group of variables."""
        for group in range(self.groups):
            advance(self, step, (self.begin + step) % 2, group)


class OuterTask(BlockTask):
    """A block with messages."""

    def step(self, step: int) -> None:
        """Exchange and advance each group of variables in turn, or exchange all at once."""
        field = (self.begin + step) % 2
        if self.prepost != 0:
            exchange(self, step, field, 0, self.groups)
        for group in range(self.groups):
            if self.prepost == 0:
                exchange(self, step, field, group, group + 1)
            advance(self, step, field, group)


class AsBlocks(TpodSolver):
    """The solver of one process; :meth:`solve` may be called again after the domain is reset."""

    def __init__(self, comm: Any, options: Options, layout: Layout) -> None:
        self.domain = domain = Domain(layout.size, *layout.block(comm.rank), options.variables)
        grids = Grids(domain.stack, DEPTH, options.groups, domain.fields[0].shape[1])
        super().__init__(comm, layout, options.tpod, grids, domain.whole)

    def task(self, box: Box, meetings: list[Meeting]) -> Faces:
        return (OuterTask if meetings else InnerTask)(self, box, meetings)

    def solve(self, steps: int) -> RunTimes:
        """Time the steps on this process, after a barrier."""
        times = self.run(steps, self.domain.current)
        self.domain.current = (self.domain.current + steps) % 2
        return times
