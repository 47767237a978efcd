"""What the store hands out: plain, immutable, independent of the database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from autotune.store.keys import StudyKey
from autotune.store.owner import Process
from runner.types import RunRecord

Value = int | float | str
DEFAULT_KEY = "default"
RUNNING = "running"
"""State of a trial that is being measured; every other state means that it ended."""
WARMUP = "warmup"
NEW = "new"
"""Status of a study without a result."""


@dataclass(frozen=True)
class Study:
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
class Trial:
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
    owner: Process
    heartbeat_at: float | None = None
    """When its worker was last seen, by the database's clock; None: no lease is kept."""


@dataclass(frozen=True)
class Worker:
    """A process that takes part in a study; ``lost``: it ended without a word, or was not seen for
    as long as a lease lasts."""

    owner: Process
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
class Best:
    """A setting by its valid runs: the median of the figure that counts and how many there are."""

    key: str
    median_s: float
    runs: int
