"""A lock file in a directory that everybody may write to."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from runner.errors import RunnerError
from runner.lock.holder import describe_holder, user_name

Mode = Literal["shared", "exclusive"]

_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_OPERATIONS = {"shared": fcntl.LOCK_SH, "exclusive": fcntl.LOCK_EX}


class Unusable(RunnerError):
    """A path that cannot be a lock file; ``path`` and ``why`` describe it."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"machine lock {path}: {why}; expected a regular file that every user may open "
            "(mode 0666, no link); remove it, or ask its owner to remove it",
            code="lock.unusable",
        )
        self.path = path
        self.why = why


class LockFile:
    """An open lock file; raises :class:`Unusable` if the path cannot be one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fd, self.writable = _open(path)

    def try_lock(self, mode: Mode) -> bool:
        """Take the lock if it is free."""
        return self._try(lambda: fcntl.flock(self.fd, _OPERATIONS[mode] | fcntl.LOCK_NB))

    def _try(self, take: Callable[[], object]) -> bool:
        """True if ``take`` got the lock. A file that has been deleted is reopened."""
        while True:
            try:
                take()
            except BlockingIOError:
                return False
            except OSError as error:
                raise RunnerError(
                    f"machine lock {self.path}: it cannot be locked ({error.strerror}); put it on "
                    "a local disk ($AUTOTUNE_LOCK_FILE)",
                    code="lock.unusable",
                ) from None
            if self.in_place():
                return True
            # Somebody deleted the file: a lock on the old file would exclude nobody.
            self.close()
            self.fd, self.writable = _open(self.path)

    def in_place(self) -> bool:
        """True if the open file still has its name."""
        return _same_file(self.path, self.fd)

    def write_holder(self) -> None:
        """Write the holder into the file, for users without access to /proc/locks."""
        if self.writable:
            os.ftruncate(self.fd, 0)
            os.pwrite(self.fd, f"{describe_holder(os.getpid())}\n".encode(), 0)

    def close(self) -> None:
        """Release the lock."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def _open(path: Path) -> tuple[int, bool]:
    """The descriptor, and True if it is open for writing."""
    for _ in range(100):
        try:
            return _require_regular_file(path, os.open(path, os.O_RDWR | _FLAGS)), True
        except FileNotFoundError:
            pass
        except PermissionError:
            return _require_regular_file(path, _open_readable(path)), False
        except OSError as error:
            raise Unusable(path, error.strerror or "it cannot be opened") from None
        # O_CREAT alone would fail: fs.protected_regular refuses it for another user's file.
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _FLAGS, 0o666)
        except FileExistsError:
            continue
        except OSError as error:
            raise Unusable(path, error.strerror or "it cannot be created") from None
        # Overrides the umask: other users must be able to open the file too.
        os.fchmod(fd, 0o666)
        return fd, True
    raise Unusable(path, "it appears and disappears")


def _open_readable(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY | _FLAGS)
    except OSError as error:
        raise Unusable(path, f"{error.strerror or 'it cannot be opened'}{_owner(path)}") from None


def _owner(path: Path) -> str:
    try:
        return f" (it belongs to {user_name(path.stat(follow_symlinks=False).st_uid)})"
    except OSError:
        return ""


def _require_regular_file(path: Path, fd: int) -> int:
    state = os.fstat(fd)
    # The file has a second name, so it could be somebody's data, which write_holder would destroy.
    if not stat.S_ISREG(state.st_mode) or state.st_nlink > 1:
        os.close(fd)
        raise Unusable(path, "it is not a regular file with a single link")
    return fd


def _same_file(path: Path, fd: int) -> bool:
    try:
        path_state = path.stat(follow_symlinks=False)
    except OSError:
        return False
    fd_state = os.fstat(fd)
    return (path_state.st_dev, path_state.st_ino) == (fd_state.st_dev, fd_state.st_ino)


def mode_of_descriptor(path: Path, pid: int, fd: int) -> Mode | None:
    """The mode in which descriptor ``fd`` of process ``pid`` locks ``path`` according to the
    kernel; else None.
    """
    try:
        path_state = path.stat(follow_symlinks=False)
        fd_state = Path(f"/proc/{pid}/fd/{fd}").stat()
        text = Path(f"/proc/{pid}/fdinfo/{fd}").read_text(encoding="ascii")
    except OSError:
        return None
    if (path_state.st_dev, path_state.st_ino) != (fd_state.st_dev, fd_state.st_ino):
        return None
    for line in text.splitlines():
        if line.startswith("lock:") and "FLOCK" in line:
            return "exclusive" if "WRITE" in line else "shared"
    return None
