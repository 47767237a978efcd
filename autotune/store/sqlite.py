"""The results database as a SQLite file."""

from __future__ import annotations

import errno
import fcntl
import os
import shlex
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import SQLAlchemyError

from autotune.errors import AutotuneError, UsageError, WorkError
from autotune.store.dialect import WRITES, driver_words

LONGEST_S = 120.0
"""Seconds after which a transaction of SQLite is ended: a foreign file may never end one."""
_PATIENCE_WITH_WRITES = 30
"""A migration writes every row."""
_STEPS = 100_000
"""Instructions of SQLite between two checks of the clock and of signals."""
_RETRY_S = 0.02
_REPLACED_TEXT = "another file has the name of the open database"


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
                f"{driver_words(problem)}; the runs of this command are lost",
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
