"""Workers of a study in the store: claims of trials, leases, roles.

:class:`WorkerClaims` is the interface of the store for workers; the statements about leases follow.

A worker holds a lease as long as it shows signs of life (:mod:`autotune.store.leases`), every
:data:`~autotune.store.leases.BEAT_S` seconds, even during a long measurement. Heartbeat times are
the database's; they are shown, and compared with a clock only if one look must suffice.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, case, insert, select, text, update

from autotune.store import schema as s
from autotune.store import studies, trials
from autotune.store.database import Database
from autotune.store.dialect import Dialect
from autotune.store.leases import GIVEN_UP, LEASE_S, Lease, LeaseWatch, Sign
from autotune.store.model import (
    RUNNING,
    OwnerProcess,
    TrialDraft,
    TrialRecord,
    Value,
    WorkerRecord,
)
from autotune.store.row_checks import all_rows, read_first
from autotune.store.trials import owner_columns


class WorkerClaims:
    """Part of :class:`autotune.store.Store`; every method is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._watch = LeaseWatch()
        self._looked_s: dict[int, float] = {}
        """When this process last looked at the running trials of a study."""

    def claim_trial(
        self,
        study_id: int,
        setting: Mapping[str, Value],
        key: str,
        attrs: Mapping[str, Any] | None = None,
        most: int | None = None,
        spares: Sequence[TrialDraft] = (),
    ) -> TrialRecord | None:
        """Add a trial as :meth:`add_trial` if its setting has no trial in the study.

        If it has one, the first of the ``spares`` that has none is added instead. Returns None if
        other workers were faster at all of them, or if the study has ``most`` trials.
        """
        drafts = [TrialDraft(setting, key, attrs or {}), *spares]
        with self._database.write() as connection:
            draft = trials.first_free(connection, study_id, drafts, most)
            if draft is None:
                return None
            return trials.add(connection, self._database.dialect, study_id, draft)

    def trial_news(
        self, study_id: int, since: int, running: Collection[int]
    ) -> tuple[list[TrialRecord], bool]:
        """What has changed for a process that knows the trials before the number ``since``.

        ``running``: ids of those that ran when it last looked. Returns the trials from ``since``
        on and those of ``running`` that have ended, in order; once in :data:`LOOK_S` also those
        that still run, and then whether :meth:`recover` would take one over.
        """
        now_s = self._watch.now_s
        looks = now_s - self._looked_s.get(study_id, -math.inf) >= LOOK_S
        with self._database.read() as connection:
            records = trials.news(connection, study_id, since, running, looks)
        if not looks:
            return records, False
        self._looked_s[study_id] = now_s
        still = [record for record in records if record.state == RUNNING]
        leases = _look_at(still, study_id, self._watch)
        over = {number for number, lease in leases.items() if lease is Lease.OVER}
        return records, bool(trials.left_over(still, (), over, is_restart=False))

    def own_seed(self, study_id: int, seed: int) -> int:
        """The seed of this process's proposals in a study that was begun with ``seed``.

        Beside other workers that take part it is a seed of its own, so that no two draw the same.
        """
        me = OwnerProcess.current()
        if all(worker.owner == me or worker.is_lost for worker in self.workers(study_id)):
            return seed
        digest = hashlib.sha256(f"{seed} {me}".encode()).digest()
        return int.from_bytes(digest[:8], "big")

    def beat(self, study_id: int) -> int:
        """Renew the leases of this process in a study, and check those of others.

        Returns the number of leases that were renewed.
        """
        with self._database.write() as connection:
            renewals = renew_lease(connection, self._database.dialect, study_id)
        with self._database.read() as connection:
            trial_leases(connection, study_id, self._watch)
            role_leases(connection, study_id, self._watch)
        return renewals

    def take_role(self, study_id: int, name: str) -> bool:
        """True if this process now holds a role of the study; only one worker can hold it."""
        with self._database.write() as connection:
            return take_role(connection, self._database.dialect, study_id, name, self._watch)

    def is_role_active(self, study_id: int, name: str) -> bool:
        """True if the holder of a role is surely alive: on this machine, or seen to renew its
        lease.

        False also if this is not known yet, which lasts one lease at most.
        """
        with self._database.read() as connection:
            row = read_first(connection, _role(study_id, name))
            lease = role_leases(connection, study_id, self._watch).get(name)
        if row is None or lease is Lease.OVER:
            return False
        return lease is Lease.ACTIVE or _owner(row).surely_alive()

    def role_holder(self, study_id: int, name: str) -> str | None:
        """The holder of a role as ``host:pid``; None if there is none or it is lost."""
        with self._database.read() as connection:
            row = read_first(connection, _role(study_id, name))
            lease = role_leases(connection, study_id, self._watch).get(name, Lease.UNKNOWN)
            now = database_now(connection, self._database.dialect)
        if row is None or _is_lost(_owner(row), lease, now - row.heartbeat_at):
            return None
        return f"{row.owner_host}:{row.owner_pid}"

    def enroll(self, study_id: int, *, is_waiting: bool = False) -> None:
        """Record that this process takes part in a study, until :meth:`release`.

        ``is_waiting``: it waits for its machine, until it enrolls again without this.
        """
        me = owner_columns(OwnerProcess.current())
        process = hashlib.sha256(repr(me).encode()).hexdigest()[:32]
        self.take_role(study_id, f"{_WORKER}{process}")
        if is_waiting:
            self.take_role(study_id, f"{_WAITING}{process}")
            return
        with self._database.write() as connection:
            name = f"{_WAITING}{process}"
            connection.execute(
                s.role.delete().where(s.role.c.study_id == study_id, s.role.c.name == name)
            )

    def workers(self, study_id: int) -> list[WorkerRecord]:
        """The workers of a study, including lost ones; the one seen last comes first."""
        with self._database.read() as connection:
            dialect = self._database.dialect
            return workers(connection, dialect, study_id, self._watch)

    def lost_trials(self, study_id: int) -> frozenset[int]:
        """Ids of the running trials whose process is lost, as far as this process knows."""
        with self._database.read() as connection:
            now = database_now(connection, self._database.dialect)
            running = trials.listing(connection, study_id, state=RUNNING)
        leases = _look_at(running, study_id, self._watch)
        return frozenset(
            trial.id
            for trial in running
            if _is_lost(
                trial.owner,
                leases.get(trial.id, Lease.UNKNOWN),
                0.0 if trial.heartbeat_at is None else now - trial.heartbeat_at,
            )
        )

    def clock(self) -> float:
        """Seconds since the epoch by the database's own clock."""
        with self._database.read() as connection:
            return database_now(connection, self._database.dialect)

    def release(self, study_id: int) -> None:
        """Give up the roles and leases of this process, so that other workers continue at once."""
        with self._database.write() as connection:
            release(connection, study_id, OwnerProcess.current())

    def give_up(self, study_id: int, owner: OwnerProcess) -> None:
        """The same for a process that has ended, as a scheduler knows, on whatever host."""
        with self._database.write() as connection:
            release(connection, study_id, owner)

    def recover(
        self, study_id: int, gone_hosts: Collection[str] = (), is_restart: bool = True
    ) -> list[TrialRecord]:
        """Take over the running trials of dead processes; returns them to be repeated.

        The trials stay "running", with their number, attributes and runs, and now belong to this
        process. If two processes recover at once, only one gets each trial. Running trials of this
        process itself are included, unless ``is_restart`` is False; so call this before the first
        trial is added. Processes on other hosts are not visible: their trials are taken only if the
        host is in ``gone_hosts``, or if this process saw their lease expire (:meth:`beat`). Raises
        UsageError for an unknown study.
        """

        def left(connection: Connection) -> list[TrialRecord]:
            running = trials.listing(connection, study_id, state=RUNNING)
            leases = _look_at(running, study_id, self._watch)
            over = {number for number, lease in leases.items() if lease is Lease.OVER}
            return trials.left_over(running, gone_hosts, over, is_restart)

        with self._database.read() as connection:
            studies.get(connection, study_id)
            if not left(connection):
                return []  # By far the most frequent case; it must not block other workers.
        with self._database.write() as connection:
            studies.lock(connection, study_id)
            left_trials = left(connection)
            return trials.take_over(
                connection, left_trials, database_now(connection, self._database.dialect)
            )


LOOK_S = 1.0
"""Seconds between two looks at the processes whose trials run."""
_WORKER = "worker:"
"""Prefix of the roles that record the processes of a study."""
_WAITING = "waiting:"
"""Prefix of the further role of such a process that waits for its machine."""
_STEP_S = 0.001
"""A heartbeat exceeds the previous one by this much if the database's clock stands still."""


def database_now(connection: Connection, dialect: Dialect) -> float:
    """Seconds since the epoch by the database's clock."""
    seconds = connection.scalar(text(f"SELECT {dialect.now()}"))
    assert seconds is not None
    return float(seconds)


def _owner(row: Row[Any]) -> OwnerProcess:
    return OwnerProcess(row.owner_host, row.owner_scope, row.owner_pid, row.owner_start)


def _is_lost(owner: OwnerProcess, lease: Lease, age_s: float) -> bool:
    """True if a process is lost; only for display.

    A command that looks only once has not watched the signs, and can only judge the age of the last
    one by the database's clock: ``age_s`` seconds.
    """
    if lease is Lease.OVER or owner.surely_dead():
        return True
    if lease is Lease.ACTIVE or owner.surely_alive():
        return False
    return abs(age_s) > LEASE_S


def _role(study_id: int, name: str) -> Select[Any]:
    return select(s.role).where(s.role.c.study_id == study_id, s.role.c.name == name)


def trial_leases(connection: Connection, study_id: int, watch: LeaseWatch) -> dict[int, Lease]:
    """The state of the leases of the running trials, by the trial's id, after one more look."""
    return _look_at(trials.listing(connection, study_id, state=RUNNING), study_id, watch)


def _look_at(
    running: Collection[TrialRecord], study_id: int, watch: LeaseWatch
) -> dict[int, Lease]:
    """The same for the running trials of a study as they were just read."""
    signs = {trial.id: Sign(trial.owner, trial.heartbeat_at) for trial in running}
    return watch.look(("trial", study_id), signs)


def role_leases(connection: Connection, study_id: int, watch: LeaseWatch) -> dict[str, Lease]:
    """The same for the roles of a study, by name."""
    rows = all_rows(connection, select(s.role).where(s.role.c.study_id == study_id))
    signs = {str(row.name): Sign(_owner(row), row.heartbeat_at) for row in rows}
    return watch.look(("role", study_id), signs)


def renew_lease(connection: Connection, dialect: Dialect, study_id: int) -> int:
    """Renew the leases that this process holds in a study; returns their number."""
    me, at = OwnerProcess.current(), database_now(connection, dialect)
    renewals = 0
    for table, conditions in ((s.trial, [s.trial.c.state == RUNNING]), (s.role, [])):
        renewals += connection.execute(
            update(table)
            .where(table.c.study_id == study_id)
            .where(*(table.c[name] == value for name, value in owner_columns(me).items()))
            .where(*conditions)
            .values(heartbeat_at=case((table.c.heartbeat_at == at, at + _STEP_S), else_=at))
        ).rowcount
    return renewals


def take_role(
    connection: Connection, dialect: Dialect, study_id: int, name: str, watch: LeaseWatch
) -> bool:
    """True if this process now holds the role: it was free, or its holder is gone."""
    studies.lock(connection, study_id)
    me, at = OwnerProcess.current(), database_now(connection, dialect)
    row = read_first(connection, _role(study_id, name))
    values = {**owner_columns(me), "heartbeat_at": at}
    if row is None:
        connection.execute(insert(s.role).values(study_id=study_id, name=name, **values))
        return True
    over = role_leases(connection, study_id, watch).get(name) is Lease.OVER
    if _owner(row) != me and not _owner(row).surely_dead() and not over:
        return False
    where = (s.role.c.study_id == study_id, s.role.c.name == name)
    connection.execute(update(s.role).where(*where).values(**values))
    return True


def workers(
    connection: Connection, dialect: Dialect, study_id: int, watch: LeaseWatch
) -> list[WorkerRecord]:
    """The workers of a study, including lost ones; the one seen last comes first."""
    at = database_now(connection, dialect)
    leases = role_leases(connection, study_id, watch)
    query = select(s.role).where(s.role.c.study_id == study_id)
    rows = all_rows(connection, query.order_by(s.role.c.heartbeat_at.desc(), s.role.c.name))
    names = {row.name for row in rows}
    records = []
    for row in rows:
        if not row.name.startswith(_WORKER):
            continue
        is_waiting = f"{_WAITING}{row.name.removeprefix(_WORKER)}" in names
        age_s = at - row.heartbeat_at
        is_lost = _is_lost(_owner(row), leases.get(row.name, Lease.UNKNOWN), age_s)
        records.append(WorkerRecord(_owner(row), max(age_s, 0.0), is_lost, is_waiting))
    return records


def release(connection: Connection, study_id: int, owner: OwnerProcess) -> None:
    """Give up every role of a process, and the leases of its trials."""
    me = owner_columns(owner)
    connection.execute(
        s.role.delete()
        .where(s.role.c.study_id == study_id)
        .where(*(s.role.c[name] == value for name, value in me.items()))
    )
    connection.execute(
        update(s.trial)
        .where(s.trial.c.study_id == study_id, s.trial.c.state == RUNNING)
        .where(*(s.trial.c[name] == value for name, value in me.items()))
        .values(heartbeat_at=GIVEN_UP)
    )
