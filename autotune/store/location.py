"""Location of the results database, and checks of that location.

No function opens a database file: only SQLite does. Closing any descriptor of a file drops all
locks that the process holds on it (POSIX), even those of other open connections in this process.
Another process then considers the log unused and deletes it, and committed runs are lost.

A database that is not writable, such as a backup or on a read-only disk, is copied to be read:
SQLite keeps its log beside the file, so write-ahead mode needs a writable folder.
"""

from __future__ import annotations

import errno
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from autotune.config.site import site_store
from autotune.errors import UsageError, WorkError
from autotune.store.text import clean
from runner import files
from runner.files.paths import exists, is_file, is_folder
from runner.files.scratch import Scratch
from runner.passwords import mask_password, mask_words

VARIABLE = "AUTOTUNE_STORE"
MOUNTS = Path("/proc/self/mounts")
_PLACE_HINT = f"choose another place with --store PATH or ${VARIABLE}"
_NETWORK = re.compile(
    r"(fuse\.)?(nfs\d*|lustre\w*|gpfs|beegfs\w*|fhgfs|cifs|smb\w*|afs|auristorfs|ceph\w*|gluster\w*|"
    r"9p|pvfs2|orangefs|panfs|wekafs|dfuse|sshfs|s3fs|rclone|juicefs|davfs\w*|ocfs2|gfs2?|acfs)"
)


@dataclass(frozen=True)
class Location:
    """The place of a database; ``path`` is None for a server, and ``label`` has no password."""

    url: URL
    path: Path | None
    label: str


def locate(text: str | None) -> Location:
    """The location in ``text`` (a path or URL), the environment, the site, else the user's own.

    Raises UsageError for a malformed URL.
    """
    text = text or os.environ.get(VARIABLE) or site_store() or str(files.data("results.db"))
    if "://" not in text:
        return _file(Path(text))
    try:
        url = make_url(text)
        url.render_as_string()  # A server accepts only UTF-8 text.
    except (ArgumentError, ValueError):
        raise UsageError(_bad_url(clean(text)), code="store.url") from None
    if "@" in (url.host or ""):
        raise UsageError(
            f"{mask_words([text])[0]} has an @ before its host; write @, / and : of a password as "
            "%40, %2F and %3A",
            code="store.url",
        )
    kind = url.drivername.partition("+")[0]
    if kind == "sqlite":
        return _sqlite_url(url)
    if kind in ("postgresql", "postgres"):
        if url.drivername in ("postgresql", "postgres"):
            url = url.set(drivername="postgresql+psycopg")
        return Location(url, None, mask_password(url.render_as_string(hide_password=True)))
    raise UsageError(_bad_url(text), code="store.url")


def _bad_url(text: str) -> str:
    return (
        f"{mask_words([text])[0]} is not a results database; expected a path, sqlite:///PATH "
        "(four slashes for an absolute one) or postgresql://USER:PASSWORD@HOST/DATABASE"
    )


def _sqlite_url(url: URL) -> Location:
    if not url.database or url.database == ":memory:" or url.query or url.host:
        raise UsageError(
            f"{mask_password(url.render_as_string())} does not name a file; expected "
            "sqlite:///PATH (four slashes for an absolute one) without options, because "
            "results have to be stored permanently",
            code="store.url",
        )
    return _file(Path(url.database))


def _file(path: Path) -> Location:
    try:
        path = Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 (keeps symbolic links)
    except (RuntimeError, ValueError) as error:  # An unknown user; a NUL in the name.
        raise UsageError(
            f"the results database {str(path)!r}: {error}; {_PLACE_HINT}", code="store.path"
        ) from None
    return Location(URL.create("sqlite", database=str(path)), path, str(path))


def prepare_file(path: Path) -> None:
    """Make sure that ``path`` is, or can become, a file that this process can write.

    Creates missing directories and the file itself, readable by the owner only. SQLite will check
    if it is a database. Raises UsageError with the obstacle.
    """
    where = f"the results database {path}"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        refuse_network(path, network_filesystem(path, _mounts()))
        if is_folder(path):
            raise UsageError(
                f"{where} is a directory; give a file in it, such as {path}/results.db",
                code="store.path",
            )
        _create(path)
        if not is_file(path):
            raise UsageError(f"{where} is no regular file; {_PLACE_HINT}", code="store.path")
        if not os.access(path, os.R_OK | os.W_OK, effective_ids=True):
            fault = errno.EROFS if os.statvfs(path).f_flag & os.ST_RDONLY else errno.EACCES
            raise OSError(fault, os.strerror(fault), str(path))
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError(
            f"{where}: {error.filename} is not a directory; {_PLACE_HINT}", code="store.path"
        ) from None
    except OSError as error:
        raise UsageError(
            f"{where} cannot be opened for writing: {error.strerror}: {error.filename}; make it "
            f"writable or {_PLACE_HINT}",
            code="store.unwritable",
        ) from None
    if not os.access(path.parent, os.W_OK, effective_ids=True):
        raise UsageError(
            f"the directory of {where} cannot be written, but SQLite writes its log there; "
            f"make it writable or {_PLACE_HINT}",
            code="store.unwritable",
        )


def _create(path: Path) -> None:
    """Create the file, private from its first moment; SQLite gives its log the same mode.

    It gets its name after its descriptor is closed, because then somebody may hold locks on it.
    """
    if exists(path):
        return
    try:
        descriptor, name = tempfile.mkstemp(prefix=".autotune-", dir=path.parent)  # mode 0600
    except OSError as problem:
        raise OSError(problem.errno, problem.strerror, str(path)) from None
    os.close(descriptor)
    try:
        os.link(name, path)
    except FileExistsError:
        return  # another process created it first
    except OSError:  # This file system has no hard links.
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    finally:
        os.unlink(name)  # noqa: PTH108


def _mounts() -> list[tuple[str, str]]:
    """The mounted file systems; empty (which refuses nothing) if the system does not list them."""
    try:
        lines = MOUNTS.read_bytes().splitlines()
    except OSError:
        return []
    rows = [line.split(b" ") for line in lines]
    return [(_plain(row[1]), os.fsdecode(row[2])) for row in rows if len(row) > 2]


def _plain(word: bytes) -> str:
    """A path of the table of mounts, in which blanks and backslashes are octal numbers."""
    return os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda code: bytes([int(code[1], 8)]), word))


def network_filesystem(path: Path, mounts: Iterable[tuple[str, str]]) -> str | None:
    """The type of the network file system that holds ``path``, or None if it is local.

    ``mounts`` are (mount point, type) in the order of mounting.
    """
    real = Path(os.path.realpath(path))
    best, kind = -1, ""
    for point, fstype in mounts:
        if real.is_relative_to(point) and len(Path(point).parts) >= best:
            best, kind = len(Path(point).parts), fstype
    return kind if _NETWORK.fullmatch(kind) else None


def refuse_network(path: Path, kind: str | None) -> None:
    """Raise UsageError for a file on a network file system (``kind``), None for a local one.

    SQLite's locks and shared memory do not work there, and databases have been lost.
    """
    if kind is not None:
        raise UsageError(
            f"the results database {path} would be on a network file system ({kind}), "
            "where SQLite files get damaged; use a local disk (--store PATH or "
            f"${VARIABLE}), or PostgreSQL if several nodes write (--store "
            "postgresql://USER:PASSWORD@HOST/DATABASE)",
            code="store.file_system",
        )


def only_readable(path: Path) -> bool:
    """True if the file is readable, but it or its directory is not writable."""
    if not is_file(path) or not os.access(path, os.R_OK, effective_ids=True):
        return False
    places = (path, path.parent)
    return not all(os.access(place, os.W_OK, effective_ids=True) for place in places)


def snapshot(path: Path) -> tuple[Scratch, Path]:
    """A private temporary directory, which the caller must close, and a copy of the database in it.

    Raises UsageError if the file is not such a database, WorkError without space for the copy.
    """
    scratch = Scratch("store")
    folder = scratch.path
    copy = folder / path.name
    log = path.with_name(f"{path.name}-wal")
    try:
        if exists(log) and log.stat().st_size:
            # The last commits are in the log; nobody can write here, so the two copies are
            # consistent.
            _copy(path, copy)
            _copy(log, folder / log.name)
        else:
            uri = f"file:{quote(str(path))}?mode=ro&immutable=1"
            with (
                closing(sqlite3.connect(uri, uri=True)) as old,
                closing(sqlite3.connect(copy)) as new,
            ):
                old.backup(new)
    except sqlite3.DatabaseError as problem:
        scratch.close()
        raise UsageError(
            f"the results database {path} cannot be read: {problem}", code="store.unreadable"
        ) from None
    except OSError as problem:
        scratch.close()
        raise WorkError(
            f"the results database {path} is read-only, and no copy of it can be made to "
            f"read: {problem.strerror}: {folder}; free some space there, or set TMPDIR to "
            "another directory",
            code="store.unreadable",
        ) from None
    copy.chmod(0o600)
    return scratch, copy


def _copy(path: Path, copy: Path) -> None:
    """Copy a file in a separate process, whose closing drops no lock of this one.

    Raises OSError.
    """
    command = [sys.executable, "-I", "-S", "-c", _COPY, str(path), str(copy)]
    process = subprocess.run(
        command, capture_output=True, encoding="utf-8", errors="replace", check=False
    )
    if process.returncode != 0:
        number = int(process.stdout.strip() or errno.EIO)
        raise OSError(number, os.strerror(number), str(path))


_COPY = """
import shutil, sys
try:
    shutil.copyfile(*sys.argv[1:])
except OSError as problem:
    print(problem.errno)
    raise SystemExit(1)
"""
