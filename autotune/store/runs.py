"""Statements about runs, each inside a transaction of the caller.

They add and list runs; :mod:`autotune.store.run_columns` counts them. A run refers to its outcome
of read-back (:mod:`autotune.store.read_backs`); its record stands in columns
(:mod:`autotune.store.record_columns`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    and_,
    bindparam,
    case,
    func,
    insert,
    or_,
    select,
    true,
)

from autotune.errors import UsageError
from autotune.store import schema as s
from autotune.store import studies
from autotune.store.model import DEFAULT_KEY, StoredRun
from autotune.store.printed import apply_change, printed_of, store_lines
from autotune.store.read_backs import keep_read_back, read_back_of
from autotune.store.record_columns import (
    DETAILS,
    OUTPUT,
    PRINTED_COLUMNS,
    Rows,
    storable,
    to_columns,
)
from autotune.store.row_checks import all_rows, pause_collection, refuse
from autotune.store.text import DamagedRow, canonical, clean, load_object
from autotune.store.trials import hash_of, unknown_trial
from runner.types import RunRecord

NativeSetting = Mapping[str, Mapping[str, str]]
_PAGE = 1000
"""Runs that are read at once by :func:`read_through`."""
# Every measurement adds a run, so its statements are built once.
_OF_STUDY = s.run.c.study_id == bindparam("of_study")
_NEXT = select(func.coalesce(func.max(s.run.c.number) + 1, 0)).where(_OF_STUDY).scalar_subquery()
_REQUESTED_NUMBER = bindparam("wanted", type_=Integer)
_NUMBER = case((_NEXT > _REQUESTED_NUMBER, _NEXT), else_=_REQUESTED_NUMBER)
_INSERT = insert(s.run).values(number=_NUMBER).returning(s.run.c.id)
_PLACE = (
    *("id", "study_id", "trial_id", "trial", "number"),
    *("setting_key", "launched", "phase", "block", "position"),
)
"""Columns of a stored run, in the order of its fields."""
_KEY_OF_TRIAL = select(s.trial.c.setting_key).where(s.trial.c.id == bindparam("trial"))


def add(
    connection: Connection,
    study_id: int,
    trial_id: int | None,
    phase: str,
    block: int | None,
    position: int | None,
    record: RunRecord,
    setting_key: str | None,
    order: int | None,
    native_setting: NativeSetting | None,
) -> int:
    """Store one run and return its id; see :meth:`autotune.store.Store.add_run`."""
    studies.lock(connection, study_id)
    key = _setting_key(connection, trial_id, setting_key)
    record = storable(record)
    printed_id, printed_change = store_lines(connection, study_id, record.printed)
    result = connection.execute(
        _INSERT,
        {
            "study_id": study_id,
            "trial_id": trial_id,
            "of_study": study_id,
            "wanted": -1 if order is None else order,
            "setting_hash": hash_of(key),
            "setting_key": key,
            "launched": None if native_setting is None else _native_text(native_setting),
            "phase": clean(phase),
            "block": block,
            "position": position,
            **to_columns(record),
            "read_back_id": keep_read_back(connection, record.read_back),
            "printed_id": printed_id,
            "printed_change": printed_change,
        },
    )
    return int(result.scalar_one())


def _setting_key(connection: Connection, trial_id: int | None, own_key: str | None) -> str:
    """The key of the launched setting: the given one, else the trial's, else the default's."""
    if own_key is not None:
        return clean(own_key)
    if trial_id is None:
        return DEFAULT_KEY
    trial_key = connection.scalar(_KEY_OF_TRIAL, {"trial": trial_id})
    if trial_key is None:
        raise unknown_trial(trial_id)
    return str(trial_key)


def _native_text(native_setting: NativeSetting) -> str:
    return canonical({target: dict(values) for target, values in native_setting.items() if values})


def listing(
    connection: Connection,
    study_id: int,
    trial_id: int | None,
    setting_key: str | None,
    phases: Collection[str] | None,
    states: Collection[str] | None,
    after: int | None = None,
    brief: bool = False,
    output: bool = True,
) -> list[StoredRun]:
    """Runs of a study that meet the conditions; see :meth:`autotune.store.Store.runs`."""
    conditions: list[ColumnElement[bool]] = [s.run.c.study_id == study_id]
    if trial_id is not None:
        conditions.append(s.run.c.trial_id == trial_id)
    if setting_key is not None:
        conditions.append(s.run.c.setting_hash == hash_of(clean(setting_key)))
    if after is not None:
        conditions.append(s.run.c.number > after)
    if phases is not None:
        conditions.append(of_phase(phases))
    if states is not None:
        conditions.append(s.run.c.state.in_(states))
    return _load(connection, conditions, brief, output)


def page_conditions(
    connection: Connection, study_id: int, size: int
) -> Iterator[ColumnElement[bool]]:
    """The conditions of the runs of a study in order, at most ``size`` runs for each."""
    number = s.run.c.number
    ends = select(number).where(s.run.c.study_id == study_id).order_by(number)
    ends = ends.offset(size - 1).limit(1)
    page: ColumnElement[bool] = true()
    while (end := connection.scalar(ends.where(page))) is not None:
        yield and_(page, number <= end)
        page = number > end
    yield page  # It may have no runs.


def known_runs(
    connection: Connection,
    context: str,
    setting_key: str,
    other_than: int | None,
    native_setting: NativeSetting | None,
) -> list[StoredRun]:
    """Runs of a setting in other studies; see :meth:`autotune.store.Store.known_runs`."""
    conditions: list[ColumnElement[bool]] = [
        s.run.c.study_id.in_(select(s.study.c.id).where(s.study.c.context_hash == context)),
        s.run.c.setting_hash == hash_of(clean(setting_key)),
    ]
    if other_than is not None:
        conditions.append(s.run.c.study_id != other_than)
    if native_setting is not None:
        conditions.append(s.run.c.launched == _native_text(native_setting))
    return _load(connection, conditions)


def page(connection: Connection, study_id: int, first: int, size: int) -> list[StoredRun]:
    """At most ``size`` runs of a study in order from the position ``first`` on, without output."""
    numbers = connection.scalars(
        select(s.run.c.number)
        .where(s.run.c.study_id == study_id)
        .order_by(s.run.c.number)
        .offset(first)
        .limit(size)
    ).all()
    if not numbers:
        return []
    ends = s.run.c.number.between(numbers[0], numbers[-1])
    in_page = [s.run.c.study_id == study_id, ends]
    return _load(connection, in_page, brief=True)


def read_through(connection: Connection, study_id: int) -> None:
    """Read all runs of a study with everything stored of them, a page at a time.

    A damaged row is left out or raises, as the store of the connection does.
    """
    for of_page in page_conditions(connection, study_id, _PAGE):
        _load(connection, [s.run.c.study_id == study_id, of_page])


def one(connection: Connection, study_id: int, order: int) -> StoredRun:
    """One run with everything stored of it; raises UsageError if it does not exist."""
    matches = _load(connection, [s.run.c.study_id == study_id, s.run.c.number == order])
    if not matches:
        raise UsageError(
            f"this study has no run {order}; its page lists the runs", code="store.row_unknown"
        )
    return matches[0]


def of_phase(phases: Collection[str]) -> ColumnElement[bool]:
    """The condition for these phases; "confirm" includes rounds such as "confirm:r1"."""
    column = s.run.c.phase
    rounds = [column.startswith(f"{phase}:", autoescape=True) for phase in phases]
    return or_(column.in_(phases), *rounds)


def _load(
    connection: Connection,
    conditions: list[ColumnElement[bool]],
    brief: bool = False,
    output: bool = True,
) -> list[StoredRun]:
    source = s.run.outerjoin(s.trial, s.trial.c.id == s.run.c.trial_id)
    left_out = (
        *((*DETAILS, *PRINTED_COLUMNS) if brief else ()),
        *(OUTPUT if brief or not output else ()),
    )
    run_columns = [column for column in s.run.c if column.name not in left_out]
    query = select(*run_columns, s.trial.c.number.label("trial")).select_from(source)
    query = query.where(*conditions)
    names = list(query.selected_columns.keys())
    place, back = itemgetter(*map(names.index, _PLACE)), names.index("read_back_id")
    order = itemgetter(names.index("study_id"), names.index("number"))
    records = Rows(names)
    with pause_collection():
        # All rows are fetched at once, since each row would cost a driver call. They are sorted
        # here: if SQLite sorts, it reads a whole study in order to find one setting.
        rows = sorted(all_rows(connection, query, optional=("trial",)), key=order)
        # Queried last: the outcome of a run that another worker stores meanwhile then exists, too.
        outcomes = {} if brief else read_back_of(connection, conditions)
        lists = {} if brief else printed_of(connection, conditions)
        own = None if brief else itemgetter(*map(names.index, PRINTED_COLUMNS))
        runs = []
        for row in rows:
            try:
                run = _to_run(place(row), records(row, outcomes.get(row[back], {})))
                list_id, change = (None, None) if own is None else own(row)
                if list_id in lists:
                    run.record.printed = apply_change(lists[list_id], change)
            except DamagedRow as problem:
                refuse(connection, query, row, problem)
            else:
                runs.append(run)
        return runs


def _to_run(place: Sequence[Any], record: RunRecord) -> StoredRun:
    number, study, trial_id, trial, order, key, text_, phase, block, position = place
    native_setting = None if text_ is None else load_object(text_)
    return StoredRun(
        number, study, trial_id, trial, order, key, native_setting, phase, block, position, record
    )
