"""Watches of the supervision process during a run.

They look for ranks, the file of MPI_Init, ranks that wait for input, and a stuck launcher.

Ranks: which process is which rank, and on which CPUs it may run, read from /proc.

The file that an MPI library writes at the end of MPI_Init: the kernel announces it (inotify).

Input: ranks that wait for standard input in vain, read from /proc. Without an input the launcher's
own standard input is /dev/null. Most launchers pass its end on to rank 0; PRRTE (Open MPI 5) keeps
the pipe to rank 0 open for ever, and a program that reads it hangs.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from pathlib import Path

from runner.files.paths import exists
from runner.process import read_proc, stat_fields
from runner.supervise import process_tree
from runner.supervise.messages import RankSnapshot
from runner.supervise.program_files import ProgramFiles

RANKS_FIRST_LOOK_S = 0.03
"""Looks are at 1, 2, 4, 8, ... times this many seconds after the start.

The first is early enough for short programs; later ones are too rare to disturb long ones.
"""


LOOK_MARK = ".seen"
"""Suffix of the file which says that all ranks were seen while the ready file existed."""


class RankWatch:
    """Looks for ``ranks`` ranks below ``root`` until all were seen twice with the same affinity.

    While hwloc discovers the machine, it binds the whole process to one CPU after the other and
    then back. In MPI_Init of Open MPI 4.1 every rank was seen on CPU 0 for 0.2 s. With
    ``ready_file`` looks before that file exists do not count, and one look then is enough.
    """

    def __init__(
        self,
        variables: tuple[str, ...],
        env: dict[str, str],
        ranks: int,
        ready_file: str | None = None,
        read: tuple[str, ...] = (),
    ) -> None:
        # A variable that the launcher itself inherits proves nothing about its children.
        self._variables = [name.encode() for name in variables if name not in env]
        self._ranks = ranks
        self._read = [name.encode() for name in read]
        self._ready_file = None if ready_file is None else Path(ready_file)
        self._snapshots: dict[int, RankSnapshot] = {}
        self.files = ProgramFiles()
        """The files with the code of all ranks seen so far."""
        self._gap_s = RANKS_FIRST_LOOK_S
        self._is_settled = not (self._variables and ranks > 0)
        self.next_s: float | None = None if self._is_settled else RANKS_FIRST_LOOK_S
        """Seconds after the start at which to look again; None if enough was seen."""

    def look(self, root: int) -> None:
        """Take one look; about 0.1 ms per process of the tree."""
        if self._ready_file is None or exists(self._ready_file):
            now = self._look_now(root)
            complete = len(now) == self._ranks
            self._is_settled = complete and (self._ready_file is not None or now == self._snapshots)
            if complete or len(now) >= len(self._snapshots):
                self._snapshots = now
            if complete and self._ready_file is not None:
                with suppress(OSError):
                    Path(f"{self._ready_file}{LOOK_MARK}").touch()
        self.next_s = None if self._is_settled else (self.next_s or 0.0) + self._gap_s
        self._gap_s *= 2

    def result(self) -> tuple[RankSnapshot, ...] | None:
        """All ranks in order; None unless each was seen at least once."""
        if len(self._snapshots) != self._ranks or not self._ranks:
            return None
        return tuple(self._snapshots[rank] for rank in sorted(self._snapshots))

    def _look_now(self, root: int) -> dict[int, RankSnapshot]:
        processes: dict[int, list[int]] = {}
        for pid in process_tree.descendants(root):
            rank = self._rank_of(pid)
            if rank is not None:
                processes.setdefault(rank, []).append(pid)
        snapshots = {}
        programs: set[str] = set()
        for rank, pids in processes.items():
            pid = rank_process(pids)
            cpus = process_tree.affinity_of(pid)
            if cpus is not None:
                exe = process_tree.exe(pid)
                snapshots[rank] = RankSnapshot(rank, pid, cpus, exe, self._variables_of(pid))
                if exe and exe not in programs:  # All ranks of a program load the same libraries.
                    programs.add(exe)
                    self.files.look(pid)
        return snapshots

    def _variables_of(self, pid: int) -> dict[str, str]:
        env = process_tree.environ(pid) if self._read else {}
        return {n.decode(): env[n].decode(errors="replace") for n in self._read if n in env}

    def _rank_of(self, pid: int) -> int | None:
        env = process_tree.environ(pid)
        for name in self._variables:
            if env.get(name, b"").isdigit():
                return int(env[name])
        return None


def rank_process(pids: list[int]) -> int:
    """The actual rank among the processes with the same rank variable.

    Wrapper scripts are above it, its helpers below it. Take the innermost process that loaded MPI
    (else the innermost), then go up while the parent runs the same program file.
    """
    if len(pids) == 1:
        return pids[0]
    rank_pid = next((pid for pid in reversed(pids) if process_tree.maps_mpi(pid)), pids[-1])
    while (
        (parent := process_tree.parent_of(rank_pid)) in pids
        and parent is not None
        and process_tree.exe(parent) == process_tree.exe(rank_pid)
    ):
        rank_pid = parent
    return rank_pid


_LIBC = ctypes.CDLL(None, use_errno=True)
_IN_CLOSE_WRITE = 0x00000008
_EVENTS = 4096


class ReadyFile:
    """``fd`` becomes readable when a file in the directory of ``path`` has been written and closed.

    ``fd`` is None if the kernel has no more watches; then the next look finds the file.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self.fd: int | None = None
        fd = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if fd < 0:
            return
        if _LIBC.inotify_add_watch(fd, os.fsencode(self._path.parent), _IN_CLOSE_WRITE) < 0:
            os.close(fd)
            return
        self.fd = fd

    def is_written(self) -> bool:
        """Read the kernel's announcements; True if the file exists."""
        try:
            os.read(self.fd or 0, _EVENTS)
        except BlockingIOError:
            return False
        return exists(self._path)


LAUNCHER_LOOKS_S = 5.0
"""Seconds between looks at a launcher whose ranks have ended; later up to four times as many."""


class LauncherWatch:
    """Looks for a launcher that does not reap a process that it started, and has no rank left.

    PRRTE 3 sometimes waits for ever for ranks that failed in MPI_Init.
    """

    def __init__(self, variables: tuple[str, ...], env: dict[str, str]) -> None:
        self._variables = [name.encode() for name in variables if name not in env]
        self._dead: set[int] = set()
        self._gap_s = LAUNCHER_LOOKS_S
        self.next_s: float | None = LAUNCHER_LOOKS_S if self._variables else None
        """Seconds after the start at which to look again; None: never."""

    def look(self, root: int, launcher: int) -> bool:
        """Take one look; True if a process was dead in two looks, and no rank lives."""
        below = process_tree.descendants(root)
        alive = [pid for pid in below if process_tree.is_alive(pid)]
        dead = set(below).difference(alive, (launcher,))
        if dead and any(_has_rank(pid, self._variables) for pid in alive if pid != launcher):
            dead = set()
        hangs = bool(dead & self._dead) and launcher in alive
        self._dead = dead
        self._gap_s = LAUNCHER_LOOKS_S if dead else min(2 * self._gap_s, 4 * LAUNCHER_LOOKS_S)
        self.next_s = (self.next_s or 0.0) + self._gap_s
        return hangs


def _has_rank(pid: int, variables: list[bytes]) -> bool:
    """True if a process has a rank variable, which only the launcher sets."""
    env = process_tree.environ(pid)
    return any(env.get(name, b"").isdigit() for name in variables)


INPUT_FIRST_LOOK_S = 0.5
"""Looks are at 1, 2, 4, 8, ... times this many seconds after the start; two in a row must agree."""
_READ = {"x86_64": 0, "aarch64": 63, "ppc64le": 3, "riscv64": 63, "s390x": 3}.get(
    os.uname().machine, -1
)


class InputWatch:
    """Looks for a rank that waits in ``read`` on the launcher's pipe, or on ``fifo``.

    Such a rank used no CPU time between two looks, and only the launcher can write to its input.
    """

    def __init__(
        self, variables: tuple[str, ...], env: dict[str, str], fifo: str | None = None
    ) -> None:
        self._fifo = fifo
        self._variables = [name.encode() for name in variables if name not in env]
        self._before: dict[int, float] = {}
        self._gap_s = INPUT_FIRST_LOOK_S
        self.next_s: float | None = INPUT_FIRST_LOOK_S if self._variables and _READ >= 0 else None
        """Seconds after the start at which to look again; None: never."""

    def look(self, root: int, launcher: int) -> bool:
        """Take one look at all processes below ``root``; True if a rank waits in vain for input."""
        self.next_s = None if self.next_s is None else self.next_s + self._gap_s
        self._gap_s *= 2
        now: dict[int, float] = {}
        for pid in process_tree.descendants(root):
            if pid == launcher or not (_reads(pid) and _has_rank(pid, self._variables)):
                continue
            if _target(pid) == self._fifo or _shares_pipe(pid, self._starter(pid, launcher)):
                now[pid] = _cpu_ticks(pid)
        waits = any(self._before.get(pid) == ticks for pid, ticks in now.items())
        self._before = now
        return waits

    def _starter(self, pid: int, launcher: int) -> int:
        """The process that started the rank: the launcher, or its daemon on a node of a testbed."""
        parent = _parent(pid)
        while parent > 1 and parent != launcher and _has_rank(parent, self._variables):
            parent = _parent(parent)
        return parent if parent > 1 else launcher


def _reads(pid: int) -> bool:
    """True if the main thread is in ``read`` on descriptor 0."""
    words = read_proc(f"/proc/{pid}/syscall").split()
    return len(words) > 1 and words[0] == str(_READ).encode() and words[1] == b"0x0"


def _parent(pid: int) -> int:
    """Parent's process id; 0 if the process has ended."""
    stat = stat_fields(pid)
    return 0 if stat is None else int(stat[1][1])


def _shares_pipe(pid: int, launcher: int) -> bool:
    """True if descriptor 0 is a pipe whose other end the launcher holds."""
    own = _target(pid)
    if own is None or not own.startswith("pipe:"):
        return False
    try:
        theirs = [str(fd.readlink()) for fd in Path(f"/proc/{launcher}/fd").iterdir()]
    except OSError:
        return False
    return own in theirs


def _target(pid: int) -> str | None:
    """The file behind descriptor 0; None if it cannot be read."""
    try:
        return str(Path(f"/proc/{pid}/fd/0").readlink())
    except OSError:
        return None


def _cpu_ticks(pid: int) -> float:
    """User and system time in clock ticks; NaN, which equals nothing, if the process has ended."""
    stat = stat_fields(pid)
    return float("nan") if stat is None else float(stat[1][11]) + float(stat[1][12])
