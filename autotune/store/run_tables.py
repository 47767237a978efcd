"""The runs of a study as columns, for tables."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from sqlalchemy import Boolean, Column, Connection, Integer, String, select

from autotune.store import schema as s
from autotune.store.row_checks import all_rows
from autotune.store.runs import (
    COLUMNS,
    OUTPUT,
    page_conditions,
    pause_collection,
    read_back_texts,
)

PAGE = 10_000
"""Runs that are read at once."""


def tables(connection: Connection, study_id: int, output: bool) -> Iterator[dict[str, list[Any]]]:
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
    texts = read_back_texts(connection, [of_study])
    for of_page in page_conditions(connection, study_id, PAGE):
        with pause_collection():
            found = all_rows(connection, query.where(of_study, of_page), optional=("trial",))
            if not found:
                continue
            rows = sorted(found, key=itemgetter(1))
            columns = dict(zip(selection, map(list, zip(*rows, strict=True)), strict=True))
            del columns["id"]
            columns["read_back"] = [texts.get(number, "{}") for number in columns["read_back"]]
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
