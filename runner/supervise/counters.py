"""CPU time of a run, and of everything else on its CPUs.

:class:`Account` compares the counters of the CPUs before and after a run with the time that the
run used itself. The rest is foreign load.
"""

from __future__ import annotations

import math
import os
import resource
import time
from dataclasses import dataclass

from runner import guard
from runner.supervise.messages import ExecRequest

_TABLE_FRESH_S = 0.1
"""A table taken after the previous run is reused for the next one up to this age in seconds."""
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
        declared_cpu_s = sum(t.cpu_s for t in guard.process_times(request.own_pids).values())
        counters = guard.cpu_times(request.judged_cpus)
        return cls(time.monotonic(), counters, time.process_time(), declared_cpu_s)


class ProcessTable:
    """CPU time of every process before a run, so that a culprit can be named afterwards.

    With thousands of processes the table is refreshed rarely, so that it costs at most 1 % of the
    time. Its figures then cover more than the run.
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


@dataclass(frozen=True)
class Window:
    """The changes between two moments; times in seconds."""

    seconds: float
    server_s: float
    declared_s: float
    before: guard.CpuTimes
    after: guard.CpuTimes


class Account:
    """CPU time and memory of one run; created just before the run begins."""

    def __init__(self, request: ExecRequest, table: ProcessTable) -> None:
        self._request = request
        self._table = table
        self.cpu_s = 0.0
        self.rss_kib = 0
        self.daemons_s = 0.0
        """Time of the launcher's daemons, once it was needed for the judgement."""
        table.refresh(_TABLE_FRESH_S)
        self.load1 = os.getloadavg()[0]
        self.started_at = time.time()
        self._before = Snapshot.take(request)

    def add(self, usage: resource.struct_rusage) -> None:
        """Count a process that has ended."""
        # A child's times include all children that it waited for, so each process counts once.
        self.cpu_s += usage.ru_utime + usage.ru_stime
        self.rss_kib = max(self.rss_kib, usage.ru_maxrss)

    def close(self) -> Window:
        """The changes since the run began."""
        before, after = self._before, Snapshot.take(self._request)
        return Window(
            after.at - before.at,
            after.server_s - before.server_s,
            after.declared_s - before.declared_s,
            before.cpu,
            after.cpu,
        )

    def judge(
        self, window: Window, others: tuple[int, ...]
    ) -> tuple[guard.Foreign, tuple[guard.Culprit, ...]]:
        """The foreign load in the window, and its causes, which are never in ``others``."""
        own_s = self.cpu_s + window.server_s + window.declared_s
        foreign = guard.judge_foreign_load(window.before, window.after, own_s, window.seconds)
        if not foreign.exceeded:
            return foreign, ()
        now, cpus = guard.process_times(), self._request.judged_cpus
        daemons = {pid for pid, one in now.items() if one.name in self._request.own_names}
        if daemons:
            usage = guard.cpu_s_between(self._table.before, now)
            self.daemons_s = sum(usage[pid] for pid in daemons)
            own_s += self.daemons_s
            foreign = guard.judge_foreign_load(window.before, window.after, own_s, window.seconds)
        own = (os.getpid(), *others, *self._request.own_pids, *daemons)
        named = guard.culprits(self._table.before, now, own, cpus=cpus) if foreign.exceeded else ()
        return foreign, named
