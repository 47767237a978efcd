"""Convergence of a search: the best setting so far against runs and machine seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from autotune.measurement.run_history import CONFIRM, HistoryEntry
from autotune.space import DEFAULT, Setting


class MeasuredTrial(Protocol):
    """A trial of a study, from its store or in memory; ``estimate`` is T / T_default."""

    @property
    def number(self) -> int: ...
    @property
    def setting(self) -> Mapping[str, object]: ...
    @property
    def state(self) -> str: ...
    @property
    def estimate(self) -> float | None: ...


@dataclass(frozen=True)
class ConvergencePoint:
    """The best setting after ``runs`` search runs, which took ``machine_s`` seconds.

    ``ratio`` is its T / T_default as measured, before any proof; the default has 1.
    """

    runs: int
    machine_s: float
    ratio: float
    setting: Setting


def best_so_far(
    entries: Iterable[HistoryEntry], trials: Iterable[MeasuredTrial]
) -> list[ConvergencePoint]:
    """The best setting wherever it changes, from the default to the end of the search.

    All launches before the confirmation count: warm-ups, rejected runs and runs of the default,
    too. A trial counts from its last run on. Empty if no trial has a result.
    """
    results = {t.number: t for t in trials if t.state == "ok" and t.estimate is not None}
    ended: dict[int, tuple[int, float]] = {}
    runs, seconds = 0, 0.0
    for entry in entries:
        if entry.kind != CONFIRM:
            runs += 1
            seconds += entry.record.wall_s
        if entry.trial in results:
            ended[entry.trial] = runs, seconds
    if not ended:
        return []
    points = [ConvergencePoint(0, 0.0, 1.0, DEFAULT)]
    for number, (at_run, at_s) in sorted(ended.items(), key=lambda item: item[1]):
        trial = results[number]
        if trial.estimate is not None and trial.estimate < points[-1].ratio:
            points.append(ConvergencePoint(at_run, at_s, trial.estimate, Setting(trial.setting)))
    points.append(ConvergencePoint(runs, seconds, points[-1].ratio, points[-1].setting))
    return points
