"""Whether a rank waits for standard input that can never come: seen from outside, through /proc.

Without an input the launcher's own standard input is /dev/null.  Most launchers hand its end to
rank 0; PRRTE (Open MPI 5) keeps the pipe to it open for ever, and a program that reads hangs.
"""

from __future__ import annotations

import platform
from pathlib import Path

from runner.guard import read_proc, stat_fields
from runner.supervise import _procfs

FIRST_LOOK_S = 0.5
"""Looks are at 1, 2, 4, 8, ... times this after the start; two in a row must find the same."""
_READ = {"x86_64": 0, "aarch64": 63, "ppc64le": 3, "riscv64": 63, "s390x": 3}.get(
    platform.machine(), -1
)


class InputWatch:
    """Looks for a rank that sits in ``read`` on the launcher's pipe, or on ``fifo``.

    Such a rank used no CPU time between two looks, and nobody but the launcher could write to it.
    """

    def __init__(
        self, variables: tuple[str, ...], env: dict[str, str], fifo: str | None = None
    ) -> None:
        self._fifo = fifo
        self._variables = [name.encode() for name in variables if name not in env]
        self._before: dict[int, float] = {}
        self._gap_s = FIRST_LOOK_S
        self.next_s: float | None = FIRST_LOOK_S if self._variables and _READ >= 0 else None
        """Seconds after the start at which to look again; None: never."""

    def look(self, root: int, launcher: int) -> bool:
        """Take one look at everything below ``root``; True where a rank waits in vain."""
        self.next_s = None if self.next_s is None else self.next_s + self._gap_s
        self._gap_s *= 2
        now: dict[int, float] = {}
        for pid in _procfs.descendants(root):
            if pid == launcher or not (_reads(pid) and self._is_rank(pid)):
                continue
            if _target(pid) == self._fifo or _shared(pid, self._starter(pid, launcher)):
                now[pid] = _cpu_ticks(pid)
        waits = any(self._before.get(pid) == ticks for pid, ticks in now.items())
        self._before = now
        return waits

    def _starter(self, pid: int, launcher: int) -> int:
        """Who started the rank: the launcher, or its daemon on a node that this machine makes."""
        parent = _parent(pid)
        while parent > 1 and parent != launcher and self._is_rank(parent):
            parent = _parent(parent)
        return parent if parent > 1 else launcher

    def _is_rank(self, pid: int) -> bool:
        env = _procfs.environ(pid)
        return any(env.get(name, b"").isdigit() for name in self._variables)


def _reads(pid: int) -> bool:
    """Whether the main thread is in ``read`` on descriptor 0."""
    words = read_proc(f"/proc/{pid}/syscall").split()
    return len(words) > 1 and words[0] == str(_READ).encode() and words[1] == b"0x0"


def _parent(pid: int) -> int:
    """0 where the process is gone."""
    found = stat_fields(pid)
    return 0 if found is None else int(found[1][1])


def _shared(pid: int, launcher: int) -> bool:
    """Whether descriptor 0 is a pipe that the launcher holds the other end of."""
    own = _target(pid)
    if own is None or not own.startswith("pipe:"):
        return False
    try:
        theirs = [str(fd.readlink()) for fd in Path(f"/proc/{launcher}/fd").iterdir()]
    except OSError:
        return False
    return own in theirs


def _target(pid: int) -> str | None:
    """What descriptor 0 is; None where that cannot be seen."""
    try:
        return str(Path(f"/proc/{pid}/fd/0").readlink())
    except OSError:
        return None


def _cpu_ticks(pid: int) -> float:
    """User and system time in clock ticks; NaN, which equals nothing, for one that is gone."""
    found = stat_fields(pid)
    return float("nan") if found is None else float(found[1][11]) + float(found[1][12])
