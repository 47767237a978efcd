"""An open folder: files in it are named relative to it, and no link in it is followed.

It is for folders that others may write, too. Somebody may put a link at a path between two looks;
an open folder stays the same, and links in it are never followed.
"""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from runner.files import FLAGS, open_regular

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class FileContent:
    """A file's bytes, permission bits, owner and group."""

    content: bytes
    mode: int = 0o644
    uid: int = -1
    gid: int = -1


class OpenFolder:
    """A folder held open, as a context manager.

    ``place`` is an absolute path without links. Raises OSError if it has become a link.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self._fd = os.open("/", _FOLDER)
        try:
            for part in place.parts[1:]:
                inner = os.open(part, _FOLDER, dir_fd=self._fd)
                os.close(self._fd)
                self._fd = inner
        except BaseException:
            os.close(self._fd)
            raise

    def __enter__(self) -> OpenFolder:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def read(self, name: str, most: int) -> FileContent | None:
        """A regular file of at most ``most`` bytes; None if there is none.

        Raises OSError, also for a link.
        """
        try:
            file = open_regular(name, most, follow=False, dir_fd=self._fd)
        except FileNotFoundError:
            return None
        with file:
            state = os.fstat(file.fileno())
            content = file.read(most)
        return FileContent(content, stat.S_IMODE(state.st_mode), state.st_uid, state.st_gid)

    def create(self, name: str, new: FileContent) -> None:
        """Create a file with the content of ``new`` and at most its permissions.

        Raises OSError, also if the name already exists.
        """
        flags = FLAGS | os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        fd = os.open(name, flags, 0o600, dir_fd=self._fd)
        try:
            with open(fd, "wb") as file:  # noqa: PTH123 (a descriptor)
                file.write(new.content)
                file.flush()
                os.fsync(fd)
                os.fchmod(fd, _mode(fd, new))
        except BaseException:
            self.remove(name)
            raise

    def replace(self, name: str, new: FileContent) -> None:
        """Replace whatever has this name by a file in one step; raises OSError."""
        part = f".{name}.{os.urandom(6).hex()}.part"
        self.create(part, new)
        try:
            os.replace(part, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
        except BaseException:
            self.remove(part)
            raise

    def remove(self, name: str) -> None:
        """Remove a file or link if it exists; raises OSError."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._fd)


def _mode(fd: int, new: FileContent) -> int:
    """The permission bits; the group's only if the file can have the same group."""
    if new.gid in (-1, os.fstat(fd).st_gid):
        return new.mode
    try:
        os.fchown(fd, -1, new.gid)
    except OSError:
        return new.mode & ~stat.S_IRWXG
    return new.mode
