"""What was read back of runs.

Most runs of a study read back the same few things again and again, and a study of 100,000 runs
would have a million rows of it: each different outcome is kept once, and a run points to its own.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence

from sqlalchemy import ColumnElement, Connection, bindparam, insert, select, text

from autotune.store import schema as s
from autotune.store.text import dump
from runner.types import ReadBack

Backs = dict[str, ReadBack]
_VALUE = s.read_back_value.c
_ID = select(s.read_back.c.id).where(s.read_back.c.hash == bindparam("hash"))
# Understood by SQLite and PostgreSQL; of two processes that meet, the second waits and finds it.
_ADD = text("INSERT INTO read_back (hash) VALUES (:hash) ON CONFLICT (hash) DO NOTHING")


def keep(connection: Connection, backs: Mapping[str, ReadBack]) -> int | None:
    """The id of an outcome, which is stored where it is new; None where nothing was read back."""
    if not backs:
        return None
    rows = [(name, *dataclasses.astuple(back)) for name, back in backs.items()]
    wanted = {"hash": hashlib.sha256(dump(rows).encode()).hexdigest()}
    known = connection.scalar(_ID, wanted)
    if known is not None:
        return int(known)
    new = connection.execute(_ADD, wanted).rowcount == 1
    found = int(connection.execute(_ID, wanted).scalar_one())
    if new:
        columns = ("name", "state", "requested", "effective", "source")
        values = [
            {"read_back_id": found, "position": at, **dict(zip(columns, row, strict=True))}
            for at, row in enumerate(rows)
        ]
        connection.execute(insert(s.read_back_value), values)
    return found


def of_runs(connection: Connection, conditions: Sequence[ColumnElement[bool]]) -> dict[int, Backs]:
    """The outcomes of the runs that meet the conditions, by ``run.read_back_id``."""
    wanted = select(s.run.c.read_back_id).where(*conditions)
    query = select(
        _VALUE.read_back_id,
        _VALUE.position,
        _VALUE.name,
        _VALUE.state,
        _VALUE.requested,
        _VALUE.effective,
        _VALUE.source,
    ).where(_VALUE.read_back_id.in_(wanted))
    found: dict[int, Backs] = {}
    # Sorted here: a set in the order of its positions is a dictionary in the order it was told.
    for number, _, name, *back in sorted(connection.execute(query).all(), key=lambda row: row[:2]):
        found.setdefault(number, {})[name] = ReadBack(*back)
    return found


def texts(connection: Connection, conditions: Sequence[ColumnElement[bool]]) -> dict[int, str]:
    """As :func:`of_runs`, each as the text of a JSON object."""
    found = of_runs(connection, conditions)
    return {
        number: dump({name: dataclasses.asdict(back) for name, back in backs.items()})
        for number, backs in found.items()
    }
