"""An opened database: transactions, and the driver's errors as messages."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import URL, Connection
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from autotune.errors import UsageError, WorkError
from autotune.store.dialect import WRITES, Dialect, driver_words
from autotune.store.location import Location, prepare_file
from autotune.store.postgresql import Postgresql
from autotune.store.row_checks import TOLERATES, Damage
from autotune.store.sqlite import Sqlite
from runner.files.paths import exists
from runner.supervise import DeferredInterrupts

BUSY_TIMEOUT_S = 30.0


class Database:
    """An opened database; ``label`` names it in messages, without a password.

    ``read`` and ``write`` are one transaction each; a Ctrl-C meanwhile is raised at its end. With
    ``read_only`` the database itself refuses every write, and no file is created. With ``tolerant``
    damaged rows are skipped (:mod:`autotune.store.row_checks`). Raises UsageError for inconsistent
    data, and the dialect's error or WorkError if the database fails.
    """

    def __init__(
        self,
        location: Location,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
        read_only: bool = False,
        tolerant: bool = False,
    ) -> None:
        self.location = location
        self.label = location.label
        self.dialect: Dialect = Postgresql(read_only)
        if location.path is not None:
            if not read_only:
                prepare_file(location.path)
            self.dialect = Sqlite(location.path, busy_timeout_s, read_only)
        self._engine = self.dialect.engine(location.url)
        self._reader = self._engine
        self.damage = Damage()
        """Rows that were left out; always empty if the database does not tolerate any."""
        if tolerant:
            self._reader = self._engine.execution_options(**{TOLERATES: self.damage})
        self._writer = self._engine.execution_options(**{WRITES: True})
        self._replacement_error: WorkError | None = None
        self._checking = threading.Lock()

    @property
    def url(self) -> URL:
        """The database's location, including the password; not for messages."""
        return self.location.url

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that sees one state of the database from beginning to end."""
        with _held_back(), self._explain_errors(), self._reader.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that is stored completely or not at all; durable after the block.

        Raises WorkError as :meth:`check_place`; the copy then has what the block stored.
        """
        if self._replacement_error is not None:
            raise self._replacement_error
        with _held_back(), self._explain_errors():
            with self._writer.begin() as connection:
                yield connection
            self.check_place()

    def check_place(self) -> None:
        """Raise WorkError if the opened file no longer has its name.

        Somebody deleted or replaced it: later writes would vanish with the last connection. The
        first time, the open file's content is saved to a new file, which the message names.
        """
        with self._checking:
            if self._replacement_error is None and self.dialect.is_replaced():
                # None: the only open connection is in use; its transaction ends with a check, too.
                self._replacement_error = self.dialect.save(self._engine)
        if self._replacement_error is not None:
            raise self._replacement_error

    def ready(self) -> None:
        """Apply the settings to a database that is known to be a store."""
        with _held_back(), self._explain_errors():
            self.dialect.ready(self._engine)

    def compact(self) -> bool:
        """Give the space of removed rows back to the disk; False if other processes prevent it.

        A server does this by itself (autovacuum).
        """
        with _held_back(), self._explain_errors():
            return self.dialect.compact(self._engine)

    @property
    def size(self) -> int | None:
        """Bytes of the file and its log on the disk; None for a server."""
        path = self.location.path
        if path is None:
            return None
        places = (path, path.with_name(f"{path.name}-wal"))
        return sum(place.stat().st_size for place in places if exists(place))

    def close(self) -> None:
        """Close all connections."""
        with _held_back():
            self._engine.dispose()

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        try:
            yield
        except IntegrityError as error:
            raise UsageError(
                f"the results database {self.label} rejects inconsistent data (a study or "
                f"trial that does not exist, a number given twice): {driver_words(error)}",
                code="store.inconsistent",
            ) from error
        except (SQLAlchemyError, sqlite3.Error, OSError) as error:
            words = driver_words(error)
            explanation = self.dialect.explain(words)
            raise explanation or WorkError(
                f"the results database {self.label} failed: {words}", code="store.fails"
            ) from error


@contextmanager
def _held_back() -> Iterator[None]:
    """Hold a Ctrl-C back until the block has ended; a second one ends the block.

    Within SQLAlchemy it would leave the transaction open and the database locked by this process.
    The second one is for a server that does not respond.
    """
    interrupts = DeferredInterrupts(_raise_the_second)
    try:
        with interrupts:
            yield
    finally:
        # An outer DeferredInterrupts reports it.
        if interrupts.count and not DeferredInterrupts.is_entered():
            raise KeyboardInterrupt


def _raise_the_second(count: int) -> None:
    if count > 1:
        raise KeyboardInterrupt
