"""One opened database: transactions, and the driver's errors as messages to the user."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import URL, Connection
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from autotune.errors import UsageError, WorkError
from autotune.store.dialect import WRITES, Dialect, Postgresql, Sqlite
from autotune.store.location import Location, mask, prepare_file

BUSY_TIMEOUT_S = 30.0


class Database:
    """``read`` and ``write`` are one transaction each; ``shown`` names it without a password."""

    def __init__(self, location: Location, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        self.location = location
        self.shown = location.shown
        self.dialect: Dialect = Postgresql()
        if location.path is not None:
            prepare_file(location.path)
            self.dialect = Sqlite(location.path, busy_timeout_s)
        self._engine = self.dialect.engine(location.url)
        self._writer = self._engine.execution_options(**{WRITES: True})

    @property
    def url(self) -> URL:
        return self.location.url

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that sees one state of the database throughout."""
        with self._explained(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that is kept whole or not at all; durable when the block has ended."""
        with self._explained(), self._writer.begin() as connection:
            yield connection

    def ready(self) -> None:
        with self._explained():
            self.dialect.ready(self._engine)

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except IntegrityError as error:
            raise UsageError(
                f"the results database {self.shown} rejects inconsistent data (a study or "
                f"trial that does not exist, a number given twice): {_words(error)}"
            ) from error
        except (SQLAlchemyError, sqlite3.Error, OSError) as error:
            words = _words(error)
            known = self.dialect.explain(words)
            raise known or WorkError(
                f"the results database {self.shown} failed: {words}"
            ) from error


def _words(error: Exception) -> str:
    """The driver's own words in one line, without SQLAlchemy's decoration and without passwords."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return mask(" ".join(str(cause).split()))
