"""Foreign load: CPU time that somebody else used while a program was measured.

Machine CPU (user + nice + system of ``/proc/stat``) minus what the run is known to have used, plus
stolen time.  A run counts only when that is at most ``limit_s``.  docs/measuring.md gives the error
of the figure, which comes from the kernel's tick accounting.  Nothing here imports more than the
standard library: the supervisor's server uses it between two runs.

Where a run is confined to some CPUs, the counters of these alone are judged.
"""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class CpuTimes:
    """CPU time since boot, in seconds, summed over all CPUs of the machine or over some."""

    busy_s: float
    """user (guests included) + nice + system"""
    steal_s: float
    """taken by the hypervisor for somebody else"""
    irq_s: float
    """hard and soft interrupts: reported, not judged, since a program's own messages cause them"""
    idle_s: float
    """idle + waiting for input or output"""
    counters: int = 1
    """How many of the kernel's counters were added up, each cut to whole ticks."""


@dataclass(frozen=True)
class ProcessTime:
    """CPU time (user + system, seconds) of one process since its start."""

    name: str
    cpu_s: float
    started_ticks: int
    """start in ticks after boot: with the process id it names a process once and for all"""


@dataclass(frozen=True)
class Culprit:
    """A process that used CPU time while a run was measured."""

    pid: int
    name: str
    cpu_s: float
    command: str = ""
    """Beginning of its command line: "python" alone says little."""


@dataclass(frozen=True)
class Foreign:
    """Judgement of one window.  ``cpu_s`` is what others used, ``limit_s`` what is tolerated.

    ``steal_s`` is the part of ``cpu_s`` that the host of a virtual machine gave to others.
    """

    cpu_s: float
    irq_s: float
    limit_s: float
    exceeded: bool
    steal_s: float = 0.0


@dataclass(frozen=True)
class QuietWait:
    """Outcome of :func:`wait_quiet`: ``load`` is the last foreign load in CPUs."""

    waited_s: float
    quiet: bool
    load: float


def cpu_times(cpus: Collection[int] | None = None) -> CpuTimes:
    """The counters now (about 70 us): of the machine, or of some ``cpus`` alone."""
    machine, *lines = read_proc("/proc/stat").split(b"\n")
    if cpus is None:
        return _times_of([machine])
    names = {b"cpu%d" % cpu for cpu in cpus}
    chosen = [line for line in lines if line.split(b" ", 1)[0] in names]
    every = len(chosen) == sum(line.startswith(b"cpu") for line in lines)
    return _times_of([machine] if every else chosen)


def _times_of(lines: list[bytes]) -> CpuTimes:
    # Fields 9 and 10 (guest) are contained in user and nice already.
    columns = zip(*(map(int, line.split()[1:9]) for line in lines), strict=True)
    user, nice, system, idle, iowait, irq, softirq, steal = (sum(c) * TICK_S for c in columns)
    return CpuTimes(user + nice + system, steal, irq + softirq, idle + iowait, len(lines))


def read_proc(path: str) -> bytes:
    """Contents of a file of /proc; empty if it is gone or may not be read."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        parts = []
        while part := os.read(fd, 1 << 16):
            parts.append(part)
        return b"".join(parts)
    except OSError:
        # The process ended between open and read.
        return b""
    finally:
        os.close(fd)


def all_pids() -> list[int]:
    """Every process of the machine that can be seen from here."""
    with os.scandir("/proc") as entries:
        return [int(entry.name) for entry in entries if entry.name.isdigit()]


def stat_fields(pid: int) -> tuple[str, list[str]] | None:
    """Name and the fields from ``state`` on of ``/proc/PID/stat``; None if it is gone."""
    text = read_proc(f"/proc/{pid}/stat").decode("utf-8", "replace")
    if not text:
        return None
    # A name may contain blanks and brackets: the last closing bracket ends it.
    start, end = text.index("("), text.rindex(")")
    return text[start + 1 : end], text[end + 2 :].split()


def process_time(pid: int) -> ProcessTime | None:
    """CPU time of one process, or None if there is no such process."""
    found = stat_fields(pid)
    if found is None:
        return None
    name, fields = found
    return ProcessTime(name, (int(fields[11]) + int(fields[12])) * TICK_S, int(fields[19]))


def process_times(pids: Iterable[int] | None = None) -> dict[int, ProcessTime]:
    """CPU time per process, of all (about 15 us each) or of the given ones."""
    chosen = all_pids() if pids is None else pids
    return {pid: times for pid in chosen if (times := process_time(pid)) is not None}


def used_between(
    before: Mapping[int, ProcessTime], after: Mapping[int, ProcessTime]
) -> dict[int, float]:
    """Seconds of CPU each process of ``after`` used since ``before`` (since its start if new)."""
    used = {}
    for pid, now in after.items():
        then = before.get(pid)
        same = then is not None and then.started_ticks == now.started_ticks
        used[pid] = now.cpu_s - then.cpu_s if same and then is not None else now.cpu_s
    return used


def culprits(
    before: Mapping[int, ProcessTime],
    after: Mapping[int, ProcessTime],
    own: Iterable[int] = (),
    most: int = 3,
    cpus: Collection[int] | None = None,
) -> tuple[Culprit, ...]:
    """The processes that used most CPU between two tables, largest first, without ``own``.

    One that ended between the tables cannot be named.  With ``cpus``, one that may not run there
    is none.
    """
    mine = set(own)
    used = {pid: s for pid, s in used_between(before, after).items() if pid not in mine and s > 0}
    suspects = (pid for pid in sorted(used, key=lambda p: -used[p]) if may_run_on(pid, cpus))
    top = list(itertools.islice(suspects, most))
    return tuple(Culprit(p, after[p].name, round(used[p], 2), command_of(p)) for p in top)


def may_run_on(pid: int, cpus: Collection[int] | None) -> bool:
    """Whether ``pid`` may use one of ``cpus``; True for None, and where its affinity is unknown."""
    if cpus is None:
        return True
    try:
        return not os.sched_getaffinity(pid).isdisjoint(cpus)
    except OSError:
        return True


def command_of(pid: int) -> str:
    """First 80 characters of the command line; "" for a kernel thread or a process that is gone."""
    words = read_proc(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode("utf-8", "replace")
    return "".join(c if c.isprintable() else "?" for c in words.strip()[:80])


def limit_s(wall_s: float, counters: int = 1) -> float:
    """Foreign CPU seconds that are tolerated in a window of ``wall_s`` seconds.

    The fixed part is the error of a counter that runs in ticks; errors of several add up as the
    root of their number.
    """
    return 0.03 * math.sqrt(counters) + 0.04 * wall_s


def judge_foreign_load(
    before: CpuTimes, after: CpuTimes, own_cpu_s: float, wall_s: float
) -> Foreign:
    """Foreign load between two snapshots ``wall_s`` seconds apart.

    ``own_cpu_s``: exact CPU time of everything that belongs to the run (its process tree, the
    supervisor, the tuner, the cluster definition's own processes).  Stolen time is added after
    the difference is cut at 0: some kernels count it in a process's time too, and then a stolen
    second would hide behind the program that it was stolen from.
    """
    others = max(0.0, after.busy_s - before.busy_s - own_cpu_s)
    stolen = max(0.0, after.steal_s - before.steal_s)
    cpu, limit = others + stolen, limit_s(wall_s, after.counters)
    return Foreign(cpu, after.irq_s - before.irq_s, limit, cpu > limit, stolen)


def ran_outside(before: CpuTimes, after: CpuTimes, own_cpu_s: float, wall_s: float) -> bool:
    """Whether a run used more CPU time than the judged CPUs spent on anything, beyond the limit.

    It then ran on other CPUs too: this also finds ranks that nobody saw where they were.
    Interrupts count as spent, since some kernels count them in a process's time.
    """
    spent = [t.busy_s + t.steal_s + t.irq_s for t in (before, after)]
    return own_cpu_s - (spent[1] - spent[0]) > limit_s(wall_s, after.counters)


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

    Load on other CPUs than ``cpus`` (None: all) does not count; the caller is to run there.  The
    caller's own CPU time and that of ``own_pids`` do not count.  ``on_wait(load)`` is called
    after each sample that was too busy, with the load in CPUs.  Costs about 0.1 ms per sample.
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
                # A busy sample makes all before it worthless: start again from here.
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
