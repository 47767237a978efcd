"""What a job tells about itself when it has ended."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from runner.mate.timers import WorkerTimes


@dataclass
class Report:
    """One process's part of a job.  Times in seconds; worker times are those the timers counted."""

    process: int
    process_count: int
    local_ranks: list[int]
    """Global rank of each local rank; the lists of ranks below have the same order."""
    wall_s: float
    """From the common start to the end of the last local rank."""
    workers: list[WorkerTimes]
    rank_compute_s: list[float]
    """Time in the bodies of each rank over the whole job: what a load balancer needs."""
    rank_workers: list[list[int]]
    """The workers that ran each rank."""
    results: list[Any] = field(default_factory=list)
    """What each rank returned."""

    def totals(self) -> dict[str, float]:
        """Sums over the workers of this process."""
        total = WorkerTimes()
        for times in self.workers:
            total = total.plus(times)
        return {**dataclasses.asdict(total), "wall_s": self.wall_s, "workers": len(self.workers)}

    def gather(self, comm: Any) -> list[Report] | None:
        """The reports of all processes, without results, at process 0; collective over ``comm``."""
        gathered: list[Report] | None = comm.gather(dataclasses.replace(self, results=[]), root=0)
        return gathered
