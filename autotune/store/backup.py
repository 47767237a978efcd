"""A backup of a results database by the database's own means, while workers write.

A file is copied by SQLite's online backup, which sees one state of it. A server's tables are
written by ``pg_dump``; the password goes to it in its environment, never on its command line.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sqlite3
import subprocess
import tempfile
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from autotune.errors import UsageError, WorkError
from autotune.store import schema as s
from autotune.store.database import Database
from runner.files.paths import exists
from runner.passwords import mask_password

_PASSWORD = "PGPASSWORD"


@dataclass(frozen=True)
class Backup:
    """A backup that was made; ``command`` is the argument list of ``pg_dump``, empty for a file."""

    path: Path
    bytes: int
    command: tuple[str, ...] = ()


def back_up(database: Database, path: Path) -> Backup:
    """Write the database to ``path``, whole or not at all; an existing file is replaced.

    The copy of a file is checked before it gets its name. Raises UsageError if ``path`` is the
    database itself or cannot be written, WorkError if the database or ``pg_dump`` fails.
    """
    own_path = database.location.path
    if own_path is not None and exists(path) and path.samefile(own_path):
        raise UsageError(
            f"{path} is the results database itself; name another file", code="store.path"
        )
    try:
        descriptor, name = tempfile.mkstemp(".part", f".{path.name}-", path.parent)  # mode 0600
    except OSError as problem:
        raise _unwritable(path, problem) from None
    os.close(descriptor)
    part = Path(name)
    try:
        command: list[str] = []
        if own_path is None:
            command = _dump(database, part, path)
        else:
            _copy(database, own_path, part)
        _flush(part)
        part.replace(path)
        return Backup(path, path.stat().st_size, tuple(command))
    except OSError as problem:
        raise _unwritable(path, problem) from None
    finally:
        for leftover in (part, Path(f"{part}-journal"), Path(f"{part}-wal"), Path(f"{part}-shm")):
            with suppress(OSError):
                leftover.unlink()


def _unwritable(path: Path, problem: OSError) -> UsageError:
    return UsageError(f"cannot write {path}: {problem.strerror}", code="file.unwritable")


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _copy(database: Database, source: Path, target: Path) -> None:
    """Copy a file by SQLite's online backup, in one step: writers go on meanwhile."""
    timeout_s = 30.0
    uri = f"file:{quote(str(source))}?mode=ro"
    try:
        with (
            closing(sqlite3.connect(uri, uri=True, timeout=timeout_s)) as old,
            closing(sqlite3.connect(target)) as new,
        ):
            old.backup(new)
            # One file, with no log beside it: it can be moved, and read where nobody may write.
            new.execute("PRAGMA journal_mode=DELETE")
            problems = [str(row[0]) for row in new.execute("PRAGMA integrity_check(1)")]
    except sqlite3.Error as problem:
        refusal = database.dialect.explain(str(problem))
        raise refusal or WorkError(
            f"the results database {database.label} cannot be backed up: {problem}",
            code="store.fails",
        ) from None
    if problems != ["ok"]:
        raise WorkError(
            f"the results database {database.label} is damaged, and so would be its backup, which "
            f"was not written: {problems[0]:.200}\nTo see all that is wrong:  autotune store check",
            code="store.damaged",
        )


def _dump(database: Database, target: Path, path: Path) -> list[str]:
    """Let ``pg_dump`` write autotune's tables and views to ``target``, which becomes ``path``.

    Returns the argument list that writes ``path``.

    Raises WorkError if ``pg_dump`` is not installed, or fails.
    """
    command, password = dump_command(database, target)
    own_command = dump_command(database, path)[0]
    program = shutil.which(command[0]) or _installed(command[0])
    shown = shlex.join(own_command)
    if program is None:
        raise WorkError(
            f"pg_dump is not installed here; install PostgreSQL's client programs, or give this "
            f"where they are:\n  {shown}",
            code="store.pg_dump_missing",
        )
    environment = os.environ | ({} if password is None else {_PASSWORD: password})
    ended = subprocess.run(
        [program, *command[1:]],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if ended.returncode != 0:
        words = mask_password(" ".join(ended.stderr.split()))
        raise WorkError(f"pg_dump failed ({words:.500})\n  {shown}", code="store.pg_dump_failed")
    return own_command


def _installed(program: str) -> str | None:
    """The program of the newest server that is installed where Debian keeps them."""
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"), reverse=True)
    return str(places[0]) if places else None


def dump_command(database: Database, target: Path) -> tuple[list[str], str | None]:
    """The argument list of ``pg_dump`` for autotune's tables, without the password; the password.

    Other tables of the database stay out.
    """
    from psycopg.conninfo import make_conninfo

    dialect = database.url.get_dialect()()
    _, parameters = dialect.create_connect_args(database.url)
    password = parameters.pop("password", None)
    # A form of its own, because only it takes any parameter of a connection, such as a socket's.
    connection = make_conninfo("", **parameters)
    tables = [*s.metadata.tables, *s.VIEWS]
    return [
        "pg_dump",
        "--format=custom",
        "--no-owner",
        "--no-password",
        f"--file={target}",
        *(f"--table={name}" for name in tables),
        f"--dbname={connection}",
    ], password
