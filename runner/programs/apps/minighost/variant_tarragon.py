"""Variant tarragon: the parts of a process's cells as a graph of tasks (Cicotti 2011).

A task sweeps all variables of its cells. Its first step only sends the faces of the start values;
so as many exchanges are timed as in flat MPI.
"""

from __future__ import annotations

from typing import Any

from runner.programs.apps.common import grid_tasks as common_grid_tasks
from runner.programs.apps.common.box import Box
from runner.programs.apps.common.grid_tasks import Remote, pack, unpack
from runner.programs.apps.common.layout import Layout
from runner.programs.apps.common.meter import RunTimes
from runner.programs.apps.minighost.domain import Domain, Tables
from runner.programs.apps.minighost.options import Options
from runner.programs.apps.minighost.problem import DEPTH
from runner.programs.apps.minighost.regions import CellTables, advance


class Cells(common_grid_tasks.Cells, CellTables):
    """The cells ``box`` of a domain, whose tables are ``tables``."""

    def __init__(
        self, domain: Domain, box: Box, tables: Tables, remote: Remote, steps: int
    ) -> None:
        planes = domain.planes_of(range(domain.variables))
        super().__init__(domain.stack, box, remote, DEPTH, steps, planes=planes)
        self.give_cells(domain, [tables])

    def compute(self, step: int) -> None:
        """Sweep into field ``step % 2`` from the other one; the first step has nothing to sweep."""
        if step > 0:
            unpack(self, step - 1, (step - 1) % 2)
            advance(self, step - 1, (step - 1) % 2, 0)
        pack(self, step, step % 2)


class AsGraph(common_grid_tasks.AsGraph):
    """The solver of one process; :meth:`solve` may be called again after the domain is reset."""

    def __init__(self, comm: Any, options: Options, layout: Layout) -> None:
        super().__init__(comm, layout, options.tarragon)
        self.domain = domain = Domain(layout.size, *layout.block(comm.rank), options.variables)
        parts = [layout.part(comm.rank, local) for local in range(layout.local_count)]
        self._boxes = [domain.box_of(*part) for part in parts]
        self._tables = [domain.tables(box, range(domain.variables)) for box in self._boxes]

    def task(self, local: int, remote: Remote, steps: int) -> Cells:
        return Cells(self.domain, self._boxes[local], self._tables[local], remote, steps)

    def solve(self, steps: int) -> RunTimes:
        """Time the steps on this process, after a barrier."""
        times = self.run(steps + 1)
        self.domain.current = steps % 2
        return times
