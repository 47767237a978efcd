"""What was read back of runs.

Most runs of a study read back the same few things again and again, and a study of 100,000 runs
would have a million rows of it: each different outcome is kept once, and a run points to its own.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from operator import itemgetter

from sqlalchemy import ColumnElement, Connection, bindparam, insert, select, text

from autotune.store import schema as s
from autotune.store.text import dump
from runner.types import ReadBack

Backs = dict[str, ReadBack]
_ID = select(s.read_back.c.id).where(s.read_back.c.hash == bindparam("hash"))
# Understood by SQLite and PostgreSQL; of two processes that meet, the second waits and gets none.
_ADD = text(
    "INSERT INTO read_back (hash) VALUES (:hash) ON CONFLICT (hash) DO NOTHING RETURNING id"
)


def keep(connection: Connection, backs: Mapping[str, ReadBack]) -> int | None:
    """The id of an outcome, which is stored where it is new; None where nothing was read back."""
    if not backs:
        return None
    rows = [(name, *dataclasses.astuple(back)) for name, back in backs.items()]
    wanted = {"hash": hashlib.sha256(dump(rows).encode()).hexdigest()}
    known: int | None = connection.scalar(_ID, wanted)
    if known is None and (known := connection.scalar(_ADD, wanted)) is not None:
        values = [
            {"read_back_id": known, "position": at, "name": name, **dataclasses.asdict(back)}
            for at, (name, back) in enumerate(backs.items())
        ]
        connection.execute(insert(s.read_back_value), values)
    return known if known is not None else int(connection.execute(_ID, wanted).scalar_one())


def of_runs(connection: Connection, conditions: Sequence[ColumnElement[bool]]) -> dict[int, Backs]:
    """The outcomes of the runs that meet the conditions, by ``run.read_back_id``."""
    wanted = select(s.run.c.read_back_id).where(*conditions)
    query = select(s.read_back_value).where(s.read_back_value.c.read_back_id.in_(wanted))
    found: dict[int, Backs] = {}
    # Sorted here: a set in the order of its positions is a dictionary in the order it was told.
    rows = sorted(connection.execute(query).all(), key=itemgetter(0, 2))
    for number, name, _, *back in rows:
        found.setdefault(number, {})[name] = ReadBack(*back)
    return found


def texts(connection: Connection, conditions: Sequence[ColumnElement[bool]]) -> dict[int, str]:
    """As :func:`of_runs`, each as the text of a JSON object."""
    found = of_runs(connection, conditions)
    return {
        number: dump({name: dataclasses.asdict(back) for name, back in backs.items()})
        for number, backs in found.items()
    }
