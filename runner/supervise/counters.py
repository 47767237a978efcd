"""CPU time on the machine at one moment: counters of its CPUs and of every process."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from runner import guard
from runner.supervise.messages import ExecRequest

TABLE_FRESH_S = 0.1
"""A table taken after the previous run is used for the next one if it is no older than this."""
_TABLE_COST_S = 0.002
"""The table of processes is taken before each run only if it costs at most this many seconds."""


@dataclass(frozen=True)
class Snapshot:
    """Counters of the CPUs and of this process at one moment.

    ``declared_s`` is the CPU time of the cluster's own processes in seconds.
    """

    at: float
    cpu: guard.CpuTimes
    server_s: float
    declared_s: float

    @classmethod
    def take(cls, request: ExecRequest) -> Snapshot:
        declared = sum(t.cpu_s for t in guard.process_times(request.own_pids).values())
        counters = guard.cpu_times(request.judged_cpus)
        return cls(time.monotonic(), counters, time.process_time(), declared)


class ProcessTable:
    """CPU time of every process before a run, so that a culprit can be named after the run.

    On a machine with thousands of processes the table is refreshed rarely, so that it costs at most
    one per cent of the time. Its figures then cover a longer time than the run.
    """

    def __init__(self) -> None:
        self.before: dict[int, guard.ProcessTime] = {}
        self._taken_at = -math.inf
        self._next_at = 0.0

    def refresh(self, older_s: float = 0.0) -> None:
        """Take the table again if it is older than ``older_s`` seconds."""
        start = time.monotonic()
        if start < max(self._next_at, self._taken_at + older_s):
            return
        self._taken_at = start
        self.before = guard.process_times()
        cost = time.monotonic() - start
        self._next_at = start + (100 * cost if cost > _TABLE_COST_S else 0.0)
