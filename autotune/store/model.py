"""Records that the store returns: plain, immutable, independent of the database.

:class:`OwnerProcess` identifies the process that owns a trial and checks if it is alive.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from autotune.store.keys import StudyKey
from runner.types import RunRecord

Value = int | float | str
DEFAULT_KEY = "default"
RUNNING = "running"
"""State of a trial that is being measured; in every other state the trial has ended."""
PRUNED = "pruned"
"""State of a trial that was stopped by its cheap runs, before full runs; it has no estimate."""
WARMUP = "warmup"
NEW = "new"
"""Status of a study without a result."""
MOVED = "moved"
"""Status of a study that continues elsewhere; its result names the study that is measured."""


@dataclass(frozen=True)
class StudyRecord:
    """A study; ``status`` is "new" until a result is stored, and ``result`` is the stored JSON."""

    id: int
    hash: str
    context: str
    key: StudyKey
    status: str
    result: dict[str, Any] | None
    created_at: str
    tool_version: str
    request: dict[str, Any] | None = None
    """The JSON from which a worker starts (``autotune worker``)."""


@dataclass(frozen=True)
class StudySummary:
    """One line of a list of studies; ``trials`` and ``runs`` count everything stored."""

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
    metric: str | None = None
    verify: str | None = None
    recommended: dict[str, Any] | None = None
    """The recommended setting, empty for the default; None without an answer."""
    terms: Mapping[str, Any] = field(default_factory=dict)
    """Options of the strategy and conditions of its key together."""


@dataclass(frozen=True)
class TrialDraft:
    """A trial that a process would open: its setting, and the attributes (JSON) to store."""

    setting: Mapping[str, Value]
    key: str
    attrs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TrialRecord:
    """A setting in a study; ``number`` counts from 0 without gaps, and ``owner`` measures it."""

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
    """When its process was last seen, by the database's clock; None if it was never renewed."""


class TrialFigure(NamedTuple):
    """A trial without its attributes and its owner: what a table or a drawing needs of it."""

    number: int
    key: str
    state: str
    estimate: float | None


class CourseRun(NamedTuple):
    """A run in the course of a study: what a drawing of the search needs of it."""

    trial: int | None
    phase: str
    wall_s: float
    """NaN if unknown."""

    @property
    def kind(self) -> str:
        """The phase without its round."""
        return kind_of(self.phase)


@cache
def kind_of(phase: str) -> str:
    """A phase without its round: there are a few, asked for each of a hundred thousand runs."""
    return phase.partition(":")[0]


@dataclass(frozen=True)
class HostRuns:
    """The valid runs of a study on a host that are no warm-ups."""

    host: str
    runs: int
    loaded: int
    """Those in which other programs used more of the machine than the guard tolerates."""


@dataclass(frozen=True)
class WorkerRecord:
    """A process that takes part in a study.

    ``is_lost``: the process ended without leaving, or was not seen for a whole lease
    (:mod:`autotune.store.leases`).
    """

    owner: OwnerProcess
    seen_s: float
    """Seconds since the process was last seen, by the database's clock."""
    is_lost: bool
    is_waiting: bool = False
    """Whether the process waits for its machine and has not measured yet."""


@dataclass(frozen=True)
class StoredRun:
    """One run and its place; ``order`` rises over a study's runs, and ``trial`` is a number."""

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
    """The valid runs of a setting: their number, and the median of the figure that counts."""

    key: str
    """The setting."""
    median_s: float
    runs: int


_DEAD = frozenset("ZX")
"""States of an ended process; a zombie that nobody waits for stays in the table."""


@dataclass(frozen=True)
class OwnerProcess:
    """A process, identified so that no later process is taken for it.

    ``scope`` is the boot and the namespace in which ``pid`` counts. ``start`` is the clock tick
    since that boot at which the process began.
    """

    host: str
    scope: str
    pid: int
    start: int

    @classmethod
    def current(cls) -> OwnerProcess:
        """The calling process; determined again after a fork, which changes the result."""
        return cls(*_current())

    def surely_alive(self) -> bool:
        """True if this machine knows that the process is alive; False also if nobody knows."""
        return self.scope == _scope() and _start(self.pid) == self.start

    def surely_dead(self) -> bool:
        """True if this machine knows that the process has ended; False also if nobody knows."""
        if self.scope == _scope():
            return _start(self.pid) != self.start
        boot, own_boot = self.scope.partition("/")[0], _scope().partition("/")[0]
        return self.host == _host() and boot != own_boot  # this machine was restarted


@cache
def _current() -> tuple[str, str, int, int]:
    pid = os.getpid()
    return _host(), _scope(), pid, _start(pid) or 0


os.register_at_fork(after_in_child=_current.cache_clear)


@cache
def _host() -> str:
    """The host name at the start of this process; later changes do not affect ownership."""
    return socket.gethostname()


@cache
def _scope() -> str:
    """The boot and the process namespace in which a process id means something."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"


os.register_at_fork(after_in_child=_scope.cache_clear)


def _start(pid: int) -> int | None:
    """Start of a living process (field 22 of proc(5) stat); None if it does not exist."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = line.rpartition(")")[2].split()  # the name may hold blanks and ()
    return None if fields[0] in _DEAD else int(fields[19])
