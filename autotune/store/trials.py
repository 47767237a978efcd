"""Statements about trials, each inside a transaction of the caller."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, insert, select, update

from autotune.errors import UsageError
from autotune.store import schema as s
from autotune.store import studies
from autotune.store.model import PRUNED, RUNNING, OwnerProcess, TrialRecord, Value
from autotune.store.row_checks import read_all
from autotune.store.text import clean, damaged_row, dump, load_object

_OF_STUDY = s.trial.c.study_id == bindparam("of_study")
_NEXT = select(func.coalesce(func.max(s.trial.c.number) + 1, 0)).where(_OF_STUDY)
_INSERT = insert(s.trial).values(number=_NEXT.scalar_subquery()).returning(s.trial)
_INSERT_VALUES = insert(s.trial_value)
_OF_TRIAL = s.trial.c.id == bindparam("of_trial")
_SELECT_TO_CHANGE = select(s.trial).where(_OF_TRIAL).with_for_update()
_UPDATE = update(s.trial).where(_OF_TRIAL).returning(s.trial)


def hash_of(setting_key: str) -> str:
    """The hash by which a setting is found; its key may be too long for an index entry."""
    return hashlib.sha256(setting_key.encode()).hexdigest()


def add(
    connection: Connection,
    study_id: int,
    setting: Mapping[str, Value],
    key: str,
    attrs: Mapping[str, Any],
    origin: str,
    heartbeat_at: float,
) -> TrialRecord:
    """Add a running trial of this process; see :meth:`autotune.store.Store.add_trial`."""
    studies.lock(connection, study_id)
    key = clean(key)
    row = connection.execute(
        _INSERT,
        {
            "of_study": study_id,
            "study_id": study_id,
            "setting_hash": hash_of(key),
            "setting_key": key,
            "setting": dump(dict(setting)),
            "origin": clean(origin),
            "state": RUNNING,
            "reason": "",
            "attrs": dump(dict(attrs)),
            "created_at": studies.now(),
            "heartbeat_at": heartbeat_at,
            **owner_columns(OwnerProcess.current()),
        },
    ).one()
    values = [{"trial_id": row.id, **_value_columns(n, v)} for n, v in setting.items()]
    if values:
        connection.execute(_INSERT_VALUES, values)
    return to_trial(row)


def owner_columns(owner: OwnerProcess) -> dict[str, Any]:
    """Column values of the process that owns a trial."""
    return {
        "owner_host": clean(owner.host),
        "owner_scope": owner.scope,
        "owner_pid": owner.pid,
        "owner_start": owner.start,
    }


def _value_columns(name: str, value: Value) -> dict[str, Any]:
    """The value as text, and as a number so that SQL compares 8192 and 65536 as numbers."""
    number: float | None = None
    if not isinstance(value, str):
        try:
            number = float(value)
        except OverflowError:
            number = None
    return {"name": clean(name), "value": clean(str(value)), "number": number}


def finish(
    connection: Connection,
    trial_id: int,
    state: str,
    estimate: float | None,
    attrs: Mapping[str, Any] | None,
    reason: str,
) -> TrialRecord:
    """Set the state and estimate of a trial; see :meth:`autotune.store.Store.finish_trial`."""
    row = connection.execute(_SELECT_TO_CHANGE, {"of_trial": trial_id}).first()
    if row is None:
        raise unknown_trial(trial_id)
    new_attrs = load_object(row.attrs) | dict(attrs or {})
    if estimate is not None and math.isnan(estimate):
        estimate = None
    result = connection.execute(
        _UPDATE,
        {
            "of_trial": trial_id,
            "state": clean(state),
            "estimate": estimate,
            "reason": clean(reason),
            "attrs": dump(new_attrs),
            "finished_at": None if state == RUNNING else studies.now(),
        },
    )
    return to_trial(result.one())


def unknown_trial(trial_id: int) -> UsageError:
    """The error for a trial that does not exist."""
    return UsageError(
        f"no trial with the id {trial_id} in this results database", code="store.row_unknown"
    )


def listing(
    connection: Connection, study_id: int, since: int = 0, state: str | None = None
) -> list[TrialRecord]:
    """Trials of a study from the number ``since`` on, in order; ``state`` selects one state."""
    of_study = select(s.trial).where(s.trial.c.study_id == study_id, s.trial.c.number >= since)
    query = of_study if state is None else of_study.where(s.trial.c.state == state)
    return read_all(connection, query.order_by(s.trial.c.number), to_trial)


def may_open(connection: Connection, study_id: int, key: str, most: int | None) -> bool:
    """True if a setting has no trial yet and there are fewer than ``most`` trials.

    A trial that cheap runs stopped before full runs does not count: it may be run in full later.
    Locks the study, so that the answer stays true until the caller is done.
    """
    studies.lock(connection, study_id)
    if most is not None and connection.scalar(_NEXT, {"of_study": study_id}) >= most:
        return False
    same = s.trial.c.setting_hash == hash_of(clean(key))
    trials_of_setting = select(s.trial.c.id).where(s.trial.c.study_id == study_id, same)
    query = trials_of_setting.where(s.trial.c.state != PRUNED).limit(1)
    return connection.scalar(query) is None


def left_over(
    connection: Connection,
    study_id: int,
    gone_hosts: Collection[str],
    over: Collection[int],
    is_restart: bool,
) -> list[TrialRecord]:
    """Running trials whose process has ended or whose lease is over (``over``: their ids).

    If this process has ``is_restart`` the study, its own running trials are included.
    """
    me = OwnerProcess.current()
    running = listing(connection, study_id, state=RUNNING)
    # Every worker queries this at every trial, so each owner is looked up once.
    dead = {owner for owner in {trial.owner for trial in running} if owner.surely_dead()}

    def left(trial: TrialRecord) -> bool:
        owner = trial.owner
        mine = owner == me and is_restart
        is_expired = owner != me and trial.id in over
        return mine or owner.host in gone_hosts or owner in dead or is_expired

    return [t for t in running if left(t)]


def take_over(connection: Connection, trials: list[TrialRecord], now: float) -> list[TrialRecord]:
    """Make this process the owner of running trials; a new lease begins with it."""
    own_trials = []
    for trial in trials:
        values = {**owner_columns(OwnerProcess.current()), "heartbeat_at": now}
        statement = update(s.trial).where(s.trial.c.id == trial.id).values(**values)
        own_trials.append(to_trial(connection.execute(statement.returning(s.trial)).one()))
    return own_trials


def to_trial(row: Row[Any]) -> TrialRecord:
    """A trial from its row; raises WorkError for JSON that autotune did not write."""
    setting = load_object(row.setting)
    if not all(isinstance(value, int | float | str) for value in setting.values()):
        raise damaged_row(f"its setting is {row.setting!r:.80}")
    return TrialRecord(
        id=row.id,
        study_id=row.study_id,
        number=row.number,
        key=row.setting_key,
        setting=setting,
        origin=row.origin,
        state=row.state,
        # SQLite's RETURNING yields an integer even for a column of real numbers.
        estimate=None if row.estimate is None else float(row.estimate),
        reason=row.reason,
        attrs=load_object(row.attrs),
        created_at=row.created_at,
        finished_at=row.finished_at,
        owner=OwnerProcess(row.owner_host, row.owner_scope, row.owner_pid, row.owner_start),
        heartbeat_at=row.heartbeat_at,
    )


def studies_with(connection: Connection, names: Collection[str]) -> list[int]:
    """Ids of the studies with a trial whose setting names one of these parameters, newest first."""
    query = (
        select(s.trial.c.study_id)
        .join(s.trial_value, s.trial_value.c.trial_id == s.trial.c.id)
        .where(s.trial_value.c.name.in_(sorted(names)))
        .distinct()
        .order_by(s.trial.c.study_id.desc())
    )
    return list(connection.scalars(query))
