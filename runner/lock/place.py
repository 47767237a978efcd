"""The place of the machine lock: a file for all users, or one for this user only.

Anybody can create the common file first so that others cannot use it: with mode 0600, as a folder,
a fifo or a link. Then each user takes a private lock, which excludes only the user's own processes.
"""

from __future__ import annotations

import os
import socket
import stat
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from runner.errors import RunnerError
from runner.files import cache
from runner.files.paths import is_folder
from runner.lock.cpu_lock import CpuLockFile
from runner.lock.lockfile import LockFile, Mode, Unusable, mode_of_descriptor

FILE_VARIABLE = "AUTOTUNE_LOCK_FILE"
"""Environment variable with another path of the lock file: for tests, and for containers that share
a directory.
"""
COMMON = ("/run/lock", "/dev/shm", "/tmp")
"""Directories that everybody may write, in order of preference."""
_NAME = "autotune-machine.lock"


@dataclass(frozen=True)
class LockPlace:
    """The path of the lock file; ``common`` is the unusable common path, None if that one is used;
    ``why`` is its problem.
    """

    path: Path
    common: Path | None = None
    why: str = ""


def lock_path(user_path: str | None = None) -> Path:
    """The lock file that all users of this machine use, or ``user_path``, which the user named.

    The choice must not depend on the user or on TMPDIR, or two users would lock two files. It is in
    the first listed directory that everybody may write to.
    """
    if user_path:
        return Path(user_path)
    for place in COMMON:
        directory = Path(place)
        if is_folder(directory) and directory.stat().st_mode & 0o1002 == 0o1002:
            return directory / _NAME
    raise RunnerError(
        f"no directory for the machine lock: none of {', '.join(COMMON)} may be "
        f"written by everybody (mode 1777); set {FILE_VARIABLE} to a path that all "
        "users share",
        code="lock.unusable",
    )


def lock_place(user_path: str | None = None) -> LockPlace:
    """The current place of the lock; its three files exist and are usable.

    ``user_path`` is the value of :data:`FILE_VARIABLE`, if any. Raises
    :class:`~runner.lock.lockfile.Unusable` if it is unusable, or if there is no usable file at all.
    """
    common = lock_path(user_path)
    try:
        _require_usable(common)
    except Unusable as problem:
        if user_path:
            raise
        own = _own_path()
        _require_usable(own)
        return LockPlace(own, common, f"{problem.path}: {problem.why}")
    return LockPlace(common)


def gate_path(path: Path) -> Path:
    """The file locked by those who wait for exclusive use."""
    return path.with_name(path.name + ".gate")


def cpu_path(path: Path) -> Path:
    """The file with one byte per CPU."""
    return path.with_name(path.name + ".cpus")


def _require_usable(path: Path) -> None:
    """Raise Unusable unless all three files exist or can be created, and can be locked."""
    for kind, file in (
        (LockFile, path),
        (LockFile, gate_path(path)),
        (CpuLockFile, cpu_path(path)),
    ):
        with closing(kind(file)):
            pass


def _own_path() -> Path:
    """The lock file of this user: in a private folder beside the common one, else in the cache."""
    for folder in _own_folders():
        with suppress(OSError):
            folder.mkdir(mode=0o700)
        if _is_private(folder):
            return folder / _NAME
    path = _cache_path()
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _own_folders() -> list[Path]:
    return [Path(place) / f"autotune-{os.geteuid()}" for place in COMMON]


def _cache_path() -> Path:
    """Machines may share a home."""
    return cache(f"machine-{socket.gethostname()}.lock")


def _is_private(folder: Path) -> bool:
    """True if this is a folder, not a link, that only this user may enter."""
    try:
        state = folder.stat(follow_symlinks=False)
    except OSError:
        return False
    mine = stat.S_ISDIR(state.st_mode) and state.st_uid == os.geteuid()
    return mine and not state.st_mode & 0o077


def mode_below(pid: int, fd: int, user_path: str | None) -> Mode | None:
    """The mode in which descriptor ``fd`` of process ``pid`` holds the lock, in any place."""
    places = [*(folder / _NAME for folder in _own_folders()), _cache_path()]
    with suppress(RunnerError):
        places.insert(0, lock_path(user_path))
    for path in places[:1] if user_path else places:
        mode = mode_of_descriptor(path, pid, fd)
        if mode is not None:
            return mode
    return None
