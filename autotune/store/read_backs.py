"""Outcomes of read-back, each stored once: most runs of a study have the same few.

Without that, 100,000 runs would take a million rows.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, bindparam, insert, select, text

from autotune.store import schema as s
from autotune.store.row_checks import all_rows
from autotune.store.text import dump
from runner.types import ReadBack

Backs = dict[str, ReadBack]
_IDS_PER_QUERY = 500
"""The number of bound values of a statement is limited."""
_ID = (
    select(s.read_back.c.id)
    .where(s.read_back.c.hash == bindparam("hash"))
    # On a server it holds the row, which nobody can then remove before the run names it.
    .with_for_update(read=True, key_share=True)
)
# SQLite and PostgreSQL understand this. If two processes add the same hash, the second waits and
# gets no row.
_ADD = text(
    "INSERT INTO read_back (hash) VALUES (:hash) ON CONFLICT (hash) DO NOTHING RETURNING id"
)


def keep_read_back(connection: Connection, read_backs: Mapping[str, ReadBack]) -> int | None:
    """The id of a read-back outcome, stored if it is new; None if nothing was read back."""
    if not read_backs:
        return None
    rows = [(n, b.state, b.requested, b.effective, b.source) for n, b in read_backs.items()]
    key = {"hash": hashlib.sha256(dump(rows).encode()).hexdigest()}
    outcome_id: int | None = connection.scalar(_ID, key)
    if outcome_id is None and (outcome_id := connection.scalar(_ADD, key)) is not None:
        values = [
            {"read_back_id": outcome_id, "position": at, "name": name, **dataclasses.asdict(back)}
            for at, (name, back) in enumerate(read_backs.items())
        ]
        connection.execute(insert(s.read_back_value), values)
    return outcome_id if outcome_id is not None else int(connection.execute(_ID, key).scalar_one())


def read_back_of(
    connection: Connection, conditions: Sequence[ColumnElement[bool]]
) -> dict[int, Backs]:
    """The read-back outcomes of the runs that meet the conditions, by ``run.read_back_id``."""
    return _outcomes(connection, select(s.run.c.read_back_id).where(*conditions))


def _outcomes(connection: Connection, ids: Select[Any] | Collection[int]) -> dict[int, Backs]:
    query = select(s.read_back_value).where(s.read_back_value.c.read_back_id.in_(ids))
    outcomes: dict[int, Backs] = {}
    # The rows are sorted here by position, so that the dictionary has the order of the read-back.
    rows = sorted(all_rows(connection, query), key=itemgetter(0, 2))
    for number, name, _, *back in map(tuple, rows):
        outcomes.setdefault(number, {})[name] = ReadBack(*back)
    return outcomes


def read_back_texts(connection: Connection, ids: Sequence[int]) -> dict[int, str]:
    """The outcomes with these ids, each as the text of a JSON object; an unknown one is empty."""
    texts = dict.fromkeys(ids, "{}")
    for first in range(0, len(ids), _IDS_PER_QUERY):
        outcomes = _outcomes(connection, ids[first : first + _IDS_PER_QUERY])
        for number, read_backs in outcomes.items():
            texts[number] = dump({n: dataclasses.asdict(back) for n, back in read_backs.items()})
    return texts
