"""Copies of a directory, one for each run, so that no run sees another run's files.

A copy lies beside its directory, under a hidden name: paths such as ``../data`` stay valid, it is
on the same file system, and other nodes can see it, too. Its owner holds a lock on a file beside
it, which the kernel releases however the owner ends. So the next owner finds and removes the copies
of killed processes.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from runner.errors import RunnerError, RunnerUsageError
from runner.files.paths import exists, is_folder, real_path

PREFIX = ".autotune-fresh-"
"""Prefix of the name of every copy."""
_LOCK = ".lock"
MOST_BYTES = 4 << 30
MOST_ENTRIES = 100_000
_WRITTEN_BYTES = 1 << 20
"""A copy of more bytes is written to the disk before the run begins."""
_LIBC = ctypes.CDLL(None, use_errno=True)


class FreshCopies:
    """Copies of ``folder``, one at a time, until :meth:`close`.

    Removes copies of ended processes beside the folder. Raises RunnerUsageError for a folder that
    cannot be copied: it does not exist, is ``/``, is too large, or holds other things than files,
    folders and links. Raises RunnerError if nothing can be written beside it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bytes = _size(folder)
        remove_leftovers(folder.parent)
        self._lock_path, self._lock = _make_lock_file(folder)
        self.place = self._lock_path.with_suffix("")
        """Path of the copy: the same for every run, so that its length never differs."""

    @contextmanager
    def copy(self) -> Iterator[Path]:
        """A copy that exists as long as the context; raises RunnerError if it cannot be made."""
        try:
            try:
                _remove(self.place)
                shutil.copytree(self.folder, self.place, symlinks=True)
                if self.bytes > _WRITTEN_BYTES:
                    _write_back(self.place)
            except (OSError, shutil.Error) as problem:
                raise RunnerError(
                    f"the copy of {self.folder} cannot be made in {self.place}: "
                    f"{_reason(problem)}; make room, or name a smaller directory",
                    code="fresh_dir.copy",
                ) from None
            yield self.place
        finally:
            # A process that escaped the launcher may still write; the next copy removes the rest.
            with contextlib.suppress(OSError):
                _remove(self.place)

    def close(self) -> None:
        """Remove leftovers, and release the lock."""
        with contextlib.suppress(OSError):
            _remove(self.place)
            self._lock_path.unlink()
        os.close(self._lock)


def write_inputs(place: Path, texts: Mapping[str, str]) -> None:
    """Write files, by name, into the folder ``place`` of one run; a file or link is replaced.

    Raises RunnerError if a name is not that of an entry of the folder, or if writing fails.
    """
    for name, text in texts.items():
        path = place / name
        try:
            if name in ("", ".", "..") or path.parent != place or "/" in name:
                raise OSError(errno.EINVAL, "it is no name of a file")
            path.unlink(missing_ok=True)  # A link in a copy may lead out of it.
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except (OSError, ValueError) as problem:
            raise RunnerError(
                f"the input file {name!r} cannot be written into {place}: {_reason_of(problem)}",
                code="input_file.unwritable",
            ) from None


def _reason_of(problem: Exception) -> str:
    return getattr(problem, "strerror", None) or f"{problem}"


def remove_leftovers(parent: Path) -> None:
    """Remove this user's copies in ``parent`` whose owners have ended."""
    try:
        lock_files = [
            p for p in parent.iterdir() if p.name.startswith(PREFIX) and p.suffix == _LOCK
        ]
    except OSError:
        return  # Copying will raise an error for what cannot be listed.
    for path in lock_files:
        with contextlib.suppress(OSError):
            fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                if os.fstat(fd).st_uid == os.geteuid():
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove(path.with_suffix(""))
                    path.unlink()
            finally:
                os.close(fd)


def _make_lock_file(folder: Path) -> tuple[Path, int]:
    """A new lock file beside ``folder``, and its descriptor, which holds the lock."""
    while True:
        path = folder.parent / f"{PREFIX}{secrets.token_hex(6)}{_LOCK}"
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as problem:
            raise RunnerError(
                f"{folder.parent} cannot be written ({problem.strerror}), and the copies of "
                f"{folder} lie beside it; copy the directory to a place where you may write",
                code="fresh_dir.unwritable",
            ) from None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_lost = not exists(path)
        except BlockingIOError:
            is_lost = True
        except OSError:
            is_lost = False  # A file system without locks: nothing is cleaned up.
        if not is_lost:
            return path, fd
        os.close(fd)  # Another process took it for a leftover before it was locked.


def _size(folder: Path) -> int:
    """Bytes of all files; raises RunnerUsageError for a folder that cannot be copied."""
    if not is_folder(folder):
        raise RunnerUsageError(
            f"{folder} is no directory; expected the directory in which the program runs",
            code="fresh_dir.missing",
        )
    if real_path(folder).parent == real_path(folder):
        raise RunnerUsageError(
            "/ cannot be copied for each run; name the directory with the program's input",
            code="fresh_dir.root",
        )
    entries = size = 0
    todo = [folder]
    while todo:
        place = todo.pop()
        try:
            with os.scandir(place) as children:
                for child in children:
                    state = child.stat(follow_symlinks=False)
                    entries += 1
                    if stat.S_ISDIR(state.st_mode):
                        todo.append(Path(child.path))
                    elif stat.S_ISREG(state.st_mode):
                        size += state.st_size
                    elif not stat.S_ISLNK(state.st_mode):
                        raise RunnerUsageError(
                            f"{child.path} is neither file, directory nor link and cannot be "
                            "copied; remove it, or name another directory",
                            code="fresh_dir.special",
                        )
                    if size > MOST_BYTES or entries > MOST_ENTRIES:
                        raise _too_large(folder)
        except OSError as problem:
            raise RunnerUsageError(
                f"{place} cannot be read: {problem.strerror}; name a directory of your own",
                code="fresh_dir.unreadable",
            ) from None
    return size


def _too_large(folder: Path) -> RunnerUsageError:
    return RunnerUsageError(
        f"{folder} holds more than {MOST_BYTES >> 30} GiB or {MOST_ENTRIES} entries, which would "
        "be copied for each run; name a directory with the program's input only (links stay "
        "links), or remove the files of earlier runs with a command before each run",
        code="fresh_dir.too_large",
    )


def _remove(place: Path) -> None:
    if not exists(place):
        return
    try:
        shutil.rmtree(place)
    except PermissionError:
        # A folder without write permission was copied as such, or created by the program.
        place.chmod(0o700)
        for folder, below, _ in os.walk(place):
            for name in below:
                if not Path(folder, name).is_symlink():
                    Path(folder, name).chmod(0o700)
        shutil.rmtree(place)


def _write_back(place: Path) -> None:
    """Flush the copy to the disk, so that this does not happen during the run."""
    fd = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _LIBC.syncfs(fd)
    finally:
        os.close(fd)


def _reason(problem: OSError | shutil.Error) -> str:
    if isinstance(problem, shutil.Error) and problem.args and isinstance(problem.args[0], list):
        path, _, words = problem.args[0][0]
        return f"{path}: {words}"
    return getattr(problem, "strerror", None) or f"{problem}"
