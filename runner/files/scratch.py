"""Temporary folders that do not outlive their process, however it ends.

``kill -9``, SIGHUP or a power cut leave a folder behind. So its owner holds a lock on a file in it,
which the kernel releases when the owner ends. The next process that creates such a folder there
removes those without an owner.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from pathlib import Path

PREFIX = "autotune-"
"""Prefix of the name of every such folder."""
OWNER = ".autotune-owner"
"""The file in the folder that its owner locks; other folders are never touched."""


class Scratch:
    """A private folder in the place for temporary files; a context manager.

    Removes this user's folders whose owners have ended. Raises OSError if none can be created.
    """

    def __init__(self, word: str = "") -> None:
        remove_leftovers(Path(tempfile.gettempdir()))
        self.path, self._lock = _make_locked_folder(f"{PREFIX}{word}-" if word else PREFIX)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def remove_leftovers(parent: Path) -> None:
    """Remove this user's folders in ``parent`` whose owners have ended."""
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX):
                with contextlib.suppress(OSError):
                    _remove_leftover(Path(entry.path))


def _remove_leftover(folder: Path) -> None:
    state = folder.lstat()
    if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.geteuid():
        return
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    fd = os.open(folder / OWNER, flags)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(fd)


def _make_locked_folder(prefix: str) -> tuple[Path, int | None]:
    """A new folder, and the descriptor that holds its owner's lock."""
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
            is_lost = not os.path.lexists(path)
        except BlockingIOError:
            is_lost = True
        except OSError:
            is_lost = False  # A file system without locks: nothing is cleaned up there.
        if not is_lost:
            return folder, fd
        os.close(fd)  # Another process took it for a leftover before it was locked.
