"""Temporary folders that do not outlive their process, however it ends.

``kill -9``, SIGHUP or a power cut leave a folder behind. So its owner holds a lock on a file in it,
which the kernel releases when the owner ends; the next process that makes such a folder in the same
place finds those without an owner, and removes them.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from pathlib import Path
from types import TracebackType

PREFIX = "autotune-"
"""Begins the name of every such folder."""
OWNER = ".autotune-owner"
"""The file in the folder on which its owner holds a lock; other folders are never touched."""


class Scratch:
    """A private folder in the place for temporary files; a context manager.

    Removes those of this user whose owners have ended. Raises OSError if none can be made.
    """

    def __init__(self, word: str = "") -> None:
        remove_ended(Path(tempfile.gettempdir()))
        self.path, self._lock = _locked(f"{PREFIX}{word}-" if word else PREFIX)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def remove_ended(parent: Path) -> None:
    """Remove this user's folders in ``parent`` whose owners have ended."""
    with contextlib.suppress(OSError), os.scandir(parent) as listed:
        for one in listed:
            if one.name.startswith(PREFIX):
                with contextlib.suppress(OSError):
                    _remove_if_ended(Path(one.path))


def _remove_if_ended(folder: Path) -> None:
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        return
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    fd = os.open(folder / OWNER, flags)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(fd)


def _locked(prefix: str) -> tuple[Path, int | None]:
    """A new folder, and the descriptor that holds the lock of its owner."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix))
        path = folder / OWNER
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            taken = not os.path.lexists(path)
        except BlockingIOError:
            taken = True
        except OSError:
            taken = False  # A file system without locks: nothing is cleaned up there.
        if not taken:
            return folder, fd
        os.close(fd)  # Another process took it for a leftover before it was locked.
