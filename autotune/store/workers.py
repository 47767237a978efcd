"""What several workers of one study ask of the store: claims, leases, roles.

Statements about leases: what a worker holds for as long as it is seen.

A worker that measures for long is not a dead one: it is seen every :data:`BEAT_S`, whatever it
does.  Times are the database's own, so that clocks of workers do not matter.
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
        """As :meth:`add_trial`, with a lease, where no trial of the study has this setting yet.

        None where another worker was faster, or the study has ``most`` trials.  Leases are renewed
        by :meth:`renew_lease`.
        """
        with self._database.write() as connection:
            if not trials.may_open(connection, study_id, key, most):
                return None
            at = database_now(connection, self._database.dialect)
            return trials.add(connection, study_id, setting, key, attrs or {}, origin, at)

    def beat(self, study_id: int) -> int:
        """Say that this process lives: renews its leases in a study; gives their number."""
        with self._database.write() as connection:
            return renew_lease(connection, self._database.dialect, study_id)

    def take_role(self, study_id: int, name: str) -> bool:
        """Whether this process holds a role of the study from now on; one worker at a time does."""
        with self._database.write() as connection:
            return take_role(connection, self._database.dialect, study_id, name)

    def role_holder(self, study_id: int, name: str) -> str | None:
        """``host:pid`` of who holds a role, None where nobody does or its lease has run out."""
        with self._database.read() as connection:
            return role_holder(connection, self._database.dialect, study_id, name)

    def enroll(self, study_id: int) -> None:
        """Say that this process takes part in a study, until :meth:`release`."""
        with self._database.write() as connection:
            enroll(connection, self._database.dialect, study_id)

    def workers(self, study_id: int) -> list[WorkerRecord]:
        """Who takes part in a study, the one that was seen last first, lost ones too."""
        with self._database.read() as connection:
            return workers(connection, self._database.dialect, study_id)

    def clock(self) -> float:
        """Seconds of the epoch by the database's own clock."""
        with self._database.read() as connection:
            return database_now(connection, self._database.dialect)

    def release(self, study_id: int) -> None:
        """Give up the roles and the leases that this process holds: others go on at once."""
        with self._database.write() as connection:
            release(connection, self._database.dialect, study_id)

    def recover(
        self, study_id: int, gone_hosts: Collection[str] = (), restarted: bool = True
    ) -> list[TrialRecord]:
        """Take over the trials that a dead process left running, and return them to be repeated.

        They stay "running", with their number, attributes and runs, and belong to this process now;
        of two processes that recover at once only one gets each.  Trials of this very process count
        as left over, so call this before the first trial is added.  A process on another host
        cannot be seen: its trials are left alone unless the host is in ``gone_hosts``, or their
        lease has run out.  ``restarted`` False: this process's own are not left over.
        """

        def left(connection: Connection) -> tuple[float, list[TrialRecord]]:
            now = database_now(connection, self._database.dialect)
            before = now - LEASE_S
            return now, trials.left_over(connection, study_id, gone_hosts, before, restarted)

        with self._database.read() as connection:
            studies.get(connection, study_id)
            if not left(connection)[1]:
                return []  # By far the most looks of a worker: they hold up nobody.
        with self._database.write() as connection:
            studies.lock(connection, study_id)
            now, found = left(connection)
            return trials.take_over(connection, found, now)


BEAT_S = 10.0
LEASE_S = 60.0
"""A lease that was not renewed for so long is free."""
_WORKER = "worker:"
"""How the names of the roles begin that say who takes part."""


def database_now(connection: Connection, dialect: Dialect) -> float:
    """Seconds of the epoch by the database's clock."""
    found = connection.scalar(text(f"SELECT {dialect.now()}"))
    assert found is not None
    return float(found)


def renew_lease(connection: Connection, dialect: Dialect, study_id: int) -> int:
    """Renew everything that this process holds in a study; how much that is."""
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
    """Whether this process holds the role from now on: nobody did, or who did is gone."""
    studies.lock(connection, study_id)
    me, at = OwnerProcess.here(), database_now(connection, dialect)
    where = (s.role.c.study_id == study_id, s.role.c.name == name)
    row = connection.execute(select(s.role).where(*where)).first()
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
    """This process takes part in a study until it says that it leaves, or is not seen any more."""
    me = OwnerProcess.here()
    where = hashlib.sha256(repr(owner_columns(me)).encode()).hexdigest()[:32]
    take_role(connection, dialect, study_id, f"{_WORKER}{where}")


def workers(connection: Connection, dialect: Dialect, study_id: int) -> list[WorkerRecord]:
    """Who takes part in a study, the one that was seen last first, lost ones too."""
    at = database_now(connection, dialect)
    query = select(s.role).where(s.role.c.study_id == study_id, s.role.c.name.startswith(_WORKER))
    found = []
    for row in connection.execute(query.order_by(s.role.c.heartbeat_at.desc(), s.role.c.name)):
        owner = OwnerProcess(row.owner_host, row.owner_scope, row.owner_pid, row.owner_start)
        seen_s = max(at - row.heartbeat_at, 0.0)
        found.append(WorkerRecord(owner, seen_s, owner.surely_dead() or seen_s > LEASE_S))
    return found


def role_holder(connection: Connection, dialect: Dialect, study_id: int, name: str) -> str | None:
    """``host:pid`` of who holds a role; None where nobody does, who did is gone, or its lease has
    run out."""
    row = connection.execute(
        select(s.role).where(s.role.c.study_id == study_id, s.role.c.name == name)
    ).first()
    if row is None or row.heartbeat_at < database_now(connection, dialect) - LEASE_S:
        return None
    owner = OwnerProcess(row.owner_host, row.owner_scope, row.owner_pid, row.owner_start)
    if owner.surely_dead():
        return None
    return f"{row.owner_host}:{row.owner_pid}"


def release(connection: Connection, dialect: Dialect, study_id: int) -> None:
    """Give up every role that this process holds, and let the leases of its trials run out."""
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
