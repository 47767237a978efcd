"""A copy of a results database that can be read and not written: a backup, a read-only disk.

SQLite keeps its log beside the file, so that a database in write-ahead mode cannot even be read
where nothing can be written.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from autotune.errors import UsageError, WorkError


def only_readable(path: Path) -> bool:
    """Whether the file is there and can be read, but it or its directory cannot be written."""
    if not path.is_file() or not os.access(path, os.R_OK, effective_ids=True):
        return False
    places = (path, path.parent)
    return not all(os.access(place, os.W_OK, effective_ids=True) for place in places)


def snapshot(path: Path) -> Path:
    """A copy of the database in a private temporary directory, which is the caller's to remove.

    Raises UsageError for a file that is no such database, WorkError where there is no room.
    """
    folder = Path(tempfile.mkdtemp(prefix="autotune-store-"))
    copy = folder / path.name
    log = path.with_name(f"{path.name}-wal")
    try:
        if log.exists() and log.stat().st_size:
            # What was committed last is in the log; nobody can write here, so both fit together.
            shutil.copyfile(path, copy)
            shutil.copyfile(log, folder / log.name)
        else:
            uri = f"file:{quote(str(path))}?mode=ro&immutable=1"
            with (
                closing(sqlite3.connect(uri, uri=True)) as old,
                closing(sqlite3.connect(copy)) as new,
            ):
                old.backup(new)
    except sqlite3.DatabaseError as problem:
        shutil.rmtree(folder, ignore_errors=True)
        raise UsageError(f"the results database {path} cannot be read: {problem}") from None
    except OSError as problem:
        shutil.rmtree(folder, ignore_errors=True)
        raise WorkError(
            f"the results database {path} is read-only, and no copy of it can be made to "
            f"read: {problem.strerror}: {folder}; free some space there, or set TMPDIR to "
            "another directory"
        ) from None
    copy.chmod(0o600)
    return copy
