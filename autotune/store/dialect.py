"""What SQLite and PostgreSQL do in different ways."""

from __future__ import annotations

from typing import Protocol

from sqlalchemy import URL, Connection, Engine
from sqlalchemy.exc import DBAPIError

from autotune.errors import AutotuneError, WorkError
from runner.passwords import mask_password

WRITES = "autotune_writes"
"""Execution option of a connection that will write."""


def driver_words(error: Exception) -> str:
    """The driver's message on one line, without SQLAlchemy's additions and without passwords."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return mask_password(" ".join(str(cause).split()))


class Dialect(Protocol):
    """The operations that SQLite and PostgreSQL do in different ways."""

    shares_database: bool
    """True if tables of other programs may be in the same database."""

    def engine(self, url: URL) -> Engine: ...

    def lock(self, connection: Connection) -> None:
        """Prevent other processes from creating or migrating tables until the transaction ends."""

    def ready(self, engine: Engine) -> None:
        """Apply the settings to a database that is known to be a store."""

    def compact(self, engine: Engine) -> bool:
        """Give the space of removed rows back to the disk; False if others prevent it."""
        ...

    def now(self) -> str:
        """SQL for the seconds since the epoch by the database's clock; workers' may differ."""
        ...

    def iso_time(self, seconds: str) -> str:
        """SQL that writes seconds since the epoch as ISO 8601 in UTC."""
        ...

    def explain(self, message: str) -> AutotuneError | None:
        """The error for a driver's message, in plain words, or None for an unknown message."""
        ...

    def is_replaced(self) -> bool:
        """True if the open database was replaced or deleted."""
        ...

    def save(self, engine: Engine) -> WorkError | None:
        """Save the content of a replaced database; the returned error says where.

        None if nothing was saved: the connection is in use and no other can be opened.
        """
        ...
