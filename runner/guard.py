"""The guard: foreign load, the CPU time that other programs used while a program was measured.

Foreign load is the machine's CPU time (user + nice + system of ``/proc/stat``) minus the CPU time
that the run is known to have used, plus stolen time. A run counts only if this is at most
``limit_s``. docs/explanation/measuring.md gives the error of the figure, which comes from the
kernel's tick accounting.

If a run is bound to some CPUs, only the counters of these CPUs are judged.

This module imports only the standard library and equally light modules, because the supervision
process uses it between runs.
"""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from runner.passwords import mask_words
from runner.process import all_pids, read_proc, stat_fields

TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class CpuTimes:
    """CPU time since boot, in seconds, summed over all CPUs of the machine or over some."""

    busy_s: float
    """user (guests included) + nice + system"""
    steal_s: float
    """taken by the hypervisor for other virtual machines"""
    irq_s: float
    """hard and soft interrupts: reported, not judged, because a program's own messages cause
    them"""
    idle_s: float
    """idle + waiting for input or output"""
    counters: int = 1
    """Number of kernel counters added up; the kernel truncates each one to whole ticks."""


@dataclass(frozen=True)
class ProcessTime:
    """CPU time (user + system, seconds) of one process since its start."""

    name: str
    cpu_s: float
    started_ticks: int
    """start in ticks after boot: identifies a process uniquely together with the process id"""


@dataclass(frozen=True)
class Culprit:
    """A process that used CPU time while a run was measured."""

    pid: int
    name: str
    cpu_s: float
    command: str = ""
    """Beginning of its command line, because the name alone ("python") says little."""


@dataclass(frozen=True)
class Foreign:
    """The guard's judgement of one window: ``cpu_s`` of other programs against the limit
    ``limit_s``.

    ``steal_s`` is the part of ``cpu_s`` that a virtual machine's host gave to others. All are in
    seconds.
    """

    cpu_s: float
    irq_s: float
    limit_s: float
    exceeded: bool
    steal_s: float = 0.0


@dataclass(frozen=True)
class QuietWait:
    """Outcome of :func:`wait_quiet`; ``load`` is the last foreign load, in CPUs."""

    waited_s: float
    quiet: bool
    load: float


def cpu_times(cpus: Collection[int] | None = None) -> CpuTimes:
    """The present counters of the whole machine, or only of ``cpus`` (takes about 70 us)."""
    machine, *lines = read_proc("/proc/stat").split(b"\n")
    if cpus is None:
        return _times_of([machine])
    names = {b"cpu%d" % cpu for cpu in cpus}
    selection = [line for line in lines if line.split(b" ", 1)[0] in names]
    every = len(selection) == sum(line.startswith(b"cpu") for line in lines)
    return _times_of([machine] if every else selection)


def _times_of(lines: list[bytes]) -> CpuTimes:
    # Fields 9 and 10 (guest) are already contained in user and nice.
    columns = zip(*(map(int, line.split()[1:9]) for line in lines), strict=True)
    user, nice, system, idle, iowait, irq, softirq, steal = (sum(c) * TICK_S for c in columns)
    return CpuTimes(user + nice + system, steal, irq + softirq, idle + iowait, len(lines))


def process_time(pid: int) -> ProcessTime | None:
    """CPU time of one process, or None if there is no such process."""
    stat = stat_fields(pid)
    if stat is None:
        return None
    name, fields = stat
    return ProcessTime(name, (int(fields[11]) + int(fields[12])) * TICK_S, int(fields[19]))


def process_times(pids: Iterable[int] | None = None) -> dict[int, ProcessTime]:
    """CPU time per process, of all processes or of the given ones (about 15 us each)."""
    selection = all_pids() if pids is None else pids
    return {pid: times for pid in selection if (times := process_time(pid)) is not None}


def cpu_s_between(
    before: Mapping[int, ProcessTime], after: Mapping[int, ProcessTime]
) -> dict[int, float]:
    """CPU seconds that each process in ``after`` used since ``before``; since its start if it is
    new.
    """
    usage = {}
    for pid, now in after.items():
        then = before.get(pid)
        same = then is not None and then.started_ticks == now.started_ticks
        usage[pid] = now.cpu_s - then.cpu_s if same and then is not None else now.cpu_s
    return usage


def culprits(
    before: Mapping[int, ProcessTime],
    after: Mapping[int, ProcessTime],
    own: Iterable[int] = (),
    most: int = 3,
    cpus: Collection[int] | None = None,
) -> tuple[Culprit, ...]:
    """The processes that used the most CPU time between two tables, largest first, without ``own``.

    A process that ended between the tables cannot be named. With ``cpus``, processes that may not
    run on them are left out.
    """
    mine = set(own)
    usage = {pid: s for pid, s in cpu_s_between(before, after).items() if pid not in mine and s > 0}
    suspects = (pid for pid in sorted(usage, key=lambda p: -usage[p]) if may_run_on(pid, cpus))
    top = list(itertools.islice(suspects, most))
    return tuple(Culprit(p, after[p].name, round(usage[p], 2), command_of(p)) for p in top)


def may_run_on(pid: int, cpus: Collection[int] | None) -> bool:
    """True if ``pid`` may use one of ``cpus``, if ``cpus`` is None, or if the affinity is
    unknown."""
    if cpus is None:
        return True
    try:
        return not os.sched_getaffinity(pid).isdisjoint(cpus)
    except OSError:
        return True


def command_of(pid: int) -> str:
    """First 80 characters of the command line, without passwords of URLs.

    "" for a kernel thread or an ended process.
    """
    words = read_proc(f"/proc/{pid}/cmdline").decode("utf-8", "replace").split("\0")
    line = " ".join(mask_words(words)).strip()[:80]
    return "".join(c if c.isprintable() else "?" for c in line)


def limit_s(wall_s: float, counters: int = 1) -> float:
    """Foreign CPU seconds that are tolerated in a window of ``wall_s`` seconds.

    The fixed part is the error of one counter in ticks. Errors of several counters grow with the
    square root of their number.
    """
    return 0.03 * math.sqrt(counters) + 0.04 * wall_s


def judge_foreign_load(
    before: CpuTimes, after: CpuTimes, own_cpu_s: float, wall_s: float
) -> Foreign:
    """The foreign load between two snapshots at an interval of ``wall_s`` seconds.

    ``own_cpu_s`` is the exact CPU time in seconds of the run: its process tree, the supervision
    process, the tuner and the cluster definition's own processes. Stolen time is added after the
    difference is clipped at 0. Some kernels count stolen time in a process's time, too; without
    clipping, the program would hide time stolen from it.
    """
    others = max(0.0, after.busy_s - before.busy_s - own_cpu_s)
    steal_s = max(0.0, after.steal_s - before.steal_s)
    cpu, limit = others + steal_s, limit_s(wall_s, after.counters)
    return Foreign(cpu, after.irq_s - before.irq_s, limit, cpu > limit, steal_s)


def ran_outside(before: CpuTimes, after: CpuTimes, own_cpu_s: float, wall_s: float) -> bool:
    """True if a run used more CPU time than the judged CPUs spent on anything, plus the limit.

    If so, the run used other CPUs, too. This also detects ranks whose affinity was never seen.
    Interrupts count as spent, because some kernels count them in a process's time.
    """
    totals_s = [t.busy_s + t.steal_s + t.irq_s for t in (before, after)]
    return own_cpu_s - (totals_s[1] - totals_s[0]) > limit_s(wall_s, after.counters)


def wait_quiet(
    timeout_s: float,
    *,
    quiet_s: float = 1.0,
    sample_s: float = 0.25,
    own_pids: Iterable[int] = (),
    cpus: Collection[int] | None = None,
    on_wait: Callable[[float], None] | None = None,
) -> QuietWait:
    """Return once foreign load stayed below the limit for ``quiet_s`` seconds, or at the timeout.

    Load on CPUs outside ``cpus`` (None: all CPUs) does not count; the caller must run on ``cpus``.
    Nor does CPU time of the caller and of ``own_pids``. ``on_wait(load)`` is called after each
    sample above the limit, with the load in CPUs. A sample costs about 0.1 ms.
    """
    pids = tuple(own_pids)
    start = time.monotonic()
    window: list[tuple[float, CpuTimes, float]] = []
    while True:
        window.append((time.monotonic(), cpu_times(cpus), _own_cpu_s(pids)))
        now, times, own = window[-1]
        first, first_times, first_own = window[0]
        span = now - first
        load = 0.0
        if span > 0:
            foreign = judge_foreign_load(first_times, times, own - first_own, span)
            load = foreign.cpu_s / span
            if foreign.exceeded:
                # A busy sample invalidates all earlier ones: start again here.
                window = window[-1:]
                if on_wait is not None:
                    on_wait(load)
            elif span >= quiet_s:
                return QuietWait(now - start, True, load)
        if now - start >= timeout_s:
            return QuietWait(now - start, False, load)
        time.sleep(sample_s)


def _own_cpu_s(pids: tuple[int, ...]) -> float:
    return time.process_time() + sum(t.cpu_s for t in process_times(pids).values())
