"""Variant threads: as ``mpi``, but the threads of a process share each sweep; one communicates."""

from __future__ import annotations

import dataclasses
from typing import Any

from runner.programs.apps.common.box import cut
from runner.programs.apps.common.layout import Layout
from runner.programs.apps.common.meter import Meter, RunTimes
from runner.programs.apps.common.team import Team
from runner.programs.apps.common.timed_part import TimedPart
from runner.programs.apps.minighost.options import Options
from runner.programs.apps.minighost.variant_mpi import Bulk


class ThreadBulk(Bulk):
    """The cells of a process are cut into ``layout.local`` parts, one for each thread."""

    def __init__(self, comm: Any, options: Options, layout: Layout, cpus: list[int | None]) -> None:
        self._cpus, self._local = cpus, layout.local
        super().__init__(comm, options, dataclasses.replace(layout, local=(1, 1, 1)))

    def _prepare(self) -> None:
        domain = self.domain
        self._tasks = [
            [call for group in self._groups for call in domain.advance(box, group)]
            for box in cut(domain.whole, self._local)
        ]

    def _run(self, steps: int) -> RunTimes:
        meters = [Meter() for _ in self._tasks]
        with Team(self._tasks, self._cpus, meters) as team, TimedPart(self._comm) as part:
            self._steps(steps, meters[0], lambda group, field: team.step(2 * group + field))
        for meter in meters[1:]:
            # The time that the first thread communicates, and the wait for slower threads.
            meter.waiting = part.seconds - meter.compute
        return self._run_times(steps, part.seconds, meters)
