"""What readers ask of the runs of a study, without a record for each: columns, counts, medians."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Integer,
    Row,
    Select,
    String,
    and_,
    case,
    func,
    select,
)

from autotune.store import schema as s
from autotune.store.model import WARMUP, BestRuns, CourseRun, HostRuns, StoredRun
from autotune.store.read_backs import read_back_of, read_back_texts
from autotune.store.record_columns import COLUMNS, OUTPUT
from autotune.store.row_checks import all_columns, all_rows, pause_collection, refuse
from autotune.store.runs import listing, of_phase, page_conditions
from autotune.store.text import clean
from autotune.store.trials import hash_of
from runner.types import ReadBack

PAGE = 10_000
"""Runs that are read at once."""
_KEYS_PER_QUERY = 500
_LAST = 10
"""Runs among which the last one is looked for: some may be damaged."""


def tables(
    connection: Connection, study_id: int, output: bool
) -> Iterator[dict[str, Sequence[Any]]]:
    """The runs of a study in order, column by column, with ``read_back`` as JSON text.

    Each item has up to :data:`PAGE` runs. ``output``: include the programs' output, by far the
    largest part. No records are created, because a study may have a hundred thousand runs.
    """
    of_study = s.run.c.study_id == study_id
    record_columns = [name for name in COLUMNS if output or name not in OUTPUT]
    selection = {
        "id": s.run.c.id,
        "run": s.run.c.number,
        "trial": s.trial.c.number,
        "setting": s.run.c.setting_key,
        **{name: s.run.c[name] for name in ("phase", "block", "position", *record_columns)},
        "trial_id": s.run.c.trial_id,
        "read_back": s.run.c.read_back_id,
    }
    query = select(*(column.label(name) for name, column in selection.items())).select_from(
        s.run.outerjoin(s.trial, s.trial.c.id == s.run.c.trial_id)
    )
    texts: dict[Any, str] = {None: "{}"}
    for of_page in page_conditions(connection, study_id, PAGE):
        # Sorted by the index that finds the page.
        page = query.where(of_study, of_page).order_by(s.run.c.number)
        values = all_columns(connection, page, optional=("trial",))
        columns: dict[str, Sequence[Any]] = dict(zip(selection, values, strict=True))
        if not columns.pop("id"):
            continue
        new = set(columns["read_back"]) - texts.keys()
        texts.update(read_back_texts(connection, sorted(new)))
        columns["read_back"] = [texts[number] for number in columns["read_back"]]
        yield columns


def column_kinds(output: bool) -> dict[str, str]:
    """The columns of :func:`tables` for a reader, with their pandas types."""
    kinds = {"run": "int64", "trial": "Int64", "setting": "str", "phase": "str"}
    kinds |= {"block": "Int64", "position": "Int64"}
    for name in COLUMNS:
        if output or name not in OUTPUT:
            kinds[name] = _pandas_type(s.run.c[name])
    return kinds | {"read_back": "str"}


def _pandas_type(column: Column[Any]) -> str:
    if isinstance(column.type, Boolean):
        return "boolean" if column.nullable else "bool"
    if isinstance(column.type, Integer):
        return "Int64"
    return "str" if isinstance(column.type, String) else "float64"


def counts(connection: Connection, study_id: int, by: str) -> dict[str, int]:
    """Number of runs of a study by "state", "phase" or "place", the largest number first."""
    column: ColumnElement[str] = s.run.c.phase if by == "phase" else s.run.c.state
    if by == "place":
        column = func.coalesce(func.nullif(s.run.c.place, ""), s.run.c.host)
    query = select(column, func.count()).where(s.run.c.study_id == study_id).group_by(column)
    rows = [(str(name), int(count)) for name, count in connection.execute(query)]
    return dict(sorted(rows, key=lambda row: (-row[1], row[0])))


def read_back_states(connection: Connection, study_id: int) -> dict[str, set[str]]:
    """The states in which the valid runs of a study read each parameter back."""
    outcomes = select(s.run.c.read_back_id).where(*_valid(study_id))
    query = (
        select(s.read_back_value.c.name, s.read_back_value.c.state)
        .where(s.read_back_value.c.read_back_id.in_(outcomes))
        .distinct()
    )
    states: dict[str, set[str]] = defaultdict(set)
    for row in all_rows(connection, query):
        states[row.name].add(row.state)
    return states


def course(connection: Connection, study_id: int) -> list[CourseRun]:
    """All runs of a study in order."""
    columns = (s.run.c.id, s.trial.c.number.label("trial"), s.run.c.phase, s.run.c.wall_s)
    source = s.run.outerjoin(s.trial, s.trial.c.id == s.run.c.trial_id)
    query = select(*columns).select_from(source).where(s.run.c.study_id == study_id)
    query = query.order_by(s.run.c.number)
    with pause_collection():
        _, trials, phases, walls = all_columns(connection, query, optional=("trial",))
        seconds = [math.nan if wall is None else wall for wall in walls]
        return list(map(CourseRun, trials, phases, seconds))


def hosts(connection: Connection, study_id: int) -> list[HostRuns]:
    """The hosts of a study, in alphabetical order, with their runs."""
    counts = and_(s.run.c.state == "ok", ~of_phase([WARMUP]))
    is_loaded = s.run.c.foreign_cpu_s > s.run.c.foreign_limit_s
    numbers = [func.count(case((which, 1))) for which in (counts, and_(counts, is_loaded))]
    query = select(s.run.c.host, *numbers).where(s.run.c.study_id == study_id)
    rows = all_rows(connection, query.group_by(s.run.c.host))
    return [HostRuns(host, runs, loaded) for host, runs, loaded in sorted(map(tuple, rows))]


def values(connection: Connection, study_id: int, setting_key: str) -> dict[str, list[float]]:
    """Seconds of the valid runs of a setting, by phase."""
    query = select(s.run.c.id, s.run.c.phase, s.run.c.value_s).where(
        *_valid(study_id), s.run.c.setting_hash == hash_of(clean(setting_key))
    )
    by_phase: dict[str, list[float]] = defaultdict(list)
    for row in _times(connection, query):
        by_phase[row.phase].append(row.value_s)
    return by_phase


def last(connection: Connection, study_id: int, state: str | None) -> StoredRun | None:
    """The run of a study with the largest number, without its output; None if there is none.

    ``state``: only runs in this state.
    """
    query = select(s.run.c.id, s.run.c.number).where(s.run.c.study_id == study_id)
    if state is not None:
        query = query.where(s.run.c.state == state)
    rows = all_rows(connection, query.order_by(s.run.c.number.desc()).limit(_LAST))
    if not rows:
        return None
    states, after = None if state is None else [state], rows[0].number - 1
    runs = listing(connection, study_id, None, None, None, states, after, brief=True)
    return runs[-1] if runs else None


def read_backs(
    connection: Connection, study_id: int, setting_key: str
) -> list[dict[str, ReadBack]]:
    """The different outcomes of the valid runs of a setting, in the order of their last runs."""
    conditions = [*_valid(study_id), s.run.c.setting_hash == hash_of(clean(setting_key))]
    query = select(s.run.c.read_back_id).where(*conditions).group_by(s.run.c.read_back_id)
    outcomes = read_back_of(connection, conditions)
    return [
        outcomes[number]
        for number in connection.scalars(query.order_by(func.max(s.run.c.number)))
        if number in outcomes
    ]


def _valid(study_id: int) -> list[ColumnElement[bool]]:
    return [s.run.c.study_id == study_id, s.run.c.state == "ok"]


def _times(connection: Connection, query: Select[Any]) -> Iterator[Row[Any]]:
    """The rows of valid runs whose ``value_s`` is a time."""
    for row in all_rows(connection, query.where(s.run.c.value_s.is_not(None))):
        if row.value_s <= 0:
            words = f"value_s is {row.value_s}, expected a positive number"
            refuse(connection, query, row, words)
        elif math.isfinite(row.value_s):
            yield row


def best(
    connection: Connection, study_id: int, limit: int, phases: Collection[str] | None
) -> list[BestRuns]:
    """Settings by the median of their valid runs; of equal ones, the one with more runs first."""
    query = select(s.run.c.id, s.run.c.setting_hash, s.run.c.value_s).where(
        *_valid(study_id), ~of_phase([WARMUP]) if phases is None else of_phase(phases)
    )
    values: dict[str, list[float]] = defaultdict(list)
    for row in _times(connection, query):
        values[row.setting_hash].append(row.value_s)
    ranking = sorted((statistics.median(v), -len(v), setting) for setting, v in values.items())
    ranking = ranking[:limit]
    keys = _keys(connection, study_id, [setting for _, _, setting in ranking])
    # The row with the key of a setting may be damaged.
    readable = [one for one in ranking if one[2] in keys]
    return [BestRuns(keys[setting], median, -count) for median, count, setting in readable]


def _keys(connection: Connection, study_id: int, hashes: list[str]) -> dict[str, str]:
    """The keys of these hashes; with many of them those of the whole study are read."""
    query = select(s.run.c.setting_hash, s.run.c.setting_key).where(*_valid(study_id)).distinct()
    if len(hashes) <= _KEYS_PER_QUERY:  # The number of bound values is limited.
        query = query.where(s.run.c.setting_hash.in_(hashes))
    return {row.setting_hash: row.setting_key for row in all_rows(connection, query)}
