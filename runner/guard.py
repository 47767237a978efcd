"""Foreign load: CPU time that somebody else used while a program was measured.

Machine CPU (user + nice + system of ``/proc/stat``) minus what the run is known to have used, plus
stolen time.  A run counts only when that is at most ``limit_s``.  docs/measuring.md gives the error
of the figure, which comes from the kernel's tick accounting.  Nothing here imports more than the
standard library: the supervisor's server uses it between two runs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class CpuTimes:
    """The machine's CPU time since boot, summed over all CPUs, in seconds."""

    busy_s: float
    """user (guests included) + nice + system"""
    steal_s: float
    """taken by the hypervisor for somebody else"""
    irq_s: float
    """hard and soft interrupts: reported, not judged, since a program's own messages cause them"""
    idle_s: float
    """idle + waiting for input or output"""


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
    """Judgement of one window.  ``cpu_s`` is what others used, ``limit_s`` what is tolerated."""

    cpu_s: float
    irq_s: float
    limit_s: float
    exceeded: bool


@dataclass(frozen=True)
class Wait:
    """Outcome of :func:`wait_quiet`: ``load`` is the last foreign load in CPUs."""

    waited_s: float
    quiet: bool
    load: float


def cpu_times() -> CpuTimes:
    """The machine's counters now (about 50 us)."""
    words = read_proc("/proc/stat").split(b"\n", 1)[0].split()
    # Fields 9 and 10 (guest) are contained in user and nice already.
    user, nice, system, idle, iowait, irq, softirq, steal = (int(w) * TICK_S for w in words[1:9])
    return CpuTimes(user + nice + system, steal, irq + softirq, idle + iowait)


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
) -> tuple[Culprit, ...]:
    """The processes that used most CPU between two tables, largest first, without ``own``.

    One that ended between the tables cannot be named.
    """
    mine = set(own)
    used = {pid: s for pid, s in used_between(before, after).items() if pid not in mine and s > 0}
    top = sorted(used, key=lambda pid: -used[pid])[:most]
    return tuple(Culprit(p, after[p].name, round(used[p], 2), command_of(p)) for p in top)


def command_of(pid: int) -> str:
    """First 80 characters of the command line; "" for a kernel thread or a process that is gone."""
    words = read_proc(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode("utf-8", "replace")
    return "".join(c if c.isprintable() else "?" for c in words.strip()[:80])


def limit_s(wall_s: float) -> float:
    """Foreign CPU seconds that are tolerated in a window of ``wall_s`` seconds."""
    return 0.03 + 0.04 * wall_s


def judge(before: CpuTimes, after: CpuTimes, own_cpu_s: float, wall_s: float) -> Foreign:
    """Foreign load between two snapshots ``wall_s`` seconds apart.

    ``own_cpu_s``: exact CPU time of everything that belongs to the run (its process tree, the
    supervisor, the tuner, the cluster definition's own processes).  Stolen time is added after
    the difference is cut at 0: some kernels count it in a process's time too, and then a stolen
    second would hide behind the program that it was stolen from.
    """
    others = max(0.0, after.busy_s - before.busy_s - own_cpu_s)
    cpu = others + max(0.0, after.steal_s - before.steal_s)
    limit = limit_s(wall_s)
    return Foreign(cpu, after.irq_s - before.irq_s, limit, cpu > limit)


def wait_quiet(
    timeout_s: float,
    *,
    quiet_s: float = 1.0,
    sample_s: float = 0.25,
    own_pids: Iterable[int] = (),
    on_wait: Callable[[float], None] | None = None,
) -> Wait:
    """Return once foreign load stayed below the limit for ``quiet_s`` seconds, or at the timeout.

    The caller's own CPU time and that of ``own_pids`` do not count.  ``on_wait(load)`` is called
    after each sample that was too busy, with the load in CPUs.  Costs about 0.1 ms per sample.
    """
    pids = tuple(own_pids)
    start = time.monotonic()
    window: list[tuple[float, CpuTimes, float]] = []
    while True:
        window.append((time.monotonic(), cpu_times(), _own_cpu_s(pids)))
        now, times, own = window[-1]
        first, first_times, first_own = window[0]
        span = now - first
        load = 0.0
        if span > 0:
            foreign = judge(first_times, times, own - first_own, span)
            load = foreign.cpu_s / span
            if foreign.exceeded:
                # A busy sample makes all before it worthless: start again from here.
                window = window[-1:]
                if on_wait is not None:
                    on_wait(load)
            elif span >= quiet_s:
                return Wait(now - start, True, load)
        if now - start >= timeout_s:
            return Wait(now - start, False, load)
        time.sleep(sample_s)


def _own_cpu_s(pids: tuple[int, ...]) -> float:
    return time.process_time() + sum(t.cpu_s for t in process_times(pids).values())
