"""Folders from elsewhere: copied within bounds, and nothing but plain files in plain folders."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autotune.errors import UsageError
from autotune.names import EXPECTED, is_plain
from runner.bounded import MIB, open_regular

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = MIB
_PREFIX, _SUFFIX = ".import-", ".partial"
_STALE_S = 24 * 3600.0


@dataclass(frozen=True)
class Bounds:
    """The most that is copied: files and folders, bytes of one file, bytes in all."""

    entries: int = 10_000
    file_bytes: int = 64 * MIB
    bytes: int = 1024 * MIB


BOUNDS = Bounds()


@contextlib.contextmanager
def partial_folder(into: Path) -> Iterator[Path]:
    """A new hidden folder in ``into`` to copy to and to rename; gone at the end if it was not.

    What a killed process has left there is removed a day later.  Raises OSError.
    """
    into.mkdir(parents=True, exist_ok=True)
    _remove_stale(into)
    part = Path(tempfile.mkdtemp(prefix=_PREFIX, suffix=_SUFFIX, dir=into))
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _remove_stale(into: Path) -> None:
    for left in into.glob(f"{_PREFIX}*{_SUFFIX}"):
        with contextlib.suppress(OSError):
            found = left.stat(follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode) and found.st_mtime < time.time() - _STALE_S:
                shutil.rmtree(left, ignore_errors=True)


def copy_folder(source: Path, target: Path, bounds: Bounds = BOUNDS) -> None:
    """Copy a folder of files, and of folders of files, into the empty folder ``target``.

    Everything is opened by its entry and never by a path that could have changed since.  Raises
    UsageError for a link, a fifo, a socket, a device, a name that is not plain, a deeper folder,
    and more than ``bounds``; OSError where something cannot be read or written.
    """
    fd = os.open(source, _FOLDER & ~os.O_NOFOLLOW)  # The folder itself is what the user named.
    try:
        _Copy(bounds).folder(fd, source, target, deep=False)
    finally:
        os.close(fd)


class _Copy:
    """What was copied so far, against the bounds."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._entries = 0
        self._bytes = 0

    def folder(self, fd: int, source: Path, target: Path, deep: bool) -> None:
        for name in self._names(fd, source):
            place = source / name
            found = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if not stat.S_ISDIR(found.st_mode):
                self._file(fd, name, place, target / name)
                continue
            if deep:
                raise UsageError(f"{place}: a dataset has no folders inside its folders; remove it")
            inner = os.open(name, _FOLDER, dir_fd=fd)
            try:
                (target / name).mkdir()
                self.folder(inner, place, target / name, deep=True)
            finally:
                os.close(inner)

    def _names(self, fd: int, source: Path) -> list[str]:
        names = []
        with os.scandir(fd) as entries:
            for entry in entries:
                self._entries += 1
                if self._entries > self._bounds.entries:
                    raise UsageError(
                        f"{source}: more than {self._bounds.entries} files; a dataset from "
                        "elsewhere may not have more"
                    )
                if not is_plain(entry.name):
                    raise UsageError(
                        f"{source}: {entry.name[:80]!r} is not the name of a dataset's file; "
                        f"expected {EXPECTED}.  Remove it, or ask who made the dataset"
                    )
                names.append(entry.name)
        return sorted(names)

    def _file(self, fd: int, name: str, place: Path, target: Path) -> None:
        try:
            source = open_regular(name, self._bounds.file_bytes, follow=False, dir_fd=fd)
        except OSError as problem:
            raise UsageError(
                f"{place}: {problem.strerror}; a dataset from elsewhere may contain only "
                "regular files of limited size"
            ) from None
        with source, target.open("xb") as copy:
            left = self._bounds.file_bytes
            while chunk := source.read(_CHUNK):
                left -= len(chunk)
                self._bytes += len(chunk)
                if left < 0 or self._bytes > self._bounds.bytes:
                    raise UsageError(
                        f"{place}: with this file the dataset has more than "
                        f"{self._bounds.bytes // MIB} MiB, or the file grows while it is copied"
                    )
                copy.write(chunk)
