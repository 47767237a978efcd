"""Statements about trials, each inside a transaction of the caller."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Insert,
    Row,
    and_,
    bindparam,
    func,
    insert,
    literal_column,
    or_,
    select,
    update,
)

from autotune.errors import UsageError
from autotune.store import schema as s
from autotune.store import studies
from autotune.store.dialect import Dialect
from autotune.store.model import (
    PRUNED,
    RUNNING,
    OwnerProcess,
    TrialDraft,
    TrialFigure,
    TrialRecord,
    Value,
)
from autotune.store.row_checks import all_rows, read_all
from autotune.store.text import clean, damaged_row, dump, load_object

_VALUES = frozenset({bool, int, float, str})
_DECODE = json.JSONDecoder().raw_decode
_OF_STUDY = s.trial.c.study_id == bindparam("of_study")
_NEXT = select(func.coalesce(func.max(s.trial.c.number) + 1, 0)).where(_OF_STUDY)
_INSERT_VALUES = insert(s.trial_value)
_OF_TRIAL = s.trial.c.id == bindparam("of_trial")
_SELECT_TO_CHANGE = select(s.trial).where(_OF_TRIAL).with_for_update()
_UPDATE = update(s.trial).where(_OF_TRIAL).returning(s.trial)
_OPENED = (
    select(s.trial.c.setting_hash)
    .where(_OF_STUDY, s.trial.c.setting_hash.in_(bindparam("hashes", expanding=True)))
    .where(s.trial.c.state != PRUNED)
)
_ENDED = and_(s.trial.c.id.in_(bindparam("running", expanding=True)), s.trial.c.state != RUNNING)
_SINCE = s.trial.c.number >= bindparam("since")
_NEWS = select(s.trial).where(_OF_STUDY, or_(_SINCE, _ENDED)).order_by(s.trial.c.number)
_NEWS_AND_RUNNING = (
    select(s.trial)
    .where(_OF_STUDY, or_(_SINCE, _ENDED, s.trial.c.state == RUNNING))
    .order_by(s.trial.c.number)
)


@cache
def _insert_at(now: str) -> Insert:
    """The statement that adds a trial; ``now`` is SQL for the time of its first heartbeat."""
    number = _NEXT.scalar_subquery()
    at: ColumnElement[float] = literal_column(now)
    return insert(s.trial).values(number=number, heartbeat_at=at).returning(s.trial)


def hash_of(setting_key: str) -> str:
    """The hash by which a setting is found; its key may be too long for an index entry."""
    return hashlib.sha256(setting_key.encode()).hexdigest()


def add(
    connection: Connection,
    dialect: Dialect,
    study_id: int,
    draft: TrialDraft,
    origin: str = "search",
) -> TrialRecord:
    """Add a running trial of this process; see :meth:`autotune.store.Store.add_trial`.

    The caller has locked the study.
    """
    key = clean(draft.key)
    row = connection.execute(
        _insert_at(dialect.now()),
        {
            "of_study": study_id,
            "study_id": study_id,
            "setting_hash": hash_of(key),
            "setting_key": key,
            "setting": dump(dict(draft.setting)),
            "origin": clean(origin),
            "state": RUNNING,
            "reason": "",
            "attrs": dump(dict(draft.attrs)),
            "created_at": studies.now(),
            **owner_columns(OwnerProcess.current()),
        },
    ).one()
    values = [{"trial_id": row.id, **_value_columns(n, v)} for n, v in draft.setting.items()]
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


def figures(connection: Connection, study_id: int) -> list[TrialFigure]:
    """The trials of a study in order, without their attributes."""
    columns = (s.trial.c.number, s.trial.c.setting_key, s.trial.c.state, s.trial.c.estimate)
    query = select(*columns).where(s.trial.c.study_id == study_id).order_by(s.trial.c.number)
    return list(map(TrialFigure._make, all_rows(connection, query)))


def settings(connection: Connection, study_id: int) -> dict[int, dict[str, Value]]:
    """The settings of the trials of a study, by the trials' ids."""
    query = select(s.trial.c.id, s.trial.c.setting).where(s.trial.c.study_id == study_id)
    return dict(read_all(connection, query, lambda row: (row.id, _setting(row.setting))))


def counts(connection: Connection, study_id: int) -> dict[str, int]:
    """Number of trials of a study by state."""
    query = select(s.trial.c.state, func.count()).where(s.trial.c.study_id == study_id)
    rows = connection.execute(query.group_by(s.trial.c.state).order_by(func.min(s.trial.c.number)))
    return {str(state): int(number) for state, number in rows}


def best(connection: Connection, study_id: int, most: int) -> list[TrialRecord]:
    """The trials with the smallest estimates among those that ended well, at most ``most``."""
    query = (
        select(s.trial)
        .where(s.trial.c.study_id == study_id, s.trial.c.state == "ok", s.trial.c.estimate > 0)
        .order_by(s.trial.c.estimate, s.trial.c.number)
        .limit(most)
    )
    return read_all(connection, query, to_trial)


def news(
    connection: Connection,
    study_id: int,
    since: int,
    running: Collection[int],
    with_running: bool,
) -> list[TrialRecord]:
    """Trials from the number ``since`` on, and those of ``running`` (ids) that have ended.

    ``with_running``: all trials that run as well.
    """
    query = _NEWS_AND_RUNNING if with_running else _NEWS
    values = {"of_study": study_id, "since": since, "running": list(running)}
    return read_all(connection, query.params(values), to_trial)


def first_free(
    connection: Connection, study_id: int, drafts: Sequence[TrialDraft], most: int | None
) -> TrialDraft | None:
    """The first setting without a trial; None if there is none, or if there are ``most`` trials.

    A trial that cheap runs stopped before full runs does not count: it may be run in full later.
    Locks the study, so that the answer stays true until the caller is done.
    """
    studies.lock(connection, study_id)
    if most is not None and connection.scalar(_NEXT, {"of_study": study_id}) >= most:
        return None
    hashes = [hash_of(clean(draft.key)) for draft in drafts]
    claims = set(connection.scalars(_OPENED, {"of_study": study_id, "hashes": hashes}))
    free = (draft for draft, hash_ in zip(drafts, hashes, strict=True) if hash_ not in claims)
    return next(free, None)


def left_over(
    running: Collection[TrialRecord],
    gone_hosts: Collection[str],
    over: Collection[int],
    is_restart: bool,
) -> list[TrialRecord]:
    """Of the ``running`` trials, those whose process has ended or whose lease is over.

    ``over``: ids of the latter. If this process has ``is_restart`` the study, its own running
    trials are included.
    """
    me = OwnerProcess.current()
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


def _setting(text: str) -> dict[str, Value]:
    """The setting in JSON text, which is no deeper than its values: it needs no look for that."""
    try:
        text = text.strip()  # The column of a damaged row may have no text.
        setting, end = _DECODE(text)
    except (ValueError, TypeError, AttributeError, RecursionError) as problem:
        raise damaged_row(f"{problem}") from None
    is_whole = end == len(text)
    if not (is_whole and isinstance(setting, dict) and set(map(type, setting.values())) <= _VALUES):
        raise damaged_row(f"its setting is {text!r:.80}")
    return setting


def to_trial(row: Row[Any]) -> TrialRecord:
    """A trial from its row; raises WorkError for JSON that autotune did not write."""
    setting = _setting(row.setting)
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
        attrs={} if row.attrs == "{}" else load_object(row.attrs),
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
