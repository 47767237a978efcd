"""The check of a results database: its file, its references, and each of its rows.

SQLite checks its own file (``PRAGMA integrity_check``). A server checks its pages when it reads
them, and every row is read here. References are checked by queries on both: a file may have been
written with its foreign keys switched off, and a server may have been restored in part.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from functools import partial
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    ForeignKeyConstraint,
    FromClause,
    Table,
    and_,
    case,
    exists,
    func,
    select,
)

from autotune.errors import AutotuneError
from autotune.store import runs, studies
from autotune.store import schema as s
from autotune.store.database import Database
from autotune.store.findings import StoreFinding
from autotune.store.model import MOVED, RUNNING
from autotune.store.row_checks import all_rows, read_all
from autotune.store.text import load, load_object
from autotune.store.trials import to_trial

_MOST_PROBLEMS = 100
"""Problems of a file that SQLite is asked for, and rows of a finding that are named."""
_NAMED_ROWS = 5
"""Rows that a sentence names; ``data`` has up to 100."""
RESTORE = "restore a backup from before (autotune store backup makes them)"


def examine(database: Database, quick: bool, reused: str) -> list[StoreFinding]:
    """The faults of an opened database; nothing is changed.

    ``quick``: the file is checked without its indexes, and rows are not read one by one.
    ``reused``: the attribute of a trial that took its result from another study, and has no runs.
    Raises WorkError if the database cannot be asked (locked, unreachable).
    """
    findings: list[StoreFinding] = []
    steps: list[Callable[[Connection], Iterator[StoreFinding]]] = [
        partial(_file, quick=quick),
        _references,
        partial(_trials_without_runs, reused=reused),
        _moved,
    ]
    for step in steps:
        if not _carry_out(database, partial(_collect, step=step, findings=findings), findings):
            return findings  # What follows would say the same of each table.
    if not quick:
        _read_rows(database, findings)
    return findings


def unreadable(problem: AutotuneError) -> StoreFinding:
    """The finding on a database that cannot be read to its end."""
    return StoreFinding("store.unsound", str(problem), RESTORE)


def _collect(
    connection: Connection,
    step: Callable[[Connection], Iterator[StoreFinding]],
    findings: list[StoreFinding],
) -> None:
    findings.extend(step(connection))


def _carry_out(
    database: Database, step: Callable[[Connection], Any], findings: list[StoreFinding]
) -> bool:
    """Whether a step was carried out; the failure of a damaged file is a finding."""
    try:
        with database.read() as connection:
            step(connection)
    except AutotuneError as problem:
        if problem.code != "store.damaged":
            raise
        findings.append(unreadable(problem))
        return False
    return True


def _file(connection: Connection, quick: bool) -> Iterator[StoreFinding]:
    """What SQLite finds in its own file."""
    if connection.dialect.name != "sqlite":
        return
    name = "quick_check" if quick else "integrity_check"
    problems = [
        str(row[0]) for row in connection.exec_driver_sql(f"PRAGMA {name}({_MOST_PROBLEMS})")
    ]
    if problems != ["ok"]:
        more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
        first = " ".join(problems[0].split())
        yield StoreFinding(
            "store.unsound",
            f"SQLite finds faults in the file ({name}): {first:.200}{more}",
            f"keep the file; {RESTORE}",
            {"problems": problems},
        )


_SHARED = (
    (s.printed_lines, s.run.c.printed_id),
    (s.read_back, s.run.c.read_back_id),
)
"""Tables whose rows are there for runs only, with the columns that name them."""


def _references(connection: Connection) -> Iterator[StoreFinding]:
    """Rows that name a row which is not there, and outputs that no run names.

    A table is read once for all of its references: the runs are most of a database.
    """
    outputs: list[StoreFinding] = []
    for table in s.metadata.sorted_tables:
        constraints = sorted(table.foreign_key_constraints, key=_columns)
        if not constraints:
            continue
        source: FromClause = table
        dangling = []
        for number, constraint in enumerate(constraints):
            parent, is_same, is_missing = _lookup(table, constraint, f"parent{number}")
            source = source.outerjoin(parent, is_same)
            dangling.append(case((is_missing, 1), else_=0))
        shared = [(other, column) for other, column in _SHARED if column.table is table]
        query = select(*dangling, *(column for _, column in shared)).select_from(source)
        rows = connection.execute(query.distinct()).all()
        for at, constraint in enumerate(constraints):
            if any(row[at] for row in rows):
                yield _orphans(connection, table, constraint)
        for at, (other, _) in enumerate(shared, len(constraints)):
            outputs += _unnamed(connection, other, {row[at] for row in rows})
    yield from outputs


def _columns(constraint: ForeignKeyConstraint) -> list[str]:
    return list(constraint.column_keys)


def _lookup(
    table: Table, constraint: ForeignKeyConstraint, name: str
) -> tuple[FromClause, ColumnElement[bool], ColumnElement[bool]]:
    """The table that a reference names, when its row is the named one, and when there is none."""
    parent = constraint.referred_table.alias(name)
    pairs = [(table.c[one.parent.name], parent.c[one.column.name]) for one in constraint.elements]
    is_same = and_(*(own == other for own, other in pairs))
    return parent, is_same, and_(pairs[0][1].is_(None), *(own.is_not(None) for own, _ in pairs))


def _orphans(
    connection: Connection, table: Table, constraint: ForeignKeyConstraint
) -> StoreFinding:
    """The finding on the rows of a table whose reference names no row."""
    parent, is_same, condition = _lookup(table, constraint, "parent")
    join = table.outerjoin(parent, is_same)
    keys = list(table.primary_key)
    count = connection.scalar(select(func.count()).select_from(join).where(condition)) or 0
    query = select(*keys).select_from(join).where(condition).order_by(*keys).limit(_MOST_PROBLEMS)
    rows = [[_plain(value) for value in row] for row in connection.execute(query)]
    noun = "row names" if count == 1 else "rows name"
    return StoreFinding(
        "store.orphan",
        f"{count} {noun} a {constraint.referred_table.name} that is not there: "
        f"{table.name} {_listed(rows, count)}",
        RESTORE,
        {
            "table": table.name,
            "names": constraint.referred_table.name,
            "rows": rows,
            "count": count,
        },
    )


def _listed(rows: list[list[Any]], count: int) -> str:
    """The first rows by their keys, and how many there are beside them."""
    names = ["/".join(str(value) for value in row) for row in rows[:_NAMED_ROWS]]
    more = count - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | str) else repr(value)


def _trials_without_runs(connection: Connection, reused: str) -> Iterator[StoreFinding]:
    """Trials with a result of their own for which no run is stored."""
    has_run = exists(select(s.run.c.id).where(s.run.c.trial_id == s.trial.c.id))
    query = (
        select(s.trial.c.id, s.trial.c.study_id, s.trial.c.number, s.trial.c.attrs)
        .where(s.trial.c.state != RUNNING, s.trial.c.estimate.is_not(None), ~has_run)
        .order_by(s.trial.c.id)
    )
    rows = [
        [int(row.study_id), int(row.number)]
        for row in all_rows(connection, query)
        if not _attributes(row.attrs).get(reused)
    ]
    if rows:
        noun = "trial has" if len(rows) == 1 else "trials have"
        yield StoreFinding(
            "store.trial_empty",
            f"{len(rows)} {noun} a result, and no run of it is stored (study/trial): "
            f"{_listed(rows, len(rows))}",
            f"{RESTORE}; else search again with another --seed",
            {"trials": rows[:_MOST_PROBLEMS], "count": len(rows)},
        )


def _attributes(text: str) -> Mapping[str, Any]:
    try:
        return load_object(text)
    except AutotuneError:
        return {}


def _moved(connection: Connection) -> Iterator[StoreFinding]:
    """Studies that continue in another one which is not there."""
    moved = select(s.study.c.id, s.study.c.result).where(s.study.c.status == MOVED)
    for row in all_rows(connection, moved):
        target = str(_attributes(row.result or "{}").get("to"))
        known = connection.scalar(select(s.study.c.id).where(s.study.c.hash == target))
        if known is None:
            yield StoreFinding(
                "store.orphan",
                f"study {row.id} continues in study {target:.12}, which is not there",
                RESTORE,
                {"table": "study", "names": "study", "rows": [[int(row.id)]], "count": 1},
            )


def _unnamed(connection: Connection, table: Table, named: Container[Any]) -> list[StoreFinding]:
    """Printed lines or read-backs that no run names; they only take space."""
    ids = connection.scalars(select(table.c.id).order_by(table.c.id))
    rows = [[int(number)] for number in ids if number not in named]
    if not rows:
        return []
    noun = "is named by no run" if len(rows) == 1 else "are named by no run"
    finding = StoreFinding(
        "store.output_unnamed",
        f"{len(rows)} of the outputs in the table {table.name} {noun}: {_listed(rows, len(rows))}",
        "they only take space; to remove them: autotune store prune --yes",
        {"table": table.name, "rows": rows[:_MOST_PROBLEMS], "count": len(rows)},
    )
    return [finding]


def _read_rows(database: Database, findings: list[StoreFinding]) -> None:
    """Read every row as the commands do; each that autotune did not write is a finding."""
    numbers: list[int] = []
    is_readable = _carry_out(database, partial(_read_small_tables, numbers=numbers), findings)
    for number in numbers if is_readable else ():
        if not _carry_out(database, partial(_read_study, number=number), findings):
            break
    findings.extend(
        StoreFinding(
            "store.row_damaged",
            f"row {note.data['row']} of the table {note.data['table']} is damaged: "
            f"{note.data['why']}",
            f"{RESTORE}; until then commands that read leave the row out",
            note.data,
        )
        for note in database.damage.notes
    )
    if database.damage.more:
        findings.append(
            StoreFinding(
                "store.row_damaged",
                f"{database.damage.more} further rows are damaged",
                RESTORE,
                {"rows": database.damage.more},
            )
        )


def _read_small_tables(connection: Connection, numbers: list[int]) -> None:
    """Read the tables with a row or a few for each study; adds the ids of the studies."""
    for table in (s.meta, s.machine, s.mpi, s.role):
        all_rows(connection, select(table))
    read_all(connection, select(s.app), lambda row: load(row.argv))
    read_all(connection, select(s.frozen_plan), lambda row: load_object(row.document))
    read_all(connection, select(s.trace_features), lambda row: load_object(row.features))
    read_all(connection, select(s.study), studies.to_study)
    numbers.extend(connection.scalars(select(s.study.c.id).order_by(s.study.c.id)))


def _read_study(connection: Connection, number: int) -> None:
    """Read the trials and the runs of a study."""
    of_study = select(s.trial).where(s.trial.c.study_id == number)
    read_all(connection, of_study, to_trial)
    ids = of_study.with_only_columns(s.trial.c.id)
    all_rows(connection, select(s.trial_value).where(s.trial_value.c.trial_id.in_(ids)))
    runs.read_through(connection, number)
