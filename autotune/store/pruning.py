"""What may go from a results database: old outputs, old rejected runs, outputs that no run names.

A valid run never goes, nor does a run of a proof, the last run of a trial, or the last run of a
study (numbers of runs only rise). Nothing of a protected study goes.

Each study is pruned in one transaction, so workers on other studies wait for moments only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import (
    ColumnElement,
    Connection,
    LargeBinary,
    Table,
    and_,
    cast,
    delete,
    exists,
    func,
    or_,
    select,
    update,
)

from autotune.errors import UsageError
from autotune.store import schema as s
from autotune.store import studies
from autotune.store.database import Database
from autotune.store.model import RUNNING
from autotune.store.workers import database_now

REJECTED = "foreign_load"
"""State of a run that the guard rejected: it says nothing about its setting."""
_DAY_S = 86_400.0
UNNAMED = ((s.printed_lines, s.run.c.printed_id), (s.read_back, s.run.c.read_back_id))
"""Tables of outputs that runs share, and the column of a run that names a row of each."""


@dataclass(frozen=True)
class PruneRule:
    """What goes: outputs and rejected runs older than so many days; None: none of them.

    ``protected``: ids of the studies of which nothing goes. ``proof``: the phase of proofs, whose
    runs all stay.
    """

    outputs_days: float | None
    rejected_days: float | None
    protected: frozenset[int]
    proof: str


@dataclass(frozen=True)
class StudyShare:
    """What goes of one study, in runs and bytes.

    ``outputs`` counts runs that stay and lose their output; ``bytes`` is the text of all outputs.
    """

    study: int
    rejected: int
    outputs: int
    bytes: int


@dataclass(frozen=True)
class Pruned:
    """What goes, or has gone: by study, and the outputs that no run names then."""

    studies: tuple[StudyShare, ...]
    unnamed: int
    unnamed_bytes: int

    @property
    def bytes(self) -> int:
        """The bytes of everything that goes."""
        return self.unnamed_bytes + sum(share.bytes for share in self.studies)


def plan(database: Database, rule: PruneRule) -> Pruned:
    """What :func:`prune` would remove now; nothing is changed."""
    with database.read() as connection:
        conditions = _Conditions(connection, database, rule)
        shares = _shares(connection, conditions, ())
        unnamed, size = 0, 0
        for table, column in UNNAMED:
            stays = [column.is_not(None), ~conditions.rejected]
            if table is s.printed_lines:
                stays.append(~conditions.outputs)
            named = select(column).where(*stays)
            number, text_bytes = _unnamed(connection, table, table.c.id.not_in(named))
            unnamed, size = unnamed + number, size + text_bytes
    return Pruned(tuple(shares), unnamed, size)


def busy(database: Database) -> tuple[frozenset[int], frozenset[int]]:
    """Ids of the studies with running trials, and of those in which workers have roles."""
    with database.read() as connection:
        running = select(s.trial.c.study_id).where(s.trial.c.state == RUNNING).distinct()
        roles = select(s.role.c.study_id).distinct()
        return frozenset(connection.scalars(running)), frozenset(connection.scalars(roles))


def prune(database: Database, rule: PruneRule, expected: Pruned) -> Pruned:
    """Remove what a plan has; returns what has gone.

    A study on which a trial is running now is left out, and so are its outputs.
    """
    shares: list[StudyShare] = []
    for number in (share.study for share in expected.studies):
        with database.write() as connection:
            shares += _prune_study(connection, database, rule, number)
    unnamed, size = 0, 0
    for table, column in UNNAMED:
        try:
            with database.write() as connection:
                number, text_bytes = _remove_unnamed(connection, table, column)
        except UsageError as problem:
            if problem.code != "store.inconsistent":
                raise
            continue  # A worker has named a row meanwhile; the next time the others go.
        unnamed, size = unnamed + number, size + text_bytes
    return Pruned(tuple(shares), unnamed, size)


def _remove_unnamed(
    connection: Connection, table: Table, column: ColumnElement[int]
) -> tuple[int, int]:
    """Remove the rows of a table that no run names; their number, and the bytes of their text."""
    named = select(column).where(column.is_not(None))
    condition = table.c.id.not_in(named)
    number, text_bytes = _unnamed(connection, table, condition)
    if number:
        with _index(connection, column):
            if table is s.read_back:
                of_unnamed = s.read_back_value.c.read_back_id.not_in(named)
                connection.execute(delete(s.read_back_value).where(of_unnamed))
            connection.execute(delete(table).where(condition))
    return number, text_bytes


def _prune_study(
    connection: Connection, database: Database, rule: PruneRule, number: int
) -> list[StudyShare]:
    studies.lock(connection, number)
    running = select(s.trial.c.id).where(s.trial.c.study_id == number, s.trial.c.state == RUNNING)
    if connection.scalar(running.limit(1)) is not None:
        return []
    conditions = _Conditions(connection, database, rule)
    of_study = s.run.c.study_id == number
    shares = _shares(connection, conditions, (of_study,))
    # The outputs first: a rejected run that stays loses its output, too.
    connection.execute(delete(s.run).where(of_study, conditions.rejected))
    connection.execute(
        update(s.run)
        .where(of_study, conditions.outputs)
        .values(stdout_tail="", stderr_tail="", printed_id=None, printed_change=None)
    )
    return shares


class _Conditions:
    """The conditions of the runs that go, and of those that stay and lose their output."""

    def __init__(self, connection: Connection, database: Database, rule: PruneRule) -> None:
        now = database_now(connection, database.dialect)
        open_study = s.run.c.study_id.not_in(sorted(rule.protected))

        def older(days: float | None) -> ColumnElement[bool]:
            if days is None:
                return s.run.c.id.is_(None)
            return and_(open_study, s.run.c.started_at < now - days * _DAY_S)

        other, newer = s.run.alias("other"), s.run.alias("newer")
        has_other = or_(
            s.run.c.trial_id.is_(None),
            exists(
                select(other.c.id).where(
                    other.c.trial_id == s.run.c.trial_id, other.c.state != REJECTED
                )
            ),
        )
        has_newer = exists(
            select(newer.c.id).where(
                newer.c.study_id == s.run.c.study_id, newer.c.number > s.run.c.number
            )
        )
        is_proof = or_(s.run.c.phase == rule.proof, s.run.c.phase.startswith(f"{rule.proof}:"))
        self.rejected = and_(
            s.run.c.state == REJECTED, older(rule.rejected_days), ~is_proof, has_other, has_newer
        )
        has_output = or_(
            s.run.c.stdout_tail != "", s.run.c.stderr_tail != "", s.run.c.printed_id.is_not(None)
        )
        self.outputs = and_(older(rule.outputs_days), has_output)


def _shares(
    connection: Connection, conditions: _Conditions, further: Sequence[ColumnElement[bool]]
) -> list[StudyShare]:
    """What goes of each study, the lowest id first."""
    texts = (s.run.c.stdout_tail, s.run.c.stderr_tail, s.run.c.printed_change)
    size = sum((func.coalesce(_bytes(connection, text), 0) for text in texts[1:]),
               func.coalesce(_bytes(connection, texts[0]), 0))  # fmt: skip
    counts: dict[int, list[int]] = {}
    kinds = (conditions.rejected, and_(conditions.outputs, ~conditions.rejected))
    for place, condition in enumerate(kinds):
        query = (
            select(s.run.c.study_id, func.count(), func.sum(size))
            .where(*further, condition)
            .group_by(s.run.c.study_id)
        )
        for study, number, text_bytes in connection.execute(query):
            row = counts.setdefault(int(study), [0, 0, 0])
            row[place] += int(number)
            row[2] += int(text_bytes or 0)
    return [StudyShare(study, *row) for study, row in sorted(counts.items())]


def _unnamed(
    connection: Connection, table: Table, condition: ColumnElement[bool]
) -> tuple[int, int]:
    """The number of rows of a table that no run names, and the bytes of their text."""
    column = table.c.document if table is s.printed_lines else table.c.hash
    query = select(func.count(), func.sum(_bytes(connection, column))).where(condition)
    number, size = connection.execute(query).one()
    return int(number), int(size or 0)


def _bytes(connection: Connection, column: ColumnElement[str]) -> ColumnElement[int]:
    """The length of a text in bytes."""
    if connection.dialect.name == "sqlite":
        return func.length(cast(column, LargeBinary))
    return func.octet_length(column)


@contextmanager
def _index(connection: Connection, column: ColumnElement[int]) -> Iterator[None]:
    """An index on a column of runs, for this transaction only.

    SQLite looks for the runs that name a row before it removes the row, and would read all runs for
    each.
    """
    if connection.dialect.name != "sqlite":
        yield
        return
    name = f"prune_{column.key}"
    connection.exec_driver_sql(f"CREATE INDEX {name} ON run ({column.key})")
    yield
    connection.exec_driver_sql(f"DROP INDEX {name}")
