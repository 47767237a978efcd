"""The lock file with one byte per CPU, and the processes that measure on some CPUs.

The locks belong to the open file (``F_OFD_SETLK``): like those of ``flock``, they survive exec and
end with a crash.
"""

from __future__ import annotations

import fcntl
import os
import struct
from dataclasses import replace
from pathlib import Path
from typing import Literal

from runner.lock.holder import LockHolder, holders_of
from runner.lock.lockfile import LockFile, Unusable

Blocker = Literal["measurement", "shared"]
_FLOCK = "hhqqi"


class CpuLockFile(LockFile):
    """The file with one byte per CPU; raises :class:`~runner.lock.lockfile.Unusable` if the path
    cannot be a lock file.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        if not self.writable:
            self.close()
            raise Unusable(path, "it cannot be written")

    def try_lock_all(self) -> bool:
        """Lock all CPUs for reading if no measurement holds one."""
        return self._try(lambda: self._set(fcntl.F_RDLCK, 0, 0))

    def try_cpus(self, cpus: frozenset[int]) -> Blocker | None:
        """Lock the bytes of ``cpus``, all or none; returns a holder of one of them, or None on
        success.
        """
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
    """``struct flock`` for these bytes; length 0 means up to the end of the file, wherever it
    is."""
    return struct.pack(_FLOCK, kind, os.SEEK_SET, start, length, 0)


def measuring(main: Path, path: Path, cpus: frozenset[int] | None) -> list[LockHolder]:
    """The visible processes that measure on one of ``cpus`` (None: on any).

    The kernel does not report who took such a lock. But every holder also holds ``main`` shared,
    and the same user may read the holder's own table of locks.
    """
    holders = []
    for holder in holders_of(main):
        held_cpus = cpus_of_holder(path, holder.pid)
        if held_cpus and (cpus is None or held_cpus & cpus):
            holders.append(replace(holder, cpus=held_cpus))
    return holders


def cpus_of_holder(path: Path, pid: int) -> frozenset[int]:
    """CPUs on which process ``pid`` measures; empty if none or not accessible."""
    try:
        inode = path.stat().st_ino
        tables = [
            file.read_text(encoding="utf-8") for file in Path(f"/proc/{pid}/fdinfo").iterdir()
        ]
    except OSError:
        return frozenset()
    cpus: set[int] = set()
    for line in "\n".join(tables).splitlines():
        words = line.split()
        # "lock: 1: OFDLCK ADVISORY WRITE -1 00:1a:12345 0 1"; the last two numbers are the range.
        if words[:1] != ["lock:"] or words[2] != "OFDLCK" or words[4] != "WRITE":
            continue
        if words[6].endswith(f":{inode}"):
            cpus.update(range(int(words[7]), int(words[8]) + 1))
    return frozenset(cpus)
