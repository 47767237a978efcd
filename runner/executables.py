"""Executables: the files that the ranks of a run executed, and a digest of each.

The supervisor looks at the ranks while they run and opens their files. They are hashed after the
run, so as not to disturb it: 0.5 to 2 s per GB, once per content and process.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from runner import files
from runner.files.paths import real_path
from runner.types import Executable

if TYPE_CHECKING:
    from runner.supervise.messages import ProgramFile

Identity = tuple[int, ...]
_LARGEST = 1 << 50


def identity_of(path: str | Path) -> Identity:
    """Device, inode, size, and the times of the last change of content and inode in ns.

    Raises OSError.
    """
    state = os.stat(path)  # noqa: PTH116 (as a path of /proc)
    return (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)


def file_digest(path: str) -> str | None:
    """SHA-256 (hexadecimal) over the whole content; None if there is no readable regular file."""
    try:
        return _digest(path, identity_of(path))
    except OSError:
        return None


@lru_cache(maxsize=4096)
def _digest(path: str, identity: Identity) -> str:
    with files.open_regular(path, _LARGEST) as file:
        return digest_of(file.fileno())


def digest_of(fd: int) -> str:
    """SHA-256 (hexadecimal) of an open file's remaining content; raises OSError."""
    import hashlib  # Only here: the supervisor starts without it.

    digest = hashlib.sha256()
    while part := os.read(fd, files.MIB):
        digest.update(part)
    return digest.hexdigest()


def executables_of(
    program_files: Iterable[ProgramFile], started_at: float, mpi_bin: Path
) -> list[Executable]:
    """The executables of a run that began at ``started_at`` (seconds since the epoch).

    Leaves out libraries of the MPI library (whose commands are in ``mpi_bin``), of this tool (its
    cache), or compiled by the run itself.
    """
    prefix = real_path(mpi_bin).parent
    others = (real_path(files.cache()), prefix / "lib", prefix / "lib64")
    folders = tuple(f"{folder}{os.sep}" for folder in others)
    return [
        Executable(file.path, file.sha256, file.kind, file.place, file.argv, file.cwd)
        for file in program_files
        if file.kind == "program"
        or not (file.changed_ns > started_at * 1e9 or file.path.startswith(folders))
    ]
