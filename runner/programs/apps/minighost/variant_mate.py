"""Variant mate: ranks that share a process's cells, with dependencies between them (MATE).

A rank sweeps all variables of its cells. Each step is followed by the exchange of the new values,
as each step of flat MPI is preceded by one; the first one, of the start values, is not timed.
"""

from __future__ import annotations

from typing import Any

from runner.programs.apps.common import ranks as common_ranks
from runner.programs.apps.common.box import Box
from runner.programs.apps.common.layout import Layout
from runner.programs.apps.common.meter import RunTimes
from runner.programs.apps.common.ranks import GraphSolver
from runner.programs.apps.common.regions import shared_grid
from runner.programs.apps.minighost.domain import Domain
from runner.programs.apps.minighost.options import Options
from runner.programs.apps.minighost.regions import CellTables, advance


class Part(common_ranks.Part, CellTables):
    """One rank: its cells ``box`` of a domain, and the messages over its ``remote`` faces.

    The variables of one of the ``groups`` share a message. Messages of several groups have the same
    tags; they arrive in order.
    """

    def __init__(
        self,
        domain: Domain,
        box: Box,
        remote: list[tuple[int, int, int]],
        local: list[int],
        groups: list[range],
        split: int,
    ) -> None:
        tables = domain.tables(box, range(domain.variables))
        faces = [domain.faces(box, remote, group) for group in groups]
        super().__init__(domain.stack, faces, domain.calls(*tables), local, split)
        self.give_cells(domain, [tables])


def compute(part: Part, i: int) -> None:
    """Sweep all variables from field ``i % 2`` into the other field."""
    advance(part, i, i % 2, 0)


class AsRanks(GraphSolver):
    """The solver of one process; :meth:`solve` may be called again after the domain is reset."""

    graph = shared_grid("minighost", compute)

    def __init__(self, comm: Any, options: Options, layout: Layout) -> None:
        self.domain = Domain(layout.size, *layout.block(comm.rank), options.variables)
        self._groups = options.groups
        super().__init__(comm, layout, options.config)

    def _part(self, local: int) -> Part:
        remote, near = self._behind(local)
        box = self.domain.box_of(*self._layout.part(self._comm.rank, local))
        return Part(self.domain, box, remote, near, self._groups, self._config.split)

    def solve(self, steps: int) -> RunTimes:
        """Time the steps on this process, after a barrier."""
        times = self.run(steps)
        self.domain.current = steps % 2
        return times
