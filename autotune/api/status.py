"""The status of a study: what its workers do now."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

from autotune.errors import AutotuneError, WorkError
from autotune.store import Store, StudyRecord, StudySummary, WorkerRecord
from autotune.store.model import NEW
from autotune.study.result import FINISH, FINISHED, Result
from autotune.study.screening_summary import stored_summary

DAMAGED = "damaged"


def state_of(store: Store, study: StudyRecord) -> dict[str, Any]:
    """Workers, trials and progress of the study (``autotune-status-1``), in JSON types."""
    now = store.get_study(study.id)
    trials = store.trials(study.id)
    clock, lost_trials = store.clock(), store.lost_trials(study.id)
    running = [
        {
            "trial": t.number,
            "setting": t.setting,
            "host": t.owner.host,
            "pid": t.owner.pid,
            "seen_s": None if not t.heartbeat_at else round(max(clock - t.heartbeat_at, 0.0), 1),
            "alive": t.id not in lost_trials,
        }
        for t in trials
        if t.state == "running"
    ]
    done = [t for t in trials if t.estimate is not None and t.state == "ok"]
    best = min(done, key=lambda t: t.estimate or 1.0, default=None)
    workers = store.workers(study.id)
    proving = store.role_holder(study.id, FINISH)
    lost = [_worker(w) for w in workers if w.is_lost]
    return {
        "schema": "autotune-status-1",
        "study": now.hash[:12],
        "status": _status(now, running, len(lost) < len(workers), proving is not None),
        "result": _result(now),
        "workers": [_worker(w) for w in workers if not w.is_lost],
        "lost": lost,
        "joinable": now.request is not None,
        "guard": now.key.has_guard,
        "trials": dict(Counter(t.state for t in trials)),
        "running": running,
        "proving": proving,
        "fidelity": stored_summary(store, now),
        "best": None if best is None else {"ratio": best.estimate, "setting": best.setting},
        "runs_by_place": store.run_counts(study.id, "place"),
    }


def expired_publications() -> list[dict[str, Any]]:
    """The user's published files that have expired, each with its ``words`` and ``commands``."""
    from autotune.publish.published_files import published

    try:
        if not published():
            return []
    except AutotuneError:
        return []  # verify-published says what is wrong with the list.
    # The import of the formats takes a while, and most users have published nothing.
    from autotune.publish.verify import expired_files

    return [{"words": one.words, **one.to_json()} for one in expired_files()]


def as_now(store: Store, line: StudySummary) -> StudySummary:
    """A line of the list of studies; the status "new" is replaced by what its workers do now.

    A study of which a row is damaged has the status "damaged"; another command on it says why.
    """
    if line.status != NEW:
        return line
    try:
        found = state_of(store, store.get_study(line.id))
    except WorkError:
        return dataclasses.replace(line, status=DAMAGED)
    return dataclasses.replace(line, status=str(found["status"]))


def _status(study: StudyRecord, running: list[dict[str, Any]], workers: bool, proving: bool) -> str:
    """What the study does now, if anything; else how it ended.

    The failure of one worker is not that of the study while other workers go on.
    """
    if study.status in FINISHED:
        return study.status
    if proving:
        return "proving"
    return "searching" if workers or any(row["alive"] for row in running) else study.status


def _result(study: StudyRecord) -> dict[str, Any] | None:
    """The result of a search, if any: its status, the recommended setting, and its gain."""
    if study.result is None or study.status not in FINISHED:
        return None
    if "recommended" not in study.result:
        return None
    answer = Result.from_json(study.result)
    return {
        "status": answer.status,
        "recommended": answer.recommended.to_json(),
        "gain": answer.gain,
        "gain_ci95": None if answer.gain_ci is None else list(answer.gain_ci),
    }


def _worker(worker: WorkerRecord) -> dict[str, Any]:
    return {
        "host": worker.owner.host,
        "pid": worker.owner.pid,
        "seen_s": round(worker.seen_s, 1),
    }
