"""An opened database: transactions, the driver's errors as messages, dialects, and writers.

:class:`Database` is one opened database. :class:`Sqlite` and :class:`Postgresql` have all that
differs between the two.

:func:`writers` lists who may write the studies of a database; only a server knows this. A column
with the writer of a row is no proof, because whoever may write the row may write that column. A
trigger could set it, but the table's owner may remove the trigger. A server knows only the roles
with the right to write.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shlex
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError, IntegrityError, NoSuchModuleError, SQLAlchemyError

from autotune.errors import AutotuneError, UsageError, WorkError
from autotune.store.location import Location, prepare_file
from autotune.store.row_checks import TOLERATES, Damage
from runner.files.paths import exists
from runner.passwords import mask_password
from runner.supervise import DeferredInterrupts

BUSY_TIMEOUT_S = 30.0
LONGEST_S = 120.0
"""Seconds after which a transaction of SQLite is ended: a foreign file may never end one."""
_PATIENCE_WITH_WRITES = 30
"""A migration writes every row."""
_STEPS = 100_000
"""Instructions of SQLite between two checks of the clock and of signals."""


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
                f"trial that does not exist, a number given twice): {_words(error)}",
                code="store.inconsistent",
            ) from error
        except (SQLAlchemyError, sqlite3.Error, OSError) as error:
            words = _words(error)
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


def _words(error: Exception) -> str:
    """The driver's message on one line, without SQLAlchemy's additions and without passwords."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return mask_password(" ".join(str(cause).split()))


WRITES = "autotune_writes"
"""Execution option of a connection that will write."""

_LOCK_NUMBER = 0x6175746F74756E65  # "autotune" in ASCII
_RETRY_S = 0.02


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


class Sqlite:
    """A SQLite file in write-ahead mode: readers never wait, and one writer works at a time.

    Nothing committed is lost when the process is killed (kill -9). ``synchronous=NORMAL`` leaves
    the flush to the disk to the operating system. So commits survive the process, but not always a
    power cut: the file stays valid, but may lack the last commits.
    """

    shares_database = False

    def __init__(self, path: Path, busy_timeout_s: float, read_only: bool = False) -> None:
        self.path = path
        self.busy_timeout_s = busy_timeout_s
        self.read_only = read_only
        self._opening_inode: tuple[int, int] | None = None
        """Device and inode of the file, set by the first connection."""

    def engine(self, url: URL) -> Engine:
        if not self._has_locks():
            # SQLite mistakes missing lock support for taken locks and would wait.
            raise UsageError(
                f"the results database {self.path} cannot be used, because the file system of "
                f"{self.path.parent} has no file locks; put it on a local disk (--store PATH or "
                "$AUTOTUNE_STORE)",
                code="store.file_system",
            )
        engine = create_engine(url, connect_args={"timeout": self.busy_timeout_s})
        if self.read_only:
            engine = create_engine(url, creator=self._connect_to_read)
        event.listen(engine, "connect", self._same_file)
        event.listen(engine, "connect", _configure)
        event.listen(engine, "begin", self._limit_time)
        event.listen(engine, "checkin", _lift_limit)
        event.listen(engine, "begin", _begin)
        return engine

    def _same_file(self, _connection: Any, _record: Any) -> None:
        """Refuse a connection to any file but that of the first connection."""
        if self._opening_inode is None:
            self._opening_inode = _inode(self.path)
        elif self.is_replaced():
            raise sqlite3.OperationalError(_REPLACED_TEXT)

    def _limit_time(self, connection: Connection) -> None:
        """End a statement that is running when its transaction's time is over."""
        longest_s = LONGEST_S
        if connection.get_execution_options().get(WRITES, False):
            longest_s *= _PATIENCE_WITH_WRITES
        end = time.monotonic() + self.busy_timeout_s + longest_s
        driver: Any = connection.connection.dbapi_connection
        driver.set_progress_handler(lambda: time.monotonic() > end, _STEPS)

    def is_replaced(self) -> bool:
        return self._opening_inode is not None and _inode(self.path) != self._opening_inode

    def save(self, engine: Engine) -> WorkError | None:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        where = f"the results database {self.path} was deleted or replaced by another file"
        try:
            copy = _new_file((self.path.parent, Path.cwd(), Path(tempfile.gettempdir())), stamp)
            raw = engine.raw_connection()
            try:
                raw.cursor().execute("VACUUM INTO ?", (str(copy),))
            finally:
                raw.close()
        except (SQLAlchemyError, sqlite3.Error, OSError) as problem:
            if _REPLACED_TEXT in str(problem):
                copy.unlink(missing_ok=True)
                return None
            return WorkError(
                f"{where} while it was in use, and its content cannot be saved: "
                f"{_words(problem)}; the runs of this command are lost",
                code="store.replaced",
            )
        return WorkError(
            f"{where} while it was in use.\nAll that it held is saved in {copy}.\nTo continue, "
            f"give the same command with --store {shlex.quote(str(copy))}, or move that file to "
            "its place first",
            code="store.replaced",
        )

    def _connect_to_read(self) -> sqlite3.Connection:
        # A URI, because only it can ask for a file that is never written nor created.
        return sqlite3.connect(
            f"file:{quote(str(self.path))}?mode=ro",
            uri=True,
            timeout=self.busy_timeout_s,
            check_same_thread=False,
        )

    def lock(self, connection: Connection) -> None:
        """Do nothing: BEGIN IMMEDIATE has already taken the lock."""

    def ready(self, engine: Engine) -> None:
        """Switch the journal mode; SQLite does not wait for locks here, so this method does."""
        deadline = time.monotonic() + self.busy_timeout_s
        raw = engine.raw_connection()
        try:
            cursor = raw.cursor()
            while True:
                try:
                    cursor.execute("PRAGMA journal_mode=WAL")
                    break
                except sqlite3.OperationalError as error:
                    if "locked" not in str(error) or time.monotonic() > deadline:
                        raise
                    time.sleep(_RETRY_S)
            mode = cursor.fetchall()[0][0]
        finally:
            raw.close()
        if mode != "wal":
            raise UsageError(
                f"the file system of {self.path} does not support SQLite's write-ahead log; "
                "put the results database on a local disk (--store PATH or $AUTOTUNE_STORE)",
                code="store.file_system",
            )

    def compact(self, engine: Engine) -> bool:
        """Write the file anew, as long as no other process writes; readers go on.

        False if a writer holds the lock for too long, or the disk has no space for the copy.
        """
        raw = engine.raw_connection()
        try:
            cursor = raw.cursor()
            try:
                cursor.execute("VACUUM")
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                is_busy, *_ = cursor.fetchall()[0]
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) and "full" not in str(error):
                    raise
                return False
            return not is_busy
        finally:
            raw.close()

    def _has_locks(self) -> bool:
        """True if files beside the database can be locked; the database itself is not touched."""
        try:
            with tempfile.TemporaryFile(dir=self.path.parent) as scratch:
                fcntl.lockf(scratch, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            return problem.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
        return True

    def now(self) -> str:
        return "(julianday('now') - 2440587.5) * 86400.0"

    def iso_time(self, seconds: str) -> str:
        return f"strftime('%Y-%m-%dT%H:%M:%SZ', {seconds}, 'unixepoch')"

    def explain(self, message: str) -> AutotuneError | None:
        where = f"the results database {self.path}"
        if _REPLACED_TEXT in message:
            return WorkError(
                f"{where} was deleted or replaced by another file while it was in use; start the "
                "command again",
                code="store.replaced",
            )
        if "locked" in message:
            return WorkError(
                f"{where} has been locked by another process for more than "
                f"{self.busy_timeout_s:g} s; end that process (fuser -v shows it) or wait, and "
                "give the same command again",
                code="store.locked",
            )
        if "readonly" in message or "unable to open" in message:
            return UsageError(
                f"{where} cannot be written ({message}); make the file and its directory writable, "
                "or choose another one with --store PATH or $AUTOTUNE_STORE",
                code="store.unwritable",
            )
        if "interrupted" in message:
            return WorkError(
                f"{where} did not answer within {LONGEST_S:g} s, and the query was ended; if the "
                "file is not your own, do not use it, else look at it with sqlite3 and `PRAGMA "
                "integrity_check`",
                code="store.slow",
            )
        if "disk is full" in message:
            return WorkError(
                f"{where} cannot grow because its disk is full; free some space and give the "
                "same command again: everything stored so far is safe",
                code="store.disk_full",
            )
        if "not a database" in message:
            return UsageError(
                f"{where} is not a SQLite database; nothing was changed: choose another place "
                "with --store PATH or $AUTOTUNE_STORE",
                code="store.foreign",
            )
        if "malformed" in message:
            return WorkError(
                f"{where} is damaged ({message}); keep the file, try `sqlite3 {self.path} "
                ".recover`, or continue with another one (--store PATH)",
                code="store.damaged",
            )
        return None


_REPLACED_TEXT = "another file has the name of the open database"


def _inode(path: Path) -> tuple[int, int] | None:
    """Device and inode of a file; None if it does not exist or is not visible."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _new_file(folders: Sequence[Path], stamp: str) -> Path:
    """A new, empty, private file for a saved database, in the first suitable folder.

    Raises OSError if there is none.
    """
    problem = OSError(errno.ENOENT, os.strerror(errno.ENOENT))
    for folder in folders:
        try:
            descriptor, name = tempfile.mkstemp(f"-{stamp}.db", "autotune-saved-", folder)
        except OSError as refusal:
            problem = refusal
            continue
        os.close(descriptor)
        return Path(name)
    raise problem


def _configure(connection: Any, _record: Any) -> None:
    """Leave transactions to :func:`_begin` only; the driver must not begin its own."""
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.execute("PRAGMA synchronous=NORMAL")
    # The schema may be foreign: it calls no function that has an effect.
    cursor.execute("PRAGMA trusted_schema=OFF")
    cursor.close()


def _lift_limit(connection: Any, _record: Any) -> None:
    if connection is not None:
        connection.set_progress_handler(None, 0)


def _begin(connection: Connection) -> None:
    """Take a writer's lock at once: a later upgrade fails if another process wrote meanwhile."""
    writes = connection.get_execution_options().get(WRITES, False)
    # By the driver: each measurement has several transactions, and SQLAlchemy's way takes longer
    # than SQLite's statement.
    driver: Any = connection.connection.dbapi_connection
    driver.execute("BEGIN IMMEDIATE" if writes else "BEGIN")


class Postgresql:
    """A PostgreSQL server, for writers on several nodes."""

    shares_database = True

    def __init__(self, read_only: bool = False) -> None:
        self.read_only = read_only

    def engine(self, url: URL) -> Engine:
        connect_args = {}
        if self.read_only:
            # Beside the options of the URL, which may say in which schema the tables are.
            own = url.query.get("options", ())
            options = [own] if isinstance(own, str) else list(own)
            connect_args["options"] = " ".join([*options, "-c default_transaction_read_only=on"])
        try:
            return create_engine(url, pool_pre_ping=True, connect_args=connect_args)
        except (ImportError, NoSuchModuleError) as error:
            raise UsageError(
                f"PostgreSQL needs the driver of {url.get_backend_name()} ({error}); install it "
                'with pip install "mpi-autotune[postgres]"',
                code="store.driver_missing",
            ) from error

    def lock(self, connection: Connection) -> None:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK_NUMBER})")

    def ready(self, engine: Engine) -> None:
        """Do nothing: a server needs no settings."""

    def compact(self, engine: Engine) -> bool:
        """Do nothing: autovacuum lets later rows use the space."""
        return True

    def now(self) -> str:
        return "extract(epoch FROM clock_timestamp())"

    def iso_time(self, seconds: str) -> str:
        utc = f"to_timestamp({seconds}) AT TIME ZONE 'UTC'"
        return f"""to_char({utc}, 'YYYY-MM-DD"T"HH24:MI:SS"Z"')"""

    def is_replaced(self) -> bool:
        return False  # A server notices by itself.

    def save(self, engine: Engine) -> WorkError | None:
        raise NotImplementedError

    def explain(self, message: str) -> AutotuneError | None:
        if "permission denied" in message or "no schema has been selected" in message:
            return UsageError(
                f"PostgreSQL does not permit it: {message}; the user needs USAGE on the "
                "schema; SELECT on the tables to read; INSERT and UPDATE on them and USAGE on "
                "the sequences to write; CREATE on the schema to create or migrate the tables",
                code="store.permission",
            )
        if "connection" in message or "could not translate host" in message:
            return UsageError(
                f"the PostgreSQL server does not answer or refuses access: {message}; check "
                "host, port, database, user and password of --store or $AUTOTUNE_STORE",
                code="store.unreachable",
            )
        return None


_WRITERS = text(
    """
    WITH written AS (
        SELECT c.oid, c.relowner, n.nspowner, d.datdba
        FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace
        JOIN pg_database d ON d.datname = current_database()
        WHERE c.oid = to_regclass('study')
    ), able AS (
        SELECT r.oid FROM pg_roles r, written w
        WHERE r.rolsuper OR r.rolcreaterole
           OR r.oid IN (w.relowner, w.nspowner, w.datdba)
           OR has_table_privilege(r.oid, w.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER')
           OR has_any_column_privilege(r.oid, w.oid, 'INSERT, UPDATE')
    )
    SELECT m.rolname FROM pg_roles m
    WHERE m.rolcanlogin
      AND EXISTS (SELECT 1 FROM able a WHERE pg_has_role(m.oid, a.oid, 'MEMBER'))
    ORDER BY m.rolname
    """
)


def writers(connection: Connection) -> frozenset[str]:
    """Every role that can log in and write studies.

    A role may write by a grant, as owner, as superuser, through a role of which it is a member, or
    because it may make itself a member (CREATEROLE).
    """
    return frozenset(str(name) for name in connection.scalars(_WRITERS))
