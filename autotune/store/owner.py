"""Which process holds a trial, and whether it still lives."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_DEAD = frozenset("ZX")
"""A zombie runs no more; where nobody waits for it, it stays in the table for ever."""


@dataclass(frozen=True)
class Process:
    """A process, named so that no later one is taken for it.

    ``scope`` is the boot and the namespace that ``pid`` counts in, ``start`` the clock tick since
    that boot at which the process began.
    """

    host: str
    scope: str
    pid: int
    start: int

    @classmethod
    def here(cls) -> Process:
        """The calling process (asked anew each time: a fork changes the answer)."""
        pid = os.getpid()
        return cls(_host(), _scope(), pid, _start(pid) or 0)

    def surely_dead(self) -> bool:
        """True where this machine can tell that it ended; False too where nobody can tell."""
        if self.scope == _scope():
            return _start(self.pid) != self.start
        boot, here = self.scope.partition("/")[0], _scope().partition("/")[0]
        return self.host == _host() and boot != here  # this machine was restarted


@cache
def _host() -> str:
    """The name that this process began with: what it holds stays its own where that is changed."""
    return socket.gethostname()


def _scope() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"


def _start(pid: int) -> int | None:
    """Start of a living process; None where there is none.  Field 22 of proc(5) stat."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = line.rpartition(")")[2].split()  # the name before it may hold blanks and parentheses
    return None if fields[0] in _DEAD else int(fields[19])
