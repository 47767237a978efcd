"""Private files: caches and other files of this user that no other user may read or write.

Folders have mode 0700 and files 0600, regardless of the umask. Before a folder is used, it and all
its parents are checked (:mod:`runner.files.trusted_path`). No link in it is followed, and only new
files are opened for writing, except a lock, which is never truncated. So everything in such a
folder comes from this user's own processes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from runner.files import FLAGS, atomic_file
from runner.files.paths import real_path
from runner.files.trusted_path import refuse_others, weakness

FOLDER, FILE, PROGRAM = 0o700, 0o600, 0o700
_LARGEST = 1 << 28
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_WRITABLE = stat.S_IWGRP | stat.S_IWOTH


def make_folder(place: Path) -> Path:
    """``place``; it and its missing parents are created for this user only.

    Raises OSError.
    """
    missing = []
    for folder in (place, *place.parents):
        if os.path.isdir(folder):  # noqa: PTH112 (Path.is_dir raises if it may not be entered)
            break
        missing.append(folder)
    for folder in reversed(missing):
        with contextlib.suppress(FileExistsError):
            folder.mkdir(FOLDER)
    if not os.path.isdir(place):  # noqa: PTH112
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(place))
    return place


def private_folder(place: Path) -> Path:
    """``place``, created if missing; no other user may write it.

    A folder of this user that others may write (a umask of 002) is closed to them; their earlier
    files are recognised by owner and mode. Raises RunnerError if others control a parent, and
    OSError if it cannot be created.
    """
    weak = weakness(make_folder(place))
    if weak is not None and weak.step.is_folder and weak.step.place == real_path(place):
        _close(weak.step.place)
    refuse_others(place)
    return place


def _close(folder: Path) -> None:
    with contextlib.suppress(OSError):  # The following check reports the problem.
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            state = os.fstat(fd)
            if state.st_uid == os.geteuid():
                os.fchmod(fd, stat.S_IMODE(state.st_mode) & ~_WRITABLE)
        finally:
            os.close(fd)


def is_private(state: os.stat_result) -> bool:
    """True if this is a regular file of this user that nobody else may read or write."""
    return (
        stat.S_ISREG(state.st_mode) and state.st_uid == os.geteuid() and not state.st_mode & _OTHERS
    )


def has_private(path: Path) -> bool:
    """True if ``path`` itself, not the target of a link, is such a file."""
    try:
        return is_private(os.lstat(path))
    except OSError:
        return False


def read_private(path: Path, most: int = _LARGEST) -> bytes:
    """The content of a private file of at most ``most`` bytes.

    Raises OSError, also for a link, or a file that others own or may access.
    """
    fd = os.open(path, FLAGS | os.O_RDONLY | os.O_NOFOLLOW)
    with open(fd, "rb") as file:  # noqa: PTH123 (a descriptor)
        _require(fd, path)
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most} bytes", str(path))
    return content


def open_private(path: Path) -> BinaryIO:
    """A private file for a lock, created empty if missing; its content stays.

    Raises OSError, also for a link, or a file that others own or may access.
    """
    fd = os.open(path, FLAGS | os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, FILE)
    try:
        _require(fd, path)
        return open(fd, "r+b")  # noqa: PTH123 (a descriptor)
    except BaseException:
        os.close(fd)
        raise


def _require(fd: int, path: Path) -> None:
    state = os.fstat(fd)
    if is_private(state):
        return
    if not stat.S_ISREG(state.st_mode):
        why = "it is not a regular file"
    elif state.st_uid != os.geteuid():
        why = f"it belongs to user {state.st_uid}, not to {os.geteuid()}"
    else:
        why = f"other users may access it (mode {stat.S_IMODE(state.st_mode):04o})"
    raise PermissionError(errno.EPERM, why, str(path))


def write_private(path: Path, content: bytes | str, mode: int = FILE) -> None:
    """Replace a file by ``content`` in one step; its folder is created if missing.

    Raises OSError.
    """
    make_folder(path.parent)
    with atomic_file(path, mode) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def drop_foreign(path: Path) -> None:
    """Remove ``path`` unless it is a private file; raises OSError.

    It dates from a time when others could write the folder.
    """
    if not has_private(path):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
