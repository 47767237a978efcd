"""The status of a study: what its workers do now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from autotune.errors import AutotuneError, WorkError
from autotune.json_types import Ends, Number, ValuesByName
from autotune.store import Store, StudyRecord, StudySummary, WorkerRecord
from autotune.store.model import NEW
from autotune.study.screening_summary import ScreeningSummary, stored_summary
from autotune.study.study_status import FINISH, FINISHED

DAMAGE = "damaged"


@dataclass(frozen=True, kw_only=True)
class SearchAnswer:
    """The answer of a finished search."""

    status: str
    recommended: ValuesByName
    gain: Number | None
    gain_ci95: Ends | None


@dataclass(frozen=True, kw_only=True)
class WorkerState:
    """A worker, and how long ago it was seen, in seconds."""

    host: str
    pid: int
    seen_s: float
    state: Literal["measuring", "waiting_for_lock"]
    """Whether it has its machine, or waits for the machine lock."""


@dataclass(frozen=True, kw_only=True)
class RunningTrial:
    """A trial that is measured now, and its worker."""

    trial: int
    setting: ValuesByName
    host: str
    pid: int
    seen_s: float | None
    alive: bool


@dataclass(frozen=True, kw_only=True)
class BestSoFar:
    """The best setting so far, not proven."""

    ratio: Number
    """Time divided by that of the default."""
    setting: ValuesByName


@dataclass(frozen=True, kw_only=True)
class ExpiredPublication:
    """A published file that has expired, with the commands for it."""

    words: str
    path: str
    family: str
    proven_with: str
    installed: str
    commands: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class StudyStatus:
    """What the workers of a study do now."""

    schema: Literal["autotune-status-1"] = "autotune-status-1"
    study: str
    status: str
    result: SearchAnswer | None
    """Answer of a finished search."""
    workers: list[WorkerState]
    """Workers that live."""
    lost: list[WorkerState]
    """Workers that do not answer."""
    joinable: bool
    """Whether other workers can take part."""
    guard: bool
    trials: dict[str, int]
    """Number of trials by state."""
    running: list[RunningTrial]
    """Trials that are measured now."""
    proving: str | None
    """Worker that runs the proof."""
    fidelity: ScreeningSummary | None
    """What cheap runs cost and saved; null without them."""
    best: BestSoFar | None
    """Best setting so far, not proven."""
    runs_by_place: dict[str, int]
    expired: Sequence[ExpiredPublication] = ()
    """Published files that have expired."""


MaybeStatus = StudyStatus | None


def state_of(store: Store, study: StudyRecord) -> StudyStatus:
    """Workers, trials and progress of the study; nothing is said of published files."""
    now = store.get_study(study.id)
    clock, lost_trials = store.clock(), store.lost_trials(study.id)
    running = [
        RunningTrial(
            trial=t.number,
            setting=t.setting,
            host=t.owner.host,
            pid=t.owner.pid,
            seen_s=None if not t.heartbeat_at else round(max(clock - t.heartbeat_at, 0.0), 1),
            alive=t.id not in lost_trials,
        )
        for t in store.running_trials(study.id)
    ]
    best = next(iter(store.best_trials(study.id, 1)), None)
    workers = store.workers(study.id)
    proving = store.role_holder(study.id, FINISH)
    lost_workers = [_worker(w) for w in workers if w.is_lost]
    living_workers = [_worker(w) for w in workers if not w.is_lost]
    return StudyStatus(
        study=now.hash[:12],
        status=_status(
            now,
            proving is not None,
            lambda: workers,
            lambda: any(row.alive for row in running),
        ),
        result=_result(now),
        workers=living_workers,
        lost=lost_workers,
        joinable=now.request is not None,
        guard=now.key.has_guard,
        trials=store.trial_counts(study.id),
        running=running,
        proving=proving,
        fidelity=stored_summary(store, now),
        best=None
        if best is None or best.estimate is None
        else BestSoFar(ratio=best.estimate, setting=best.setting),
        runs_by_place=store.run_counts(study.id, "place"),
    )


def expired_publications() -> list[ExpiredPublication]:
    """The user's published files that have expired."""
    from autotune.publish.published_files import published

    try:
        if not published():
            return []
    except AutotuneError:
        return []  # verify-published says what is wrong with the list.
    # The import of the formats takes a while, and most users have published nothing.
    from autotune.publish.verify import expired_files

    return [ExpiredPublication(words=one.words, **one.to_json()) for one in expired_files()]


def as_now(store: Store, line: StudySummary) -> StudySummary:
    """A line of the list of studies; the status "new" is replaced by what its workers do now.

    A study of which a row is damaged has the status "damaged"; another command on it says why.
    """
    if line.status != NEW:
        return line
    try:
        status = _status_now(store, store.get_study(line.id))
    except WorkError:
        status = DAMAGE
    return replace(line, status=status)


def _status_now(store: Store, study: StudyRecord) -> str:
    """What the study does now; it asks for no more than it needs, since a list has many studies."""

    def has_trial() -> bool:
        lost = store.lost_trials(study.id)
        return any(trial.id not in lost for trial in store.running_trials(study.id))

    proving = store.role_holder(study.id, FINISH) is not None
    return _status(study, proving, lambda: store.workers(study.id), has_trial)


def _status(
    study: StudyRecord,
    proving: bool,
    workers: Callable[[], Sequence[WorkerRecord]],
    has_trial: Callable[[], bool],
) -> str:
    """What the study does now, if anything; else how it ended.

    The failure of one worker is not that of the study while other workers go on.
    """
    if study.status in FINISHED:
        return study.status
    if proving:
        return "proving"
    living = [worker for worker in workers() if not worker.is_lost]
    if any(not worker.is_waiting for worker in living) or has_trial():
        return "searching"
    return "waiting" if living else study.status


def _result(study: StudyRecord) -> SearchAnswer | None:
    """The result of a search, if any: its status, the recommended setting, and its gain."""
    if study.result is None or study.status not in FINISHED:
        return None
    if "recommended" not in study.result:
        return None
    # A study without an answer needs no models of results.
    from autotune.study.search_result import Result

    answer = Result.from_json(study.result)
    return SearchAnswer(
        status=answer.status,
        recommended=answer.recommended.to_json(),
        gain=answer.gain,
        gain_ci95=answer.gain_ci,
    )


def _worker(worker: WorkerRecord) -> WorkerState:
    owner = worker.owner
    return WorkerState(
        host=owner.host,
        pid=owner.pid,
        seen_s=round(worker.seen_s, 1),
        state="waiting_for_lock" if worker.is_waiting else "measuring",
    )
