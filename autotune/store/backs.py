"""What was read back of each run, fetched as one text a run.

A study of 100,000 runs has a million rows of it, most of them the same few again and again: the
database puts those of a run together, and each different text is taken apart once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, String, cast, func, select

from autotune.store import schema as s
from autotune.store.text import dump
from runner.types import ReadBack

Backs = dict[str, ReadBack]
_Made = TypeVar("_Made")


def _counted(column: ColumnElement[Any]) -> ColumnElement[str]:
    """Text behind its length: whatever it holds, its end is known.  NULL has no length."""
    text = cast(func.length(column), String).concat(":").concat(column)
    return func.coalesce(text, ":")


_BACK = s.run_read_back.c
_ROW = cast(_BACK.position, String).concat(":")
for _column in (_BACK.name, _BACK.state, _BACK.requested, _BACK.effective, _BACK.source):
    _ROW = _ROW.concat(_counted(_column))
_OF_RUNS = (
    select(_BACK.run_id, func.aggregate_strings(_ROW, ""))
    .join_from(s.run_read_back, s.run, s.run.c.id == _BACK.run_id)
    .group_by(_BACK.run_id)
)


def of_runs(connection: Connection, conditions: Sequence[ColumnElement[bool]]) -> dict[int, Backs]:
    """By the id of the run, for runs that meet the conditions.  Runs may share one dictionary."""
    return _made(connection, conditions, lambda backs: backs)


def texts(connection: Connection, conditions: Sequence[ColumnElement[bool]]) -> dict[int, str]:
    """As :func:`of_runs`, each as the text of a JSON object."""
    return _made(
        connection, conditions, lambda b: dump({n: dataclasses.asdict(v) for n, v in b.items()})
    )


def _made(
    connection: Connection,
    conditions: Sequence[ColumnElement[bool]],
    make: Callable[[Backs], _Made],
) -> dict[int, _Made]:
    made: dict[str, _Made] = {}
    found: dict[int, _Made] = {}
    for run_id, text in connection.execute(_OF_RUNS.where(*conditions)).all():
        if text not in made:
            made[text] = make(_parsed(text))
        found[run_id] = made[text]
    return found


def _parsed(text: str) -> Backs:
    """The rows in the order of their positions: the database puts them together in any."""
    rows: list[tuple[int, list[Any]]] = []
    at = 0
    while at < len(text):
        colon = text.index(":", at)
        position, at = int(text[at:colon]), colon + 1
        fields: list[str | None] = []
        for _ in range(5):
            colon = text.index(":", at)
            end = colon + 1 + int(text[at:colon] or 0)
            fields.append(text[colon + 1 : end] if colon > at else None)
            at = end
        rows.append((position, fields))
    rows.sort(key=lambda row: row[0])
    return {name: ReadBack(*rest) for _, (name, *rest) in rows}
