"""A study as an Optuna storage, for optuna-dashboard and Optuna's plots."""

from __future__ import annotations

import statistics
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import optuna
from optuna.distributions import CategoricalDistribution
from optuna.exceptions import StorageInternalError
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy import event

from autotune.store.model import PRUNED, RUNNING, StoredRun, TrialRecord, Value
from autotune.store.text import clean

if TYPE_CHECKING:
    from autotune.store.store import Store


def write_optuna(store: Store, study_id: int, path: Path) -> None:
    """Write ``path``, a new file: one study, minimised; a trial's value is its median in seconds.

    Every parameter is categorical over the values that the study tried; None means unset. A trial
    without a valid run is FAIL, or PRUNED if it was stopped early. Raises OSError if writing fails.
    """
    study = store.get_study(study_id)
    trials = store.trials(study_id)
    runs: dict[int, list[StoredRun]] = defaultdict(list)
    for run in store.runs(study_id):
        if run.trial_id is not None:
            runs[run.trial_id].append(run)
    distributions = _distributions(trials)
    frozen_trials = [_frozen_trial(trial, runs[trial.id], distributions) for trial in trials]
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = _storage(path)
    try:
        name = clean(f"{study.key.app.name} {study.hash[:12]}")
        target = optuna.create_study(storage=storage, study_name=name, direction="minimize")
        target.set_user_attr("autotune_study", study.hash)
        target.set_user_attr("strategy", clean(study.key.strategy))
        target.set_user_attr("metric", "seconds, median of the valid runs")
        target.add_trials(frozen_trials)
    except StorageInternalError as error:
        raise OSError(str(error)) from error
    finally:
        storage.engine.dispose()
        optuna.logging.set_verbosity(verbosity)


def _storage(path: Path) -> optuna.storages.RDBStorage:
    """The new storage; Optuna commits every row, so the caller flushes the complete file once."""
    storage = optuna.storages.RDBStorage(f"sqlite:///{path}")
    event.listen(storage.engine, "connect", _do_not_flush)
    storage.engine.dispose()
    return storage


def _do_not_flush(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute("PRAGMA journal_mode=MEMORY")


def _distributions(trials: list[TrialRecord]) -> dict[str, CategoricalDistribution]:
    """The choices of each parameter; Optuna demands the same ones in every trial.

    They are all tried values, numbers before text.
    """
    names = sorted({name for trial in trials for name in trial.setting})
    distributions = {}
    for name in names:
        values: set[Value] = {trial.setting[name] for trial in trials if name in trial.setting}
        choices = sorted(values, key=lambda v: (isinstance(v, str), v))
        distributions[name] = CategoricalDistribution([None, *choices])
    return distributions


def _frozen_trial(
    trial: TrialRecord, runs: list[StoredRun], distributions: dict[str, CategoricalDistribution]
) -> FrozenTrial:
    values = [run.record.value_s for run in runs if run.record.valid]
    state = _state(trial, runs, bool(values))
    complete = state == TrialState.COMPLETE
    fate = {  # one attribute: each costs Optuna some milliseconds per trial
        "state": trial.state,
        "reason": trial.reason,
        "estimate": trial.estimate,
        "values_s": values,
        "run_states": [run.record.state for run in runs],
    }
    return FrozenTrial(
        number=trial.number,
        trial_id=trial.number,
        state=state,
        value=statistics.median(values) if complete else None,
        datetime_start=_time(trial.created_at),
        datetime_complete=_time(trial.finished_at or trial.created_at)
        if state.is_finished()
        else None,
        params={name: trial.setting.get(name) for name in distributions},
        distributions=dict(distributions),
        user_attrs={"setting": trial.key, "origin": trial.origin, "autotune": fate},
        system_attrs={},
        intermediate_values={},
    )


def _state(trial: TrialRecord, runs: list[StoredRun], has_values: bool) -> TrialState:
    if trial.state == RUNNING:
        return TrialState.RUNNING
    if has_values:
        return TrialState.COMPLETE
    was_stopped = trial.state == PRUNED or any(run.record.state == "timeout" for run in runs)
    return TrialState.PRUNED if was_stopped else TrialState.FAIL


def _time(text: str) -> datetime:
    """The time without a zone: Optuna stores local times."""
    return datetime.fromisoformat(text).astimezone().replace(tzinfo=None)
