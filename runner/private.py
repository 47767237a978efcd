"""What is executed from a cache: only where nobody but its user and root could have written it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from runner.bounded import open_regular
from runner.errors import RunnerError

_LARGEST = 1 << 28


def trusted(found: os.stat_result) -> bool:
    """Whether a file or folder belongs to this user or root, and others may not write it."""
    return found.st_uid in (0, os.geteuid()) and not found.st_mode & stat.S_IWOTH


def refuse_others(*places: Path) -> None:
    """Raise RunnerError for the first of these places that is there and not :func:`trusted`."""
    for place in places:
        try:
            found = place.stat()
        except OSError:
            continue
        if not trusted(found):
            raise RunnerError(
                f"{place} has files that are executed here, but other users may write it "
                f"(owner {found.st_uid}, mode {stat.S_IMODE(found.st_mode):04o}); expected one "
                "that only you may write.  Remove it, or choose another place (XDG_CACHE_HOME, "
                "XDG_RUNTIME_DIR)"
            )


def read_private(path: Path) -> bytes:
    """The content of a file of one's own; raises OSError for one that others may write."""
    with open_regular(path, _LARGEST) as file:
        if not trusted(os.fstat(file.fileno())):
            raise PermissionError(f"other users may write {path}")
        return file.read()
