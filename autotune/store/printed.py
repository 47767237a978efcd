"""The printed lines of runs: one list for a study, and each run's differences from it.

The runs of a study print nearly the same lines. So a run refers to a list stored by an earlier run
of its study, and stores only its changes: the numbers of missing lines, and additional lines. A run
that has less than half of the list stores a new one.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, select, text

from autotune.store import schema as s
from autotune.store.row_checks import read_all
from autotune.store.text import clean, damaged_row, dump, load
from runner.types import PrintedLines, printed_from_json

_LAST = (
    select(s.printed_lines.c.id, s.printed_lines.c.document)
    .join(s.run, s.run.c.printed_id == s.printed_lines.c.id)
    .where(s.run.c.study_id == bindparam("study"))
    .order_by(s.run.c.number.desc())
    .limit(1)
)
_ID = (
    select(s.printed_lines.c.id)
    .where(s.printed_lines.c.hash == bindparam("hash"))
    .with_for_update(read=True, key_share=True)
)
"""On a server it holds the row, which nobody can then remove before the run names it."""
_ADD = text(
    "INSERT INTO printed (hash, document) VALUES (:hash, :document)"
    " ON CONFLICT (hash) DO NOTHING RETURNING id"
)


def clean_lines(printed_lines: PrintedLines | None) -> PrintedLines | None:
    """The lines in a form that every database accepts."""
    if printed_lines is None:
        return None
    return dataclasses.replace(printed_lines, lines=tuple(map(clean, printed_lines.lines)))


def store_lines(
    connection: Connection, study_id: int, printed_lines: PrintedLines | None
) -> tuple[int | None, str | None]:
    """The id of a stored list and the run's changes to it; (None, None) without lines."""
    if printed_lines is None:
        return None, None
    last = connection.execute(_LAST, {"study": study_id}).first()
    if last is not None:
        base = _document(last.document)
        own, base_lines = set(printed_lines.lines), set(base.lines)
        lacking = [at for at, line in enumerate(base.lines) if line not in own]
        if 2 * len(lacking) <= len(base.lines):
            further = [line for line in printed_lines.lines if line not in base_lines]
            return int(last.id), _change(base, printed_lines, lacking, further)
    values = {"document": dump(dataclasses.asdict(printed_lines))}
    values["hash"] = hashlib.sha256(values["document"].encode()).hexdigest()
    list_id = connection.scalar(_ID, values) or connection.scalar(_ADD, values)
    return int(list_id or connection.execute(_ID, values).scalar_one()), None


def _change(
    base: PrintedLines, printed_lines: PrintedLines, lacking: Sequence[int], further: Sequence[str]
) -> str | None:
    change: dict[str, Any] = {"lacking": list(lacking), "further": list(further)}
    if (base.long, base.cut) != (printed_lines.long, printed_lines.cut):
        change |= {"long": printed_lines.long, "cut": printed_lines.cut}
    return dump(change) if len(change) > 2 or lacking or further else None


def printed_of(
    connection: Connection, conditions: Sequence[ColumnElement[bool]]
) -> dict[int, PrintedLines]:
    """The lists of the runs that meet the conditions, by ``run.printed_id``."""
    ids = select(s.run.c.printed_id).where(*conditions)
    query = select(s.printed_lines.c.id, s.printed_lines.c.document).where(
        s.printed_lines.c.id.in_(ids)
    )
    return dict(read_all(connection, query, lambda row: (row.id, _document(row.document))))


def apply_change(base: PrintedLines, change: str | None) -> PrintedLines:
    """The lines of a run; raises WorkError for a change that autotune did not write."""
    if change is None:
        return base
    data = load(change)
    try:
        lacking = {int(at) for at in data["lacking"]}
        lines = [line for at, line in enumerate(base.lines) if at not in lacking]
        long, cut = data.get("long", base.long), data.get("cut", base.cut)
        own = {"lines": [*lines, *data["further"]], "long": long, "cut": cut}
        return printed_from_json(own)
    except (LookupError, TypeError, ValueError) as problem:
        raise damaged_row(f"printed lines: {problem!r:.80}") from None


def _document(text_: str) -> PrintedLines:
    data = load(text_)
    try:
        return printed_from_json(data)
    except (LookupError, TypeError, ValueError) as problem:
        raise damaged_row(f"printed lines: {problem!r:.80}") from None
