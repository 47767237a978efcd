"""What a study tells whoever watches it; a watcher draws, it never decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from autotune.space import Setting
from autotune.study.run_history import HistoryEntry


@dataclass(frozen=True)
class RunStarted:
    """A launch begins; ``phase`` as in the run history."""

    setting: Setting
    phase: str


@dataclass(frozen=True)
class RunEnded:
    entry: HistoryEntry
    setting: Setting
    ratio: float | None


@dataclass(frozen=True)
class TrialEnded:
    """``best`` is the best estimated ratio T / T_default so far, None while there is none."""

    number: int
    setting: Setting
    state: str
    estimate: float | None
    best: float | None
    best_setting: Setting | None
    reused: bool


@dataclass(frozen=True)
class PhaseStarted:
    """A part of the study begins; ``runs`` is how many launches it plans, None where unknown."""

    name: str
    words: str
    runs: int | None = None


@dataclass(frozen=True)
class Waiting:
    """The machine is busy: the study pauses until it is quiet, or gives up."""

    words: str


@dataclass(frozen=True)
class Note:
    """Something that is said once."""

    words: str


Event = RunStarted | RunEnded | TrialEnded | PhaseStarted | Waiting | Note
Watcher = Callable[[Event], None]


def silent(event: Event) -> None:
    """A watcher that does nothing."""
