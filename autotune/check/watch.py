"""Watches the ranks of a launch in /proc while it runs: masks, threads, libraries, memory."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from autotune.check.launch_facts import RankFacts
from autotune.check.pools import BLAS, pool_size, pools_in
from autotune.check.probe import VARIABLES, rank_number
from runner.cpus import cpus_of
from runner.process import read_proc
from runner.supervise.process_tree import descendants, environ
from runner.supervise.watches import rank_process

_FIRST_LOOK_S = 0.05
_LONGEST_GAP_S = 1.0
_SETTLED_S = 0.7
"""hwloc was seen to take 0.2 s."""
_SHARE = 0.1
"""A thread computes if it used this share of the time of its rank's busiest thread."""
_TICKS = 3
"""And at least so many ticks of the clock, which has 100 in a second."""
_LIBRARY = re.compile(rb" (/[^\n]*/libmpi(?:ch)?\.so[^\n]*)")
_MEMORY_EVERY = 4
"""The memory of a rank is read in every fourth look: the kernel walks its tables."""


@dataclass
class _WatchedRank:
    """What the looks saw of one rank."""

    pid: int
    mask: frozenset[int] = frozenset()
    """CPUs of its main thread in the last look."""
    since: float = 0.0
    """When a look first saw them, by a clock that never goes back."""
    settled: bool = False
    """True if they have stayed the same for some time."""
    ticks: dict[int, int] = field(default_factory=dict)
    """Processor time of each thread."""
    thread_masks: dict[int, frozenset[int]] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    pools: set[str] = field(default_factory=set)
    library: str = ""
    resident_bytes: int | None = None
    huge_bytes: int | None = None
    namespaces: dict[str, int] = field(default_factory=dict)
    capabilities: int | None = None


class LaunchWatch:
    """Looks at the ranks below a process, less often as time goes on; a context manager.

    hwloc binds a process to one CPU after the other while it discovers the machine, so the CPUs of
    a rank count only when they have stayed the same for a while.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._ranks: dict[int, _WatchedRank] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> LaunchWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def ranks(self) -> tuple[RankFacts, ...]:
        """The ranks as they were seen, in their order."""
        host = os.uname().nodename
        return tuple(_facts(number, one, host) for number, one in sorted(self._ranks.items()))

    @property
    def is_settled(self) -> bool:
        """True if the CPUs of all ranks that were seen are certain."""
        return all(rank.settled for rank in self._ranks.values())

    def _work(self) -> None:
        gap_s, looks = _FIRST_LOOK_S, 0
        while not self._ended.wait(gap_s):
            self.look(with_memory=looks % _MEMORY_EVERY == _MEMORY_EVERY - 1)
            gap_s, looks = min(gap_s * 1.3, _LONGEST_GAP_S), looks + 1

    def look(self, *, with_memory: bool = False) -> None:
        """Take one look at all ranks; about 0.3 ms for each."""
        processes: dict[int, list[int]] = {}
        variables: dict[int, dict[str, str]] = {}
        for pid in descendants(self._root):
            own = {
                name.decode(errors="replace"): value.decode(errors="replace")
                for name, value in environ(pid).items()
                if name.decode(errors="replace") in VARIABLES
            }
            number = rank_number(own)
            if number is not None:
                processes.setdefault(number, []).append(pid)
                variables[pid] = own
        for number, pids in processes.items():
            pid = rank_process(pids)
            if number not in self._ranks or self._ranks[number].pid != pid:
                self._ranks[number] = _WatchedRank(pid)
            _look_at(self._ranks[number], variables[pid], with_memory)


def _look_at(rank: _WatchedRank, environment: Mapping[str, str], with_memory: bool) -> None:
    status = read_proc(f"/proc/{rank.pid}/status")
    mask = _field(status, b"Cpus_allowed_list")
    if not mask:
        return
    now = time.monotonic()
    if cpus_of(mask) != rank.mask:
        rank.mask, rank.since = cpus_of(mask), now
    rank.settled = now - rank.since >= _SETTLED_S
    rank.environment = dict(environment)
    capabilities = _field(status, b"CapEff")
    rank.capabilities = int(capabilities, 16) if capabilities else None
    rank.namespaces = rank.namespaces or _namespaces(rank.pid)
    _look_at_threads(rank)
    maps = read_proc(f"/proc/{rank.pid}/maps")
    rank.pools |= pools_in(maps.decode(errors="replace"))
    library = _LIBRARY.search(maps)
    rank.library = library[1].decode(errors="replace") if library else rank.library
    if with_memory:
        rollup = read_proc(f"/proc/{rank.pid}/smaps_rollup")
        rank.resident_bytes = _kilobytes(rollup, b"Rss") or rank.resident_bytes
        huge = _kilobytes(rollup, b"AnonHugePages")
        rank.huge_bytes = rank.huge_bytes if huge is None else huge


def _look_at_threads(rank: _WatchedRank) -> None:
    try:
        names = [thread.name for thread in Path(f"/proc/{rank.pid}/task").iterdir()]
    except OSError:
        return
    for name in names:
        stat = read_proc(f"/proc/{rank.pid}/task/{name}/stat").rpartition(b")")[2].split()
        mask = _field(read_proc(f"/proc/{rank.pid}/task/{name}/status"), b"Cpus_allowed_list")
        if len(stat) > 12 and mask:
            rank.ticks[int(name)] = int(stat[11]) + int(stat[12])
            rank.thread_masks[int(name)] = cpus_of(mask)


def _facts(number: int, rank: _WatchedRank, host: str) -> RankFacts:
    mask = rank.mask
    return RankFacts(
        number,
        host,
        rank.pid,
        mask,
        _computing(rank, mask),
        tuple(sorted(rank.pools)),
        environment=rank.environment,
        namespaces=rank.namespaces,
        capabilities=rank.capabilities,
        resident_bytes=rank.resident_bytes,
        huge_bytes=rank.huge_bytes,
        mpi_library=rank.library,
    )


def _computing(rank: _WatchedRank, mask: frozenset[int]) -> tuple[frozenset[int], ...]:
    """The masks of the threads that compute: the main one, busy ones, and those of BLAS pools.

    The pool of a BLAS library is there from its first moment on, and its threads are the first of
    the process; they compute as soon as the program calls the library.
    """
    busiest = max(rank.ticks.values(), default=0)
    busy = {
        thread
        for thread, ticks in rank.ticks.items()
        if ticks >= _TICKS and ticks >= _SHARE * busiest
    }
    sizes = (pool_size(pool, rank.environment, len(mask)) for pool in rank.pools & BLAS)
    pool = max(sizes, default=1)
    computing = busy | {rank.pid} | set(sorted(rank.ticks)[:pool])
    others = computing - {rank.pid}
    return (mask, *(rank.thread_masks[thread] for thread in sorted(others)))


def _namespaces(pid: int) -> dict[str, int]:
    spaces = {}
    for name in ("user", "pid", "ipc", "mnt"):
        try:
            spaces[name] = Path(f"/proc/{pid}/ns/{name}").stat().st_ino
        except OSError:
            continue
    return spaces


def _field(status: bytes, name: bytes) -> str:
    match = re.search(rb"^%s:\s*(\S+)" % name, status, re.MULTILINE)
    return match[1].decode("ascii") if match else ""


def _kilobytes(rollup: bytes, name: bytes) -> int | None:
    match = re.search(rb"^%s:\s*(\d+) kB" % name, rollup, re.MULTILINE)
    return int(match[1]) * 1024 if match else None
