"""Events of a study for watchers; a watcher displays them and never decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from autotune.measurement.run_history import HistoryEntry
from autotune.notes import Note, Say
from autotune.space import Setting


@dataclass(frozen=True)
class RunStarted:
    """A launch starts; ``phase`` is the phase of the run history."""

    setting: Setting
    phase: str


@dataclass(frozen=True)
class RunEnded:
    """A launch has ended."""

    entry: HistoryEntry
    setting: Setting
    ratio: float | None


@dataclass(frozen=True)
class DefaultMeasured:
    """The first runs of the default have ended: ``values_s`` are their times in seconds, ``run_s``
    is what a launch costs in seconds of wall time."""

    values_s: tuple[float, ...]
    run_s: float


@dataclass(frozen=True)
class TrialEnded:
    """A trial has ended.

    ``best`` is the best estimated ratio T / T_default so far, None as long as there is none.
    ``band`` is the interval that the noise of single runs gives it
    (:func:`autotune.stats.noise_band`), None if that is not known.
    """

    number: int
    setting: Setting
    state: str
    estimate: float | None
    best: float | None
    best_setting: Setting | None
    reused: bool
    band: tuple[float, float] | None = None


@dataclass(frozen=True)
class PhaseStarted:
    """A part of the study starts; ``runs`` is the number of planned launches, None if not known."""

    name: str
    words: str
    runs: int | None = None


@dataclass(frozen=True)
class Waiting:
    """The machine is busy: the study pauses until it is quiet, or gives up."""

    words: str


Event = RunStarted | RunEnded | DefaultMeasured | TrialEnded | PhaseStarted | Waiting | Note
Watcher = Callable[[Event], None]


def notes_to(say: Say) -> Watcher:
    """A watcher that passes the notes on and ignores all other events."""

    def watch(event: Event) -> None:
        if isinstance(event, Note):
            say(event)

    return watch


def silent(event: Event) -> None:
    """A watcher that does nothing."""
