"""The list of studies, one page at a time: filters, order and limits are part of the statement.

A database may have more than ten thousand studies, so only the rows of the page are read.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, TypeGuard

from sqlalchemy import ColumnElement, Connection, func, or_, select

from autotune.errors import UsageError, WorkError
from autotune.store import schema as s
from autotune.store.model import StudySummary
from autotune.store.row_checks import read_all
from autotune.store.studies import count_of, summary_query, to_summary
from autotune.store.text import clean, load_object

PAGE = 50
"""Studies on one page."""
LARGEST_PAGE = 500
_FILTERS: dict[str, ColumnElement[Any]] = {
    "app": s.app.c.name,
    "machine": s.machine.c.cpu_model,
    "cluster": s.study.c.cluster,
    "status": s.study.c.status,
    "strategy": s.study.c.strategy,
}
FILTERS = tuple(_FILTERS)
ORDERS: dict[str, ColumnElement[Any]] = {
    "begun": s.study.c.id,
    "app": s.app.c.name,
    "machine": s.machine.c.cpu_model,
    "ranks": s.study.c.ranks,
    "strategy": s.study.c.strategy,
    "status": s.study.c.status,
    "trials": count_of(s.trial),
    "runs": count_of(s.run),
}
"""The columns by which a list of studies can be sorted."""
_SEARCH_COLUMNS = (
    *(s.app.c.name, s.app.c.argv, s.app.c.input, s.machine.c.hostname, s.machine.c.cpu_model),
    *(s.mpi.c.family, s.mpi.c.version, s.study.c.cluster, s.study.c.space_name),
    *(s.study.c.strategy, s.study.c.status),
)


@dataclass(frozen=True)
class StudyQuery:
    """A selection of studies, its order, and the page to read.

    ``text``: each of its words has to occur in a study's program, arguments, input, machine, MPI,
    cluster, space, strategy or status, or begin its hash. A filter that is "" selects everything.
    ``page`` counts from 1. Raises UsageError for an unknown order or an impossible page.
    """

    text: str = ""
    app: str = ""
    machine: str = ""
    cluster: str = ""
    status: str = ""
    strategy: str = ""
    order: str = "begun"
    descending: bool = True
    page: int = 1
    size: int = PAGE

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise UsageError(
                f"studies cannot be sorted by {self.order[:40]!r}; expected {', '.join(ORDERS)}",
                code="usage.range",
            )
        if not (1 <= self.page < 2**31 and 1 <= self.size <= LARGEST_PAGE):
            raise UsageError(
                f"no page {self.page} of {self.size} studies; expected a page from 1 on, of at "
                f"most {LARGEST_PAGE} studies",
                code="usage.range",
            )


@dataclass(frozen=True)
class StudyRow:
    """One study of a page; ``machine`` is its CPU model, ``gain`` a fraction (None: no result)."""

    study: StudySummary
    machine: str
    input: str
    gain: float | None
    gain_ci: tuple[float | None, float | None] | None


@dataclass(frozen=True)
class StudyPage:
    """The rows of a page; ``total`` counts the selected studies, ``every`` all studies.

    ``page`` is the page that was read: the last one if fewer exist than requested.
    """

    rows: tuple[StudyRow, ...]
    total: int
    every: int
    page: int
    pages: int


def page(connection: Connection, study_query: StudyQuery) -> StudyPage:
    """One page of the studies that ``study_query`` selects."""
    conditions = _conditions(study_query)
    every = connection.scalar(select(func.count()).select_from(s.study)) or 0
    total = every
    if conditions:
        count_query = select(func.count()).select_from(_join_tables()).where(*conditions)
        total = connection.scalar(count_query) or 0
    pages = max(math.ceil(total / study_query.size), 1)
    number = min(study_query.page, pages)
    column = ORDERS[study_query.order]
    # Only numbers are sorted: otherwise a database sorts whole rows, with all their JSON.
    ids = connection.scalars(
        select(s.study.c.id)
        .select_from(_join_tables())
        .where(*conditions)
        # The number makes the order total, so that no study is on two pages.
        .order_by(
            *(c.desc() if study_query.descending else c.asc() for c in (column, s.study.c.id))
        )
        .offset((number - 1) * study_query.size)
        .limit(study_query.size)
    ).all()
    query = (
        summary_query()
        .join(s.machine, s.machine.c.id == s.study.c.machine_id)
        .add_columns(s.machine.c.cpu_model, s.app.c.input)
        .where(s.study.c.id.in_(ids))
    )
    rows_by_id = {row.study.id: row for row in read_all(connection, query, _to_row)}
    rows = tuple(rows_by_id[one] for one in ids if one in rows_by_id)
    return StudyPage(rows, total, every, number, pages)


def choices(connection: Connection) -> dict[str, list[str]]:
    """The values that occur for each filter, in alphabetical order."""
    values_by_filter = {}
    for name, column in _FILTERS.items():
        values = connection.scalars(select(column).distinct())
        values_by_filter[name] = sorted(str(value) for value in values)
    return values_by_filter


def unfinished_ids(connection: Connection, final_statuses: Collection[str], most: int) -> list[int]:
    """Ids of the newest studies, at most ``most``, without a final status."""
    query = (
        select(s.study.c.id)
        .where(s.study.c.status.not_in(final_statuses))
        .order_by(s.study.c.id.desc())
        .limit(most)
    )
    return list(connection.scalars(query))


def _join_tables() -> Any:
    return (
        s.study.join(s.app, s.app.c.id == s.study.c.app_id)
        .join(s.machine, s.machine.c.id == s.study.c.machine_id)
        .join(s.mpi, s.mpi.c.id == s.study.c.mpi_id)
    )


def _conditions(study_query: StudyQuery) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    for word in clean(study_query.text).split():
        anywhere = [column.icontains(word, autoescape=True) for column in _SEARCH_COLUMNS]
        conditions.append(or_(*anywhere, s.study.c.hash.istartswith(word, autoescape=True)))
    for name, column in _FILTERS.items():
        if value := getattr(study_query, name):
            conditions.append(column == clean(value))
    return conditions


def _to_row(row: Any) -> StudyRow:
    gain, ends = _gain(row.result)
    return StudyRow(to_summary(row), row.cpu_model, row.input or "", gain, ends)


def _gain(
    text: str | None,
) -> tuple[float | None, tuple[float | None, float | None] | None]:
    """The gain in a stored result, or None: a list must not fail because of one study."""
    try:
        data = load_object(text) if text is not None else {}
    except WorkError:
        return None, None
    gain, ends = data.get("gain"), data.get("gain_ci95")
    if not _is_number(gain):
        return None, None
    if isinstance(ends, list) and len(ends) == 2 and all(e is None or _is_number(e) for e in ends):
        return float(gain), (ends[0], ends[1])
    return float(gain), None


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
