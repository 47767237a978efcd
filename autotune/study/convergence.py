"""Convergence of a search: the best setting so far against runs and machine seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from autotune.measurement.run_history import CONFIRM
from autotune.space import DEFAULT, Setting


class SearchRun(Protocol):
    """A run of a study, from its store or in memory; ``kind`` is its phase without the round."""

    @property
    def trial(self) -> int | None: ...
    @property
    def kind(self) -> str: ...
    @property
    def wall_s(self) -> float: ...


class TrialRatio(Protocol):
    """A trial of a study, from its store or in memory; ``estimate`` is T / T_default."""

    @property
    def number(self) -> int: ...
    @property
    def state(self) -> str: ...
    @property
    def estimate(self) -> float | None: ...


class MeasuredTrial(TrialRatio, Protocol):
    """The same with its setting."""

    @property
    def setting(self) -> Mapping[str, object]: ...


OfTrial = TypeVar("OfTrial", bound=TrialRatio)


@dataclass(frozen=True)
class Improvement(Generic[OfTrial]):
    """The best trial after ``runs`` search runs, which took ``machine_s`` seconds.

    ``ratio`` is its T / T_default as measured, before any proof; without a trial it is the default,
    which has 1.
    """

    runs: int
    machine_s: float
    ratio: float
    trial: OfTrial | None


@dataclass(frozen=True)
class ConvergencePoint:
    """An improvement with its setting."""

    runs: int
    machine_s: float
    ratio: float
    setting: Setting


def best_so_far(
    entries: Iterable[SearchRun], trials: Iterable[MeasuredTrial]
) -> list[ConvergencePoint]:
    """The best setting wherever it changes, as :func:`improvements`."""
    return [
        ConvergencePoint(
            p.runs, p.machine_s, p.ratio, DEFAULT if p.trial is None else Setting(p.trial.setting)
        )
        for p in improvements(entries, trials)
    ]


def improvements(
    entries: Iterable[SearchRun], trials: Iterable[OfTrial]
) -> list[Improvement[OfTrial]]:
    """The best trial wherever it changes, from the default to the end of the search.

    All launches before the confirmation count: warm-ups, rejected runs and runs of the default,
    too. A trial counts from its last run on. Empty if no trial has a result.
    """
    results = {t.number: t for t in trials if t.state == "ok" and t.estimate is not None}
    ended: dict[int, tuple[int, float]] = {}
    runs, seconds = 0, 0.0
    for entry in entries:
        if entry.kind != CONFIRM:
            runs += 1
            seconds += entry.wall_s
        if entry.trial in results:
            ended[entry.trial] = runs, seconds
    if not ended:
        return []
    points: list[Improvement[OfTrial]] = [Improvement(0, 0.0, 1.0, None)]
    for number, (at_run, at_s) in sorted(ended.items(), key=lambda item: item[1][0]):
        trial = results[number]
        if trial.estimate is not None and trial.estimate < points[-1].ratio:
            points.append(Improvement(at_run, at_s, trial.estimate, trial))
    points.append(Improvement(runs, seconds, points[-1].ratio, points[-1].trial))
    return points
