"""What several workers of one study ask of the store: claims, leases, roles."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Connection

from autotune.store import leases, studies, trials
from autotune.store.database import Database
from autotune.store.model import Trial, Value, Worker


class Shared:
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
    ) -> Trial | None:
        """As :meth:`add_trial`, with a lease, where no trial of the study has this setting yet.

        None where another worker was faster, or the study has ``most`` trials.  Leases are renewed
        by :meth:`beat`.
        """
        with self._database.write() as connection:
            if not trials.may_open(connection, study_id, key, most):
                return None
            at = leases.now(connection, self._database.dialect)
            return trials.add(connection, study_id, setting, key, attrs or {}, origin, at)

    def beat(self, study_id: int) -> int:
        """Say that this process lives: renews its leases in a study; gives their number."""
        with self._database.write() as connection:
            return leases.beat(connection, self._database.dialect, study_id)

    def take_role(self, study_id: int, name: str) -> bool:
        """Whether this process holds a role of the study from now on; one worker at a time does."""
        with self._database.write() as connection:
            return leases.take_role(connection, self._database.dialect, study_id, name)

    def role_holder(self, study_id: int, name: str) -> str | None:
        """``host:pid`` of who holds a role, None where nobody does or its lease has run out."""
        with self._database.read() as connection:
            return leases.role_holder(connection, self._database.dialect, study_id, name)

    def enroll(self, study_id: int) -> None:
        """Say that this process takes part in a study, until :meth:`release`."""
        with self._database.write() as connection:
            leases.enroll(connection, self._database.dialect, study_id)

    def workers(self, study_id: int) -> list[Worker]:
        """Who takes part in a study, the one that was seen last first, lost ones too."""
        with self._database.read() as connection:
            return leases.workers(connection, self._database.dialect, study_id)

    def clock(self) -> float:
        """Seconds of the epoch by the database's own clock."""
        with self._database.read() as connection:
            return leases.now(connection, self._database.dialect)

    def release(self, study_id: int) -> None:
        """Give up the roles and the leases that this process holds: others go on at once."""
        with self._database.write() as connection:
            leases.release(connection, self._database.dialect, study_id)

    def recover(
        self, study_id: int, gone_hosts: Collection[str] = (), restarted: bool = True
    ) -> list[Trial]:
        """Take over the trials that a dead process left running, and return them to be repeated.

        They stay "running", with their number, attributes and runs, and belong to this process now;
        of two processes that recover at once only one gets each.  Trials of this very process count
        as left over, so call this before the first trial is added.  A process on another host
        cannot be seen: its trials are left alone unless the host is in ``gone_hosts``, or their
        lease has run out.  ``restarted`` False: this process's own are not left over.
        """

        def left(connection: Connection) -> tuple[float, list[Trial]]:
            now = leases.now(connection, self._database.dialect)
            before = now - leases.LEASE_S
            return now, trials.left_over(connection, study_id, gone_hosts, before, restarted)

        with self._database.read() as connection:
            studies.get(connection, study_id)
            if not left(connection)[1]:
                return []  # By far the most looks of a worker: they hold up nobody.
        with self._database.write() as connection:
            studies.lock(connection, study_id)
            now, found = left(connection)
            return trials.take_over(connection, found, now)
