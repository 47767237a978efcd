"""Checked rows: every table is read through this module.

SQLite stores any value in any column, and whoever may write the database may store anything. So the
values of each row are checked against their columns' types before use. A row that autotune did not
write is reported. A store that writes refuses it, because a decision without it may be wrong. A
store that only reads leaves it out with a note: one row does not hide all others.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, TypeVar

from sqlalchemy import Boolean, Column, Connection, Float, Integer, Row, Select, String
from sqlalchemy.exc import OperationalError

from autotune.errors import WorkError
from autotune.notes import Note
from autotune.store.text import DamagedRow, damaged_row

T = TypeVar("T")
TOLERATES = "autotune_tolerates"
"""Execution option of a connection: the :class:`Damage` of a store that only reads."""
_MOST_NOTES = 100
_NAMED_ROWS = 5
"""Damaged rows that are named one by one."""
_FAULTS = (ValueError, TypeError, LookupError, AttributeError, RecursionError, WorkError)
"""Exceptions from reading a row that autotune did not write."""
_KINDS: tuple[tuple[type, frozenset[type], str], ...] = (
    (Boolean, frozenset({bool}), "true or false"),
    (Integer, frozenset({int}), "a whole number"),
    (Float, frozenset({float, int}), "a number"),
    (String, frozenset({str}), "a text"),
)


@dataclass
class Damage:
    """The rows that a store has left out, each listed once."""

    notes: list[Note] = field(default_factory=list)
    """At most 100 notes."""
    more: int = 0
    """The number of further notes."""

    def lines(self, database: str) -> list[Note]:
        """A note for each of the first rows, and one for all others of the ``database``."""
        first = self.notes[:_NAMED_ROWS]
        others = len(self.notes) - len(first) + self.more
        if not others:
            return first
        words = f"{others} further rows of {database} are damaged and left out"
        return [*first, Note("store.row_damaged", words, {"rows": others})]

    def add(self, table: str, row: str, why: str) -> None:
        """Record a row that is left out."""
        note = Note(
            "store.row_damaged",
            f"row {row} of the table {table} is damaged and left out: {why}",
            {"table": table, "row": row, "why": why},
        )
        if note in self.notes:
            return
        if len(self.notes) < _MOST_NOTES:
            self.notes.append(note)
        else:
            self.more += 1


@contextmanager
def pause_collection() -> Iterator[None]:
    """Switch off garbage collection, which takes a third of the time: many objects are created."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def all_rows(
    connection: Connection,
    query: Select[Any],
    optional: Collection[str] = (),
    strict: bool = False,
) -> Sequence[Row[Any]]:
    """The rows whose values match the types of their columns; the others are refused."""
    with pause_collection():
        return _sound(connection, query, optional, strict)[0]


def all_columns(
    connection: Connection, query: Select[Any], optional: Collection[str] = ()
) -> list[tuple[Any, ...]]:
    """The values of :func:`all_rows` column by column, in the order of the query's columns."""
    with pause_collection():
        return _sound(connection, query, optional)[1]


def _sound(
    connection: Connection, query: Select[Any], optional: Collection[str], strict: bool = False
) -> tuple[Sequence[Row[Any]], list[tuple[Any, ...]]]:
    """The rows that are not refused, and their columns."""
    rows = _fetch(connection, query)
    if not rows:
        return rows, [()] * len(query.selected_columns)
    columns: list[tuple[Any, ...]] = list(zip(*rows, strict=True))
    faults: dict[int, str] = {}
    for column, values in zip(query.selected_columns, columns, strict=False):
        kinds, words = _allowed_types(column, column.key in optional)
        # The types of a whole column at once: a study may have a hundred thousand runs.
        if kinds and not set(map(type, values)) <= kinds:
            for at, value in enumerate(values):
                if type(value) not in kinds:
                    faults.setdefault(at, f"{column.key} is {value!r:.40}, expected {words}")
    if not faults:
        return rows, columns
    for at, why in faults.items():
        refuse(connection, query, rows[at], why, strict)
    keep = [at not in faults for at in range(len(rows))]
    columns = [tuple(compress(values, keep)) for values in columns]
    return list(compress(rows, keep)), columns


def read_all(
    connection: Connection,
    query: Select[Any],
    make: Callable[[Row[Any]], T],
    optional: Collection[str] = (),
) -> list[T]:
    """``make(row)`` of every row of :func:`all_rows`; a row for which it fails is refused, too."""
    objects = []
    with pause_collection():
        for row in all_rows(connection, query, optional):
            try:
                objects.append(make(row))
            except _FAULTS as problem:
                refuse(connection, query, row, problem)
    return objects


def read_first(connection: Connection, query: Select[Any]) -> Row[Any] | None:
    """The first row; None without one. Raises WorkError if it is damaged, in every store."""
    rows = all_rows(connection, query.limit(1), strict=True)
    return rows[0] if rows else None


def refuse(
    connection: Connection,
    query: Select[Any],
    row: Row[Any],
    why: Exception | str,
    strict: bool = False,
) -> None:
    """Leave a row out with a note, or raise WorkError, as the store of the connection does.

    The row is named by the key of the table of the query's first column.
    """
    sources = [getattr(column, "element", column) for column in query.selected_columns]
    table = sources[0].table
    keys = [row[at] for at, source in enumerate(sources) if source in set(table.primary_key)]
    name = ", ".join(f"{value!r:.40}" for value in keys) or "?"
    words = why.why if isinstance(why, DamagedRow) else str(why)
    tolerates = connection.get_execution_options().get(TOLERATES)
    if strict or not isinstance(tolerates, Damage):
        raise damaged_row(f"row {name} of the table {table.name}: {words}")
    tolerates.add(table.name, name, words)


def _fetch(connection: Connection, query: Select[Any]) -> Sequence[Row[Any]]:
    try:
        return connection.execute(query).all()
    except OperationalError as problem:
        if "decode" not in str(problem):
            raise
    # Text that is not UTF-8; only SQLite stores it. It stays bytes, which is not text.
    driver: Any = connection.connection.dbapi_connection
    before = driver.text_factory
    driver.text_factory = _text_or_bytes
    try:
        return connection.execute(query).all()
    finally:
        driver.text_factory = before


def _text_or_bytes(data: bytes) -> str | bytes:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data


def _allowed_types(column: Any, optional: bool) -> tuple[frozenset[type], str]:
    """The allowed Python types of a column's values and their name; empty if all are allowed."""
    for kind, types, words in _KINDS:
        if isinstance(column.type, kind):
            source = getattr(column, "element", column)
            empty = optional or not isinstance(source, Column) or bool(source.nullable)
            return (types | {type(None)} if empty else types), words
    return frozenset(), ""
