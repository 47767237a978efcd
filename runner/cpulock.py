"""The machine's CPUs as bytes of a lock file, so that measurements on disjoint CPUs coexist.

A measurement locks the bytes of its CPUs for writing, tests and builds lock all bytes for reading.
The locks belong to the open file (``F_OFD_SETLK``): they pass through exec and end with a crash,
as those of ``flock`` do.
"""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path
from typing import Literal

from runner.cpuset import text_of
from runner.lockfile import LockFile, describe, holders, holders_text, unusable

Blocker = Literal["measurement", "shared"]
_FLOCK = "hhqqi"


class CpuLockFile(LockFile):
    """The file of the CPUs' bytes; raises :class:`RunnerError` if the path cannot be one."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        if not self.writable:
            self.close()
            raise unusable(path, "it cannot be written")

    def try_shared(self) -> bool:
        """Lock all CPUs for reading if no measurement holds one."""
        return self._try(lambda: self._set(fcntl.F_RDLCK, 0, 0))

    def try_cpus(self, cpus: frozenset[int]) -> Blocker | None:
        """Lock the bytes of ``cpus``, all or none; who is in the way, or None."""
        if self._try(lambda: self._set_each(cpus)):
            return None
        for cpu in sorted(cpus):
            kind = self._blocking(cpu)
            if kind == fcntl.F_RDLCK:
                return "shared"
        return "measurement"

    def _set_each(self, cpus: frozenset[int]) -> None:
        try:
            for cpu in sorted(cpus):
                self._set(fcntl.F_WRLCK, cpu, 1)
        except BlockingIOError:
            self._set(fcntl.F_UNLCK, 0, 0)
            raise

    def _set(self, kind: int, start: int, length: int) -> None:
        fcntl.fcntl(self.fd, fcntl.F_OFD_SETLK, _words(kind, start, length))

    def _blocking(self, cpu: int) -> int:
        answer = fcntl.fcntl(self.fd, fcntl.F_OFD_GETLK, _words(fcntl.F_WRLCK, cpu, 1))
        return int(struct.unpack(_FLOCK, answer)[0])


def _words(kind: int, start: int, length: int) -> bytes:
    """``struct flock``; length 0 is up to the end of the file, however long it is."""
    return struct.pack(_FLOCK, kind, os.SEEK_SET, start, length, 0)


def blockers_text(main: Path, path: Path, cpus: frozenset[int] | None) -> str:
    """Who measures on one of ``cpus`` (None: on any), for a message.

    The kernel does not say who took such a lock, but every holder also holds ``main`` shared, and
    its own table of locks can be read by the same user.
    """
    names = []
    for pid in holders(main):
        taken = cpus_held(path, pid)
        if taken and (cpus is None or taken & cpus):
            names.append(f"{describe(pid)} on CPUs {text_of(taken)}")
    return ", ".join(names) or holders_text(main)


def cpus_held(path: Path, pid: int) -> frozenset[int]:
    """CPUs on which process ``pid`` measures; none if it does not, or may not be looked at."""
    try:
        inode = path.stat().st_ino
        tables = [file.read_text() for file in Path(f"/proc/{pid}/fdinfo").iterdir()]
    except OSError:
        return frozenset()
    found: set[int] = set()
    for line in "\n".join(tables).splitlines():
        words = line.split()
        # "lock: 1: OFDLCK ADVISORY WRITE -1 00:1a:12345 0 1", the range with both its ends.
        if words[:1] != ["lock:"] or words[2] != "OFDLCK" or words[4] != "WRITE":
            continue
        if words[6].endswith(f":{inode}"):
            found.update(range(int(words[7]), int(words[8]) + 1))
    return frozenset(found)
