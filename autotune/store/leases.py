"""Statements about leases: what a worker holds for as long as it is seen.

A worker that measures for long is not a dead one: it is seen every :data:`BEAT_S`, whatever it
does.  Times are the database's own, so that clocks of workers do not matter.
"""

from __future__ import annotations

import hashlib

from sqlalchemy import Connection, insert, select, text, update

from autotune.store import schema as s
from autotune.store import studies
from autotune.store.dialect import Dialect
from autotune.store.model import RUNNING, Worker
from autotune.store.owner import Process
from autotune.store.trials import owner_columns

BEAT_S = 10.0
LEASE_S = 60.0
"""A lease that was not renewed for so long is free."""
_WORKER = "worker:"
"""How the names of the roles begin that say who takes part."""


def now(connection: Connection, dialect: Dialect) -> float:
    """Seconds of the epoch by the database's clock."""
    found = connection.scalar(text(f"SELECT {dialect.now()}"))
    assert found is not None
    return float(found)


def beat(connection: Connection, dialect: Dialect, study_id: int) -> int:
    """Renew everything that this process holds in a study; how much that is."""
    me, at = Process.here(), now(connection, dialect)
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
    me, at = Process.here(), now(connection, dialect)
    where = (s.role.c.study_id == study_id, s.role.c.name == name)
    row = connection.execute(select(s.role).where(*where)).first()
    values = {**owner_columns(me), "heartbeat_at": at}
    if row is None:
        connection.execute(insert(s.role).values(study_id=study_id, name=name, **values))
        return True
    owner = Process(row.owner_host, row.owner_scope, row.owner_pid, row.owner_start)
    if owner != me and not owner.surely_dead() and row.heartbeat_at >= at - LEASE_S:
        return False
    connection.execute(update(s.role).where(*where).values(**values))
    return True


def enroll(connection: Connection, dialect: Dialect, study_id: int) -> None:
    """This process takes part in a study until it says that it leaves, or is not seen any more."""
    me = Process.here()
    where = hashlib.sha256(repr(owner_columns(me)).encode()).hexdigest()[:32]
    take_role(connection, dialect, study_id, f"{_WORKER}{where}")


def workers(connection: Connection, dialect: Dialect, study_id: int) -> list[Worker]:
    """Who takes part in a study, the one that was seen last first, lost ones too."""
    at = now(connection, dialect)
    query = select(s.role).where(s.role.c.study_id == study_id, s.role.c.name.startswith(_WORKER))
    found = []
    for row in connection.execute(query.order_by(s.role.c.heartbeat_at.desc(), s.role.c.name)):
        owner = Process(row.owner_host, row.owner_scope, row.owner_pid, row.owner_start)
        seen_s = max(at - row.heartbeat_at, 0.0)
        found.append(Worker(owner, seen_s, owner.surely_dead() or seen_s > LEASE_S))
    return found


def role_holder(connection: Connection, dialect: Dialect, study_id: int, name: str) -> str | None:
    """``host:pid`` of who holds a role; None where nobody does, who did is gone, or its lease has
    run out."""
    row = connection.execute(
        select(s.role).where(s.role.c.study_id == study_id, s.role.c.name == name)
    ).first()
    if row is None or row.heartbeat_at < now(connection, dialect) - LEASE_S:
        return None
    owner = Process(row.owner_host, row.owner_scope, row.owner_pid, row.owner_start)
    if owner.surely_dead():
        return None
    return f"{row.owner_host}:{row.owner_pid}"


def release(connection: Connection, dialect: Dialect, study_id: int) -> None:
    """Give up every role that this process holds, and let the leases of its trials run out."""
    me = owner_columns(Process.here())
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
        .values(heartbeat_at=now(connection, dialect) - LEASE_S - 1)
    )
