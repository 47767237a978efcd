"""What the store hands out: plain, immutable, independent of the database.

Which process holds a trial, and whether it still lives.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from autotune.store.keys import StudyKey
from runner.types import RunRecord

Value = int | float | str
DEFAULT_KEY = "default"
RUNNING = "running"
"""State of a trial that is being measured; every other state means that it ended."""
WARMUP = "warmup"
NEW = "new"
"""Status of a study without a result."""


@dataclass(frozen=True)
class StudyRecord:
    """``status`` is "new" until a result was stored; ``result`` is the JSON that was given."""

    id: int
    hash: str
    context: str
    key: StudyKey
    status: str
    result: dict[str, Any] | None
    created_at: str
    tool_version: str
    request: dict[str, Any] | None = None
    """What a worker begins with (``autotune worker``)."""


@dataclass(frozen=True)
class StudySummary:
    """One line of a list.  ``trials`` and ``runs`` count everything stored."""

    id: int
    hash: str
    app: str
    argv: tuple[str, ...]
    ranks: int
    mpi: str
    cluster: str
    space: str
    strategy: str
    seed: int
    status: str
    created_at: str
    trials: int
    runs: int


@dataclass(frozen=True)
class TrialRecord:
    """A setting in a study.  ``number`` counts from 0 without gaps; ``owner`` measures it."""

    id: int
    study_id: int
    number: int
    key: str
    setting: dict[str, Value]
    origin: str
    state: str
    estimate: float | None
    reason: str
    attrs: dict[str, Any]
    created_at: str
    finished_at: str | None
    owner: OwnerProcess
    heartbeat_at: float | None = None
    """When its worker was last seen, by the database's clock; None: no lease is kept."""


@dataclass(frozen=True)
class WorkerRecord:
    """A process that takes part in a study; ``lost``: it ended without a word, or was not seen for
    as long as a lease lasts."""

    owner: OwnerProcess
    seen_s: float
    """Seconds since it was last seen, by the database's clock."""
    lost: bool


@dataclass(frozen=True)
class StoredRun:
    """One run and its place.  ``order`` rises over the runs of a study; ``trial`` is a number."""

    id: int
    study_id: int
    trial_id: int | None
    trial: int | None
    order: int
    setting_key: str
    launched: dict[str, dict[str, str]] | None
    phase: str
    block: int | None
    position: int | None
    record: RunRecord


@dataclass(frozen=True)
class BestRuns:
    """A setting by its valid runs: the median of the figure that counts and how many there are."""

    key: str
    median_s: float
    runs: int


_DEAD = frozenset("ZX")
"""A zombie runs no more; where nobody waits for it, it stays in the table for ever."""


@dataclass(frozen=True)
class OwnerProcess:
    """A process, named so that no later one is taken for it.

    ``scope`` is the boot and the namespace that ``pid`` counts in, ``start`` the clock tick since
    that boot at which the process began.
    """

    host: str
    scope: str
    pid: int
    start: int

    @classmethod
    def here(cls) -> OwnerProcess:
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
