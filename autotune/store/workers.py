"""Workers of a study in the store: claims of trials, leases, roles.

The first part is what the store offers to workers; the second part has the statements about leases.

A worker holds a lease as long as it is seen. It is seen every :data:`BEAT_S` seconds, also during a
long measurement, so a long measurement does not look like a dead worker. Times are the database's
own, so that the clocks of workers do not matter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Connection, insert, select, text, update

from autotune.store import schema as s
from autotune.store import studies, trials
from autotune.store.database import Database, Dialect
from autotune.store.model import RUNNING, OwnerProcess, TrialRecord, Value, WorkerRecord
from autotune.store.rows import all_rows, read_first
from autotune.store.trials import owner_columns


class WorkerClaims:
    """Part of :class:`autotune.store.Store`; every method is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim_trial(
        self,
        study_id: int,
        setting: Mapping[str, Value],
        key: str,
        attrs: Mapping[str, Any] | None = None,
        most: int | None = None,
        origin: str = "search",
    ) -> TrialRecord | None:
        """Add a trial as :meth:`add_trial`, with a lease, if its setting has no trial in the study.

        Returns None if another worker was faster, or if the study has ``most`` trials. :meth:`beat`
        renews leases.
        """
        with self._database.write() as connection:
            if not trials.may_open(connection, study_id, key, most):
                return None
            at = database_now(connection, self._database.dialect)
            return trials.add(connection, study_id, setting, key, attrs or {}, origin, at)

    def beat(self, study_id: int) -> int:
        """Renew the leases of this process in a study, as a sign of life; returns their number."""
        with self._database.write() as connection:
            return renew_lease(connection, self._database.dialect, study_id)

    def take_role(self, study_id: int, name: str) -> bool:
        """Whether this process now holds a role of the study; only one worker can hold it."""
        with self._database.write() as connection:
            return take_role(connection, self._database.dialect, study_id, name)

    def role_holder(self, study_id: int, name: str) -> str | None:
        """The holder of a role as ``host:pid``; None if there is none or its lease has expired."""
        with self._database.read() as connection:
            return role_holder(connection, self._database.dialect, study_id, name)

    def enroll(self, study_id: int) -> None:
        """Record that this process takes part in a study, until :meth:`release`."""
        with self._database.write() as connection:
            enroll(connection, self._database.dialect, study_id)

    def workers(self, study_id: int) -> list[WorkerRecord]:
        """The workers of a study, also lost ones; the one seen last comes first."""
        with self._database.read() as connection:
            return workers(connection, self._database.dialect, study_id)

    def clock(self) -> float:
        """Seconds since the epoch by the database's own clock."""
        with self._database.read() as connection:
            return database_now(connection, self._database.dialect)

    def release(self, study_id: int) -> None:
        """Give up the roles and leases of this process, so that other workers continue at once."""
        with self._database.write() as connection:
            release(connection, self._database.dialect, study_id)

    def recover(
        self, study_id: int, gone_hosts: Collection[str] = (), restarted: bool = True
    ) -> list[TrialRecord]:
        """Take over the trials that a dead process left running; returns them to be repeated.

        The trials stay "running", with their number, attributes and runs, and belong to this
        process now. Of two processes that recover at once, only one gets each trial. Running trials
        of this process itself count as left over, unless ``restarted`` is False; so call this
        before the first trial is added. A process on another host cannot be seen: its trials are
        taken only if the host is in ``gone_hosts`` or if their lease has expired. Raises UsageError
        for an unknown study.
        """

        def left(connection: Connection) -> tuple[float, list[TrialRecord]]:
            now = database_now(connection, self._database.dialect)
            before = now - LEASE_S
            return now, trials.left_over(connection, study_id, gone_hosts, before, restarted)

        with self._database.read() as connection:
            studies.get(connection, study_id)
            if not left(connection)[1]:
                return []  # The most frequent case by far; it must not block other workers.
        with self._database.write() as connection:
            studies.lock(connection, study_id)
            now, found = left(connection)
            return trials.take_over(connection, found, now)


BEAT_S = 10.0
LEASE_S = 60.0
"""Seconds after which a lease that was not renewed expires."""
_WORKER = "worker:"
"""Prefix of the roles that record which processes take part."""


def database_now(connection: Connection, dialect: Dialect) -> float:
    """Seconds since the epoch by the database's clock."""
    found = connection.scalar(text(f"SELECT {dialect.now()}"))
    assert found is not None
    return float(found)


def renew_lease(connection: Connection, dialect: Dialect, study_id: int) -> int:
    """Renew the leases that this process holds in a study; returns their number."""
    me, at = OwnerProcess.here(), database_now(connection, dialect)
    done = 0
    for table, held in ((s.trial, [s.trial.c.state == RUNNING]), (s.role, [])):
        done += connection.execute(
            update(table)
            .where(table.c.study_id == study_id, table.c.heartbeat_at.is_not(None))
            .where(*(table.c[name] == value for name, value in owner_columns(me).items()))
            .where(*held)
            .values(heartbeat_at=at)
        ).rowcount
    return done


def take_role(connection: Connection, dialect: Dialect, study_id: int, name: str) -> bool:
    """Whether this process now holds the role: it was free, or its holder is gone."""
    studies.lock(connection, study_id)
    me, at = OwnerProcess.here(), database_now(connection, dialect)
    where = (s.role.c.study_id == study_id, s.role.c.name == name)
    row = read_first(connection, select(s.role).where(*where))
    values = {**owner_columns(me), "heartbeat_at": at}
    if row is None:
        connection.execute(insert(s.role).values(study_id=study_id, name=name, **values))
        return True
    owner = OwnerProcess(row.owner_host, row.owner_scope, row.owner_pid, row.owner_start)
    if owner != me and not owner.surely_dead() and row.heartbeat_at >= at - LEASE_S:
        return False
    connection.execute(update(s.role).where(*where).values(**values))
    return True


def enroll(connection: Connection, dialect: Dialect, study_id: int) -> None:
    """Record that this process takes part in a study, until it leaves or is not seen any more."""
    me = OwnerProcess.here()
    where = hashlib.sha256(repr(owner_columns(me)).encode()).hexdigest()[:32]
    take_role(connection, dialect, study_id, f"{_WORKER}{where}")


def workers(connection: Connection, dialect: Dialect, study_id: int) -> list[WorkerRecord]:
    """The workers of a study, also lost ones; the one seen last comes first."""
    at = database_now(connection, dialect)
    query = select(s.role).where(s.role.c.study_id == study_id, s.role.c.name.startswith(_WORKER))
    found = []
    for row in all_rows(connection, query.order_by(s.role.c.heartbeat_at.desc(), s.role.c.name)):
        owner = OwnerProcess(row.owner_host, row.owner_scope, row.owner_pid, row.owner_start)
        seen_s = max(at - row.heartbeat_at, 0.0)
        found.append(WorkerRecord(owner, seen_s, owner.surely_dead() or seen_s > LEASE_S))
    return found


def role_holder(connection: Connection, dialect: Dialect, study_id: int, name: str) -> str | None:
    """The holder of a role as ``host:pid``; None if it is free or gone, or its lease expired."""
    query = select(s.role).where(s.role.c.study_id == study_id, s.role.c.name == name)
    row = next(iter(all_rows(connection, query)), None)
    if row is None or row.heartbeat_at < database_now(connection, dialect) - LEASE_S:
        return None
    owner = OwnerProcess(row.owner_host, row.owner_scope, row.owner_pid, row.owner_start)
    if owner.surely_dead():
        return None
    return f"{row.owner_host}:{row.owner_pid}"


def release(connection: Connection, dialect: Dialect, study_id: int) -> None:
    """Give up every role of this process, and let the leases of its trials expire."""
    me = owner_columns(OwnerProcess.here())
    connection.execute(
        s.role.delete()
        .where(s.role.c.study_id == study_id)
        .where(*(s.role.c[name] == value for name, value in me.items()))
    )
    connection.execute(
        update(s.trial)
        .where(s.trial.c.study_id == study_id, s.trial.c.state == RUNNING)
        .where(s.trial.c.heartbeat_at.is_not(None))
        .where(*(s.trial.c[name] == value for name, value in me.items()))
        .values(heartbeat_at=database_now(connection, dialect) - LEASE_S - 1)
    )
