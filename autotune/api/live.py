"""What a study does now: its phase, the best setting so far with its noise, and the time left."""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import asdict
from typing import Any

from autotune.api.status import StudyStatus, state_of
from autotune.errors import AutotuneError
from autotune.measurement.budget import SearchPlan
from autotune.measurement.run_history import (
    CONFIRM,
    DEFAULT_PHASE,
    RACE,
    SEARCH,
    WARMUP,
    RunHistory,
    history_of,
)
from autotune.space import Setting
from autotune.store import OwnerProcess, Store, StudyRecord
from autotune.store.leases import LEASE_S
from autotune.study.study_status import FINISHED, SESSION
from autotune.wording import count, percent, remaining, seconds, short_setting
from runner.types import finite

PHASES = {
    WARMUP: "warming up",
    DEFAULT_PHASE: "measuring the default",
    SEARCH: "searching",
    RACE: "measuring the best settings again",
    CONFIRM: "proving: the best settings against the default, in pairs",
}
RECENT_RUNS = 20
"""Number of last runs whose median tells how long a run takes."""
ALMOST_ALL = 1.96
"""Standard deviations that contain 95 % of the values."""


def live_state(store: Store, study: StudyRecord) -> dict[str, Any]:
    """The progress of a study (``autotune-live-1``), in JSON types; ``words`` are for people.

    ``best`` has the ratio T / T_default of the fastest setting so far with its noise band: the
    range of 95 % of medians of so many runs, from the scatter of the default's neighbouring runs.
    It is no proof. ``left_s`` are seconds, None if they cannot be told; ``progress`` is a fraction.
    """
    state = state_of(store, study)
    session = store.last_document(study.id, SESSION) or {}
    history = history_of(store, study.id)
    active = is_active(store, study, state)
    phase = history.entries[-1].kind if history.entries else ""
    best = _best(state, history)
    trial_count = sum(n for kind, n in state.trials.items() if kind != "running")
    left_s, left, progress = (
        _left(session, history, trial_count, phase) if active else (None, "", None)
    )
    phase_words = PHASES.get(phase, "starting") if active else str(state.status).replace("_", " ")
    words = {
        "phase": phase_words,
        "trials": _of(trial_count, session.get("trials"), "setting"),
        "runs": _of(len(history.entries), session.get("max_runs"), "run"),
        "best": _best_words(best),
        "left": left or "-",
        "rejected": count(history.rejected, "run"),
        "fresh": _fresh(history),
    }
    return {
        "schema": "autotune-live-1",
        "study": study.hash[:12],
        "status": state.status,
        "active": active,
        "phase": phase,
        "trials": trial_count,
        "runs": len(history.entries),
        "best": best,
        "left_s": left_s,
        "done": progress,
        "workers": [asdict(row) for row in state.workers],
        "running": [asdict(row) for row in state.running],
        "words": words,
    }


def is_active(store: Store, study: StudyRecord, state: StudyStatus) -> bool:
    """Whether a process works on the study, as far as this machine can tell; reads no history."""
    if state.status in FINISHED:
        return False
    if state.status in ("searching", "proving", "waiting"):
        return True
    session = store.last_document(study.id, SESSION) or {}
    try:
        owner = OwnerProcess(**session["owner"])
        if owner.host == OwnerProcess.current().host:
            return not owner.surely_dead()
    except (KeyError, TypeError):
        pass  # Not a search, or none that has begun to measure.
    last_run = store.last_run(study.id)
    if last_run is None:
        return False
    last = last_run.record
    end_at = last.started_at + last.wall_s
    return time.time() - end_at < LEASE_S + 3 * last.wall_s


def _best(state: StudyStatus, history: RunHistory) -> dict[str, Any] | None:
    best = state.best
    if best is None:
        return None
    key = _key(best.setting)
    ratios = [
        ratio
        for entry in history.entries
        if entry.key == key and entry.counts and entry.record.valid
        if (ratio := history.ratio(entry)) is not None
    ]
    variance, steps = history.default_scatter()
    band = None
    if ratios and steps >= 2:
        wide = math.exp(ALMOST_ALL * math.sqrt(variance / len(ratios)))
        band = [finite(best.ratio / wide), finite(best.ratio * wide)]
    return {**asdict(best), "runs": len(ratios), "band": band}


def _key(values: dict[str, Any]) -> str:
    try:
        return Setting(values).key
    except AutotuneError:
        return ""  # Somebody else wrote it: it has no runs that count.


def _best_words(best: dict[str, Any] | None) -> str:
    if best is None:
        return "none yet"
    ratio, band = best["ratio"], best["band"]
    if ratio is None or ratio <= 0:
        return "none yet"
    text = f"{percent(1 / ratio - 1)} against the default"
    if band is not None and all(band):
        text += f", noise band {percent(1 / band[1] - 1)} .. {percent(1 / band[0] - 1)}"
    return f"{text}; not proven: {short_setting(best['setting'])}"


def _left(
    session: dict[str, Any], history: RunHistory, trial_count: int, phase: str
) -> tuple[float | None, str, float | None]:
    """Seconds left, in words too, and the part that is done: by the nearest of the bounds."""
    trials, budget, runs = (session.get(k) for k in ("trials", "budget_s", "max_runs"))
    if not history.entries:
        return None, "not known before the first runs", None
    run_s = statistics.median(e.record.wall_s for e in history.entries[-RECENT_RUNS:])
    bounds: list[tuple[float, float]] = []
    if budget:
        left = max(budget - history.launched_s, 0.0)
        bounds.append((left, history.launched_s / budget))
    if runs:
        bounds.append((max(runs - len(history.entries), 0) * run_s, len(history.entries) / runs))
    if bounds:
        left, progress = min(bounds)
        return left, f"at most {remaining(left)}", min(progress, 1.0)
    if not trials:
        return None, "not known: the search has no bound that was stored", None
    plan = SearchPlan()
    proof_s = plan.proof_runs(plan.finalists) * run_s
    if phase == CONFIRM:
        confirmation_s = history.confirmation_runs * run_s
        left = max(proof_s - confirmation_s, run_s)
        return left, f"about {remaining(left)}; the proof ends when it is decided", None
    each = history.launched_s / max(trial_count, 1)
    left = max(trials - trial_count, 0) * each + proof_s
    whole = history.launched_s + left
    return left, f"about {remaining(left)}, with the proof", history.launched_s / whole


def _of(number: int, total: object, thing: str) -> str:
    if isinstance(total, int):
        return f"{number} of {count(total, thing)}"
    return count(number, thing)


def _fresh(history: RunHistory) -> str:
    if not history.entries:
        return "no run yet"
    last = history.entries[-1].record
    ago = time.time() - last.started_at - last.wall_s
    return f"last run ended {seconds(max(ago, 0.0))} ago" if math.isfinite(ago) else ""
