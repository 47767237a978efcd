"""Statements about studies, each inside a transaction of the caller."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    Connection,
    Row,
    ScalarSelect,
    Select,
    Table,
    and_,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from autotune.errors import UsageError, WorkError
from autotune.store import schema as s
from autotune.store.keys import NOISE, SCREENING, AppInfo, MachineInfo, MpiInfo, StudyKey
from autotune.store.model import MOVED, NEW, StudyRecord, StudySummary
from autotune.store.row_checks import all_rows, read_all, read_first
from autotune.store.text import DamagedRow, clean, damaged_row, dump, load, load_object
from autotune.wording import whole_number

_MIN_PREFIX = 4
_LIST_LENGTH = 8
_IDS_PER_QUERY = 500
"""The number of bound values of a statement is limited."""
_HASH = re.compile(r"[0-9a-f]{64}")
_LOCK = select(s.study.c.id).where(s.study.c.id == bindparam("wanted")).with_for_update()


def now() -> str:
    """The present time, ISO 8601 in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _tool_version() -> str:
    try:
        return importlib.metadata.version(s.PRODUCT)
    except importlib.metadata.PackageNotFoundError:  # run from a checkout
        return "unknown"


def get_or_create(connection: Connection, key: StudyKey) -> StudyRecord:
    """The study of ``key``, created if new; the caller must hold the lock."""
    existing = read_first(connection, select(s.study).where(s.study.c.hash == key.hash))
    if existing is not None:
        return to_study(existing)
    texts = {
        name: clean(getattr(key, name))
        for name in ("cluster", "cluster_hash", "space_name", "space_hash", "strategy")
    }
    jsons = {
        name: dump(dict(getattr(key, name)))
        for name in ("strategy_options", "inherited", "conditions")
    }
    row = connection.execute(
        insert(s.study)
        .values(
            hash=key.hash,
            context_hash=key.context,
            app_id=_part(connection, s.app, key.app),
            machine_id=_part(connection, s.machine, key.machine),
            mpi_id=_part(connection, s.mpi, key.mpi),
            ranks=key.ranks,
            seed=key.seed,
            key=key.to_json(),
            status=NEW,
            created_at=now(),
            tool_version=_tool_version(),
            **texts,
            **jsons,
        )
        .returning(s.study)
    ).one()
    return to_study(row)


def _part(connection: Connection, table: Table, part: AppInfo | MachineInfo | MpiInfo) -> int:
    """Id of the row that describes an app, machine or MPI; the row is created if new."""
    part_id = connection.scalar(select(table.c.id).where(table.c.hash == part.hash))
    if part_id is not None:
        return int(part_id)
    values: dict[str, Any] = {}
    for name, value in dataclasses.asdict(part).items():
        if isinstance(value, tuple):
            values[name] = dump(list(value))
        else:
            values[name] = clean(value) if isinstance(value, str) else value
    result = connection.execute(
        insert(table).values(hash=part.hash, **values).returning(table.c.id)
    )
    return int(result.scalar_one())


def to_study(row: Row[Any]) -> StudyRecord:
    """A study from its row; raises WorkError for a row that autotune did not write."""
    try:
        if not (isinstance(row.hash, str) and _HASH.fullmatch(row.hash)):
            raise ValueError(f"its hash is {row.hash!r:.80}")  # Files are named by the hash.
        result, request = load(row.result), load(row.request)
        if not (isinstance(result, dict | None) and isinstance(request, dict | None)):
            raise TypeError("its result or its request is no object")
        return StudyRecord(
            id=row.id,
            hash=row.hash,
            context=row.context_hash,
            key=StudyKey.from_json(row.key),
            status=row.status,
            result=result,
            created_at=row.created_at,
            tool_version=row.tool_version,
            request=request,
        )
    except (ValueError, TypeError, LookupError, AttributeError, DamagedRow) as problem:
        why = problem.why if isinstance(problem, DamagedRow) else problem
        raise damaged_row(f"study {row.id}: {why}") from None


def change_request(
    connection: Connection,
    study_id: int,
    change: Callable[[dict[str, Any] | None], Mapping[str, Any]],
) -> None:
    """Replace a study's request; see :meth:`autotune.store.Store.change_request`."""
    lock(connection, study_id)
    text = connection.scalar(select(s.study.c.request).where(s.study.c.id == study_id))
    try:
        before = load(text)
    except WorkError:
        before = None  # The request cannot be read.
    request = change(before if isinstance(before, dict) else None)
    connection.execute(
        update(s.study).where(s.study.c.id == study_id).values(request=dump(dict(request)))
    )


def store_document(
    connection: Connection, study_id: int, name: str, document: Mapping[str, Any]
) -> dict[str, Any]:
    """Store a plan if its name is new; returns the stored plan. The caller holds the lock."""
    stored_plan = stored_document(connection, study_id, name)
    if stored_plan is not None:
        return stored_plan
    text = dump(dict(document))
    values = {"study_id": study_id, "name": name, "document": text, "created_at": now()}
    connection.execute(insert(s.frozen_plan).values(**values))
    return load_object(text)


def stored_document(connection: Connection, study_id: int, name: str) -> dict[str, Any] | None:
    """The plan of a study by its name; None if it does not exist."""
    table = s.frozen_plan
    query = select(table.c.document).where(table.c.study_id == study_id, table.c.name == name)
    text = connection.scalar(query)
    return None if text is None else load_object(text)


def last_document(connection: Connection, study_id: int, prefix: str) -> dict[str, Any] | None:
    """A study's latest plan whose name starts with ``prefix``."""
    table = s.frozen_plan
    query = (
        select(table.c.document)
        .where(table.c.study_id == study_id, table.c.name.startswith(prefix, autoescape=True))
        .order_by(table.c.created_at.desc(), table.c.name.desc())
        .limit(1)
    )
    text = connection.scalar(query)
    return None if text is None else load_object(text)


def documents(connection: Connection, study_id: int, prefix: str) -> dict[str, dict[str, Any]]:
    """The plans of a study whose names start with ``prefix``, by name, the oldest first."""
    table = s.frozen_plan
    query = (
        select(table.c.name, table.c.document)
        .where(table.c.study_id == study_id, table.c.name.startswith(prefix, autoescape=True))
        .order_by(table.c.created_at, table.c.name)
    )
    return dict(read_all(connection, query, lambda row: (row.name, load_object(row.document))))


_SAME = (
    *("machine_id", "mpi_id", "ranks", "cluster_hash", "space_hash", "strategy"),
    *("strategy_options", "seed", "inherited", "conditions"),
)


def of_same_command(connection: Connection, study_id: int) -> list[int]:
    """Ids of the failed studies of the same command line whose files had other content."""
    one, other = s.study.alias(), s.study.alias()
    app, app_of_other = s.app.alias(), s.app.alias()
    query = (
        select(other.c.id)
        .join_from(one, app, app.c.id == one.c.app_id)
        .join(other, and_(other.c.id != one.c.id, *(other.c[n] == one.c[n] for n in _SAME)))
        .join(app_of_other, app_of_other.c.id == other.c.app_id)
        .where(one.c.id == study_id, other.c.status == "failed")
        .where(app_of_other.c.program == app.c.program, app_of_other.c.argv == app.c.argv)
        .order_by(other.c.id)
    )
    return [int(number) for number in connection.scalars(query)]


def keep_trace(connection: Connection, traced_as: str, features: Mapping[str, Any]) -> None:
    """Store the features of a traced run; replaces earlier ones. The caller holds the lock."""
    connection.execute(delete(s.trace_features).where(s.trace_features.c.hash == traced_as))
    values = {"hash": traced_as, "features": dump(dict(features)), "created_at": now()}
    connection.execute(insert(s.trace_features).values(**values))


def trace_features(connection: Connection, traced_as: str) -> dict[str, Any] | None:
    """The features of the last traced run; None without one."""
    text = connection.scalar(
        select(s.trace_features.c.features).where(s.trace_features.c.hash == traced_as)
    )
    return None if text is None else load_object(text)


def summaries(connection: Connection) -> list[StudySummary]:
    """Summaries of all studies, the newest first."""
    return read_all(connection, summary_query().order_by(s.study.c.id.desc()), to_summary)


def count_of(table: Table) -> ScalarSelect[int]:
    """The number of rows of a table that belong to a study, for a query of studies."""
    return select(func.count()).where(table.c.study_id == s.study.c.id).scalar_subquery()


def summary_query() -> Select[Any]:
    """A query of studies with the columns that :func:`to_summary` needs."""
    return (
        select(
            s.study,
            s.app.c.name.label("app"),
            s.app.c.argv,
            s.app.c.metric,
            s.app.c.verify,
            s.mpi.c.family,
            s.mpi.c.version,
            count_of(s.trial).label("trials"),
            count_of(s.run).label("runs"),
        )
        .join(s.app, s.app.c.id == s.study.c.app_id)
        .join(s.mpi, s.mpi.c.id == s.study.c.mpi_id)
    )


def to_summary(row: Row[Any]) -> StudySummary:
    """The summary in a row of :func:`summary_query`; raises WorkError for a damaged one."""
    argv = load(row.argv)
    if not isinstance(argv, list) or not all(isinstance(word, str) for word in argv):
        raise damaged_row(f"the arguments of its program are {row.argv!r:.40}")
    return StudySummary(
        id=row.id,
        hash=row.hash,
        app=row.app,
        argv=tuple(argv),
        ranks=row.ranks,
        mpi=f"{row.family} {row.version}".strip(),
        cluster=row.cluster,
        space=row.space_name,
        strategy=row.strategy,
        seed=row.seed,
        status=row.status,
        created_at=row.created_at,
        trials=row.trials,
        runs=row.runs,
        metric=row.metric,
        verify=row.verify,
        recommended=_recommended_setting(row.result),
        terms=_terms(row.strategy_options, row.conditions),
    )


def _terms(*texts: str) -> dict[str, Any]:
    """Stored objects merged; damaged ones are skipped: a list must not fail because of one
    study."""
    terms: dict[str, Any] = {}
    for text in texts:
        with suppress(WorkError):
            terms |= load_object(text)
    return terms


def _recommended_setting(text: str | None) -> dict[str, Any] | None:
    """The setting of a stored result, or None: a list must not fail because of one study."""
    try:
        data = {} if text is None else load_object(text)
    except WorkError:
        return None
    answer = data.get("recommended")
    setting = answer.get("setting") if isinstance(answer, dict) else None
    return setting if isinstance(setting, dict) else {} if "outcome" in data else None


def find(connection: Connection, text: str) -> StudyRecord:
    """The study with this id, or whose hash begins with ``text`` (at least 4 characters).

    Raises UsageError, with the candidates, if no study or more than one fits.
    """
    prefix = clean(text).strip().lower()
    conditions = []
    if (number := whole_number(prefix, 2**31 - 1)) is not None:
        conditions.append(s.study.c.id == number)
    if len(prefix) >= _MIN_PREFIX:
        conditions.append(s.study.c.hash.startswith(prefix, autoescape=True))
    rows: Sequence[Row[Any]] = []
    if conditions:
        query = select(s.study).where(or_(*conditions)).order_by(s.study.c.id)
        rows = all_rows(connection, query, strict=True)
    if len(rows) == 1:
        return to_study(rows[0])
    ids = {row.id for row in rows}
    candidates: list[StudySummary] = []
    with suppress(WorkError):  # Another study may be damaged.
        candidates = [one for one in summaries(connection) if not ids or one.id in ids]
    problem = f"{clean(text)!r} matches {len(ids)} studies" if ids else f"no study {clean(text)!r}"
    raise UsageError(
        f"{problem}; expected an id or at least 4 characters of a hash.{_list(candidates)}",
        code="study.unknown",
    )


def _list(studies: list[StudySummary]) -> str:
    if not studies:
        return "  There are no studies yet."
    lines = [
        f"\n  {one.id}  {one.hash[:12]}  {one.app}  {one.ranks} ranks  {one.mpi}  {one.status}"
        for one in studies[:_LIST_LENGTH]
    ]
    more = len(studies) - _LIST_LENGTH
    return "  There are:" + "".join(lines) + (f"\n  and {more} more" if more > 0 else "")


def has(connection: Connection, key: StudyKey) -> bool:
    """True if a study with exactly this key exists."""
    return connection.scalar(select(s.study.c.id).where(s.study.c.hash == key.hash)) is not None


def comparisons(connection: Connection, study_id: int) -> int:
    """Number of searches and comparisons with a result in a study's context, itself included."""
    context = select(s.study.c.context_hash).where(s.study.c.id == study_id).scalar_subquery()
    query = (
        select(func.count())
        .select_from(s.study)
        .where(s.study.c.context_hash == context, s.study.c.strategy.not_in((NOISE, SCREENING)))
        .where(or_(s.study.c.id == study_id, s.study.c.result.is_not(None)))
        .where(s.study.c.status != MOVED)
    )
    return int(connection.scalar(query) or 0)


def get(connection: Connection, study_id: int) -> StudyRecord:
    """The study with this id; raises UsageError if it does not exist."""
    row = read_first(connection, select(s.study).where(s.study.c.id == study_id))
    if row is None:
        raise unknown_study(study_id)
    return to_study(row)


def records(connection: Connection, numbers: Sequence[int]) -> list[StudyRecord]:
    """The studies with these ids, in this order; unknown ids are left out."""
    studies_by_id: dict[int, StudyRecord] = {}
    for start in range(0, len(numbers), _IDS_PER_QUERY):
        query = select(s.study).where(s.study.c.id.in_(numbers[start : start + _IDS_PER_QUERY]))
        studies_by_id |= {study.id: study for study in read_all(connection, query, to_study)}
    return [studies_by_id[number] for number in numbers if number in studies_by_id]


def unknown_study(study_id: int) -> UsageError:
    """The error for a study that does not exist."""
    return UsageError(
        f"no study with the id {study_id} in this results database", code="study.unknown"
    )


def lock(connection: Connection, study_id: int) -> None:
    """Lock a study, so that one writer at a time numbers its trials and runs.

    Raises UsageError for an unknown study.
    """
    if connection.scalar(_LOCK, {"wanted": study_id}) is None:
        raise unknown_study(study_id)


def set_result(
    connection: Connection, study_id: int, status: str, result: Mapping[str, Any] | None
) -> None:
    """Store the status and result of a study; raises UsageError for an unknown study."""
    text = None if result is None else dump(dict(result))
    update_result = connection.execute(
        update(s.study).where(s.study.c.id == study_id).values(status=clean(status), result=text)
    )
    if update_result.rowcount != 1:
        raise unknown_study(study_id)
