"""Files that a run wrote below its working directory or among its arguments.

Two looks at the directory, before and after the run, show what differs. A look is bounded: it
follows no link, enters no hidden folder and no more than :data:`DEEPEST` levels, and ends after
:data:`MOST_ENTRIES` entries or :data:`LONGEST_S` seconds. Only folders that were listed completely
before the run are compared.

Files of other users, files that this process or its neighbours in the session have open (results
database, redirected output), and code that Python compiled do not count.
"""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from runner.files.paths import is_folder

MOST_ENTRIES = 20_000
LONGEST_S = 0.2
DEEPEST = 8
_CACHE_ENDINGS = ("__pycache__", ".pyc", ".nbi", ".nbc")
"""Ends of names of code that Python or numba compiled in the first run, and later ones load."""

Stamp = tuple[int, int, int]
"""Size in bytes, time of the last change in nanoseconds, and inode of a file."""


@dataclass(frozen=True)
class FileLook:
    """Files by folder, of folders that were listed completely.

    ``argument_files`` has the files among the program's words; None for one that does not exist.
    ``cut``: whether a bound ended the look, which took ``seconds``.
    """

    folders: Mapping[str, Mapping[str, Stamp]]
    argument_files: Mapping[str, Stamp | None]
    cut: bool
    seconds: float


@dataclass(frozen=True)
class WrittenFiles:
    """Paths that a run created or changed, relative to its directory where they lie below it.

    ``cut``: whether some folders were not looked at; ``seconds``: what both looks took.
    """

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    cut: bool = False
    seconds: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.created or self.changed)

    @property
    def names(self) -> tuple[str, ...]:
        """All paths."""
        return (*self.created, *self.changed)


def look(cwd: str, words: Sequence[str] = ()) -> FileLook:
    """Look at the files below a directory, and at those that the arguments ``words`` name."""
    began = time.monotonic()
    folders: dict[str, dict[str, Stamp]] = {}
    argument_files = {str(path): _stamp(path) for path in _paths(cwd, words)}
    roots = [cwd, *(path for path in argument_files if is_folder(path))]
    todo = deque((root, 0) for root in dict.fromkeys(roots))
    entries, cut = 0, False
    while todo and not cut:
        folder, depth = todo.popleft()
        files: dict[str, Stamp] = {}
        try:
            with os.scandir(folder) as directory:
                for one in directory:
                    entries += 1
                    if entries > MOST_ENTRIES or time.monotonic() - began > LONGEST_S:
                        cut = True
                        break
                    if one.name.endswith(_CACHE_ENDINGS):
                        continue
                    if one.is_dir(follow_symlinks=False):
                        if depth < DEEPEST and not one.name.startswith("."):
                            todo.append((one.path, depth + 1))
                    elif (stamp := _stamp(Path(one.path))) is not None:
                        files[one.name] = stamp
        except OSError:
            continue
        if not cut:
            folders[folder] = files
    return FileLook(folders, argument_files, cut, time.monotonic() - began)


def compare_looks(cwd: str, before: FileLook, after: FileLook) -> WrittenFiles:
    """What differs between two looks; files that vanished do not count."""
    created: list[str] = []
    changed: list[str] = []
    for path, old, new in _pairs(before, after):
        if new is not None and new != old:
            (created if old is None else changed).append(path)
    ours = _open_files() if created or changed else frozenset()

    def relative_paths(paths: Iterable[str]) -> tuple[str, ...]:
        others = sorted({path for path in paths if _identity(path) not in ours})
        return tuple(os.path.relpath(p, cwd) if _below(p, cwd) else p for p in others)

    seconds = before.seconds + after.seconds
    return WrittenFiles(
        relative_paths(created), relative_paths(changed), before.cut or after.cut, seconds
    )


def _pairs(before: FileLook, after: FileLook) -> Iterator[tuple[str, Stamp | None, Stamp | None]]:
    """Path, former and present stamp of every file that can be compared."""
    for folder, files in after.folders.items():
        former_files = before.folders.get(folder)
        if former_files is None and before.cut:
            continue  # Nobody knows whether the folder is new.
        for name, stamp in files.items():
            yield f"{folder.rstrip('/')}/{name}", (former_files or {}).get(name), stamp
    for path, current in after.argument_files.items():
        yield path, before.argument_files.get(path), current


def _paths(cwd: str, words: Sequence[str]) -> list[Path]:
    """The paths that arguments may name: whole words, and what stands behind ``=``."""
    paths = []
    for word in words:
        for text in {word, word.partition("=")[2]}:
            path = Path(cwd, text)
            if text and "\0" not in text and len(text) < 4096 and is_folder(path.parent):
                paths.append(path)
    return paths


def _stamp(path: Path) -> Stamp | None:
    """The stamp of a regular file of this user; None for anything else."""
    try:
        status = path.lstat()
    except (OSError, ValueError):
        return None
    own = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
    return (status.st_size, status.st_mtime_ns, status.st_ino) if own else None


def _below(path: str, folder: str) -> bool:
    return Path(path).is_relative_to(folder)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = Path(path).lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _open_files() -> frozenset[tuple[int, int]]:
    """Device and inode of the files that processes of this session have open."""
    session = os.getsid(0)
    identities = set()
    for place in Path("/proc").iterdir():
        if not place.name.isdigit():
            continue
        try:
            if os.getsid(int(place.name)) != session:
                continue
            for link in (place / "fd").iterdir():
                status = link.stat()
                identities.add((status.st_dev, status.st_ino))
        except OSError:
            continue
    return frozenset(identities)
