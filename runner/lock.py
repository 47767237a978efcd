"""The machine lock: measuring takes it exclusively, tests and builds take it shared.

The lock is a ``flock`` on one file per machine, so a crash of the holder releases it. As a
wrapper::

    python -m runner.lock --shared -- COMMAND ARGS...

runs COMMAND under the lock and passes its exit code on. A process below a holder does not lock
again: the holder sets ``AUTOTUNE_MACHINE_LOCK=MODE:PID:FD``, which counts only if the kernel says
that this descriptor holds the lock.

A measurement on some of the CPUs holds the main file shared, and the bytes of its CPUs in a second
file beside it (:class:`CpuLockFile`). So measurements on disjoint CPUs can run at the same time. A
measurement locks the bytes of its CPUs for writing; tests and builds lock all bytes for reading.
These locks belong to the open file (``F_OFD_SETLK``): as those of ``flock``, they pass through exec
and end with a crash.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import struct
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Literal, NoReturn, cast

from runner.cpus import cpu_list, with_siblings
from runner.errors import RunnerError
from runner.lockfile import (
    LockFile,
    Mode,
    describe_holder,
    holders,
    holders_text,
    mode_held,
    unusable,
)
from runner.paths import is_folder

VARIABLE = "AUTOTUNE_MACHINE_LOCK"
FILE_VARIABLE = "AUTOTUNE_LOCK_FILE"
"""Environment variable with another path of the lock file: for tests, and for containers that share
a directory.
"""
_POLL_S = 0.1


def lock_path() -> Path:
    """The lock file that all users of this machine use.

    The choice must not depend on the user or on TMPDIR, or two users would lock two files. It is in
    the first directory of the list that everybody may write to.
    """
    chosen = os.environ.get(FILE_VARIABLE)
    if chosen:
        return Path(chosen)
    for place in ("/run/lock", "/dev/shm", "/tmp"):
        directory = Path(place)
        if is_folder(directory) and directory.stat().st_mode & 0o1002 == 0o1002:
            return directory / "autotune-machine.lock"
    raise RunnerError(
        "no directory for the machine lock: none of /run/lock, /dev/shm, /tmp may be "
        f"written by everybody (mode 1777); set {FILE_VARIABLE} to a path that all "
        "users share",
        code="lock.unusable",
    )


def inherited() -> Mode | None:
    """Mode of the lock that this process or a process above it holds; None if there is none.

    A measurement on some CPUs holds the machine's lock ``"shared"``.
    """
    mode, _, rest = os.environ.get(VARIABLE, "").partition(":")
    pid, _, fd = rest.partition(":")
    if mode not in ("shared", "exclusive") or not (pid.isdigit() and fd.isdigit()):
        return None
    path = lock_path()
    # A command started by the wrapper has the descriptor itself. A command started by Python's
    # subprocess has not, but the holder above it still has.
    for owner in (os.getpid(), int(pid)):
        held = mode_held(path, owner, int(fd))
        if held is not None:
            return held
    return None


class BusyError(RunnerError):
    """Another process held the lock for the whole waiting time."""


class MachineLock:
    """Context manager; ``mode`` is ``"exclusive"`` (measuring) or ``"shared"`` (tests, builds).

    ``wait_s`` is the longest wait in seconds, None for ever; after it :class:`BusyError` names the
    holder. ``on_wait(holder)`` is called once if there is a wait. Under an inherited lock nothing
    is taken, not even an exclusive lock under a shared one (tests measure in this way);
    :func:`inherited` tells the mode.

    ``cpus``: measure on these CPUs alone, at the same time as measurements on others. Whole cores
    are taken, because a program on the other hardware threads of a core would disturb.
    """

    def __init__(
        self,
        mode: Mode,
        wait_s: float | None = None,
        on_wait: Callable[[str], None] | None = None,
        cpus: frozenset[int] | None = None,
    ) -> None:
        self.mode: Mode = mode
        self.cpus = None if cpus is None else with_siblings(cpus)
        self.waited_s = 0.0
        self._wait_s = wait_s
        self._on_wait = on_wait
        self._files: list[LockFile] = []
        self._outer: str | None = None
        self._told = False
        self._start = 0.0

    @property
    def taken(self) -> bool:
        """Whether this object holds the lock, and no process above."""
        return bool(self._files)

    def __enter__(self) -> MachineLock:
        if inherited() is not None:
            return self
        path = lock_path()
        self._start = time.monotonic()
        while not (files := self._take(path)):
            self._pause(self._measuring(path))
        self.waited_s = time.monotonic() - self._start
        self._files = files
        self._outer = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = f"{self.mode}:{os.getpid()}:{files[0].fd}"
        return self

    def _take(self, path: Path) -> list[LockFile]:
        """The files that make up the lock; none if another process measures on the same CPUs."""
        whole = self.mode == "exclusive" and self.cpus is None
        with ExitStack() as held:
            # A process that waits for exclusive use holds the gate, so that a stream of tests
            # cannot keep a measurement waiting for ever.
            with closing(LockFile(path.with_name(path.name + ".gate"))) as gate:
                holder = partial(holders_text, path)
                self._until(lambda: gate.try_lock("exclusive"), holder)
                main = held.enter_context(closing(LockFile(path)))
                self._until(lambda: main.try_lock("exclusive" if whole else "shared"), holder)
                files = [main]
                if whole:
                    main.write_holder()
                else:
                    cpus = held.enter_context(closing(CpuLockFile(_cpu_path(path))))
                    if not self._take_cpus(cpus, path):
                        return []
                    files.append(cpus)
            held.pop_all()
        return files

    def _take_cpus(self, file: CpuLockFile, path: Path) -> bool:
        if self.cpus is None:
            self._until(file.try_shared, self._measuring(path))
            return True
        while (blocker := file.try_cpus(self.cpus)) is not None:
            # A measurement may take hours. Holding the gate until its end would keep measurements
            # on yet other CPUs from starting.
            if blocker == "measurement":
                return False
            self._pause(partial(holders_text, path))
        return True

    def _measuring(self, path: Path) -> Callable[[], str]:
        return partial(blockers_text, path, _cpu_path(path), self.cpus)

    def _until(self, taken: Callable[[], bool], holder: Callable[[], str]) -> None:
        while not taken():
            self._pause(holder)

    def _pause(self, holder: Callable[[], str]) -> None:
        """One step of waiting; ``on_wait`` gets the holder once."""
        if not self._told and self._on_wait is not None:
            self._on_wait(holder())
        self._told = True
        if self._wait_s is not None and time.monotonic() - self._start >= self._wait_s:
            use = self.mode + (f" use of CPUs {cpu_list(self.cpus)}" if self.cpus else " use")
            raise BusyError(
                f"the machine lock {lock_path()} is held by {holder()}; waited "
                f"{self._wait_s:g} s for {use}; wait until that process ends, or end it",
                code="lock.busy",
            )
        time.sleep(_POLL_S)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._files:
            return
        if self._outer is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = self._outer
        for file in self._files:
            file.close()
        self._files = []

    def become(self, command: Sequence[str]) -> NoReturn:
        """Replace this process by ``command``, which keeps the lock until it ends.

        Raises ``OSError`` if the command cannot be started.
        """
        for file in self._files:
            os.set_inheritable(file.fd, True)
        os.execvp(command[0], list(command))


def _cpu_path(path: Path) -> Path:
    return path.with_name(path.name + ".cpus")


def main(words: Sequence[str] | None = None) -> int:
    """Command line of the wrapper; returns only if the command was not started."""
    parser = argparse.ArgumentParser(
        prog="python -m runner.lock", description="Run a command while holding the machine lock."
    )
    group = parser.add_mutually_exclusive_group(required=True)
    for mode, meaning in (
        ("shared", "hold the lock together with other shared holders (tests, builds)"),
        ("exclusive", "hold the lock alone (measurements)"),
    ):
        group.add_argument(f"--{mode}", dest="mode", action="store_const", const=mode, help=meaning)
    parser.add_argument(
        "--wait", type=float, metavar="S", help="longest time to wait for the lock, in seconds"
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND ARGS")
    options = parser.parse_args(words)
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        parser.error("no command given; expected -- COMMAND ARGS")
    return _run_under(cast(Mode, options.mode), options.wait, command)


def _run_under(mode: Mode, wait_s: float | None, command: list[str]) -> int:
    def say(text: str) -> None:
        print(f"runner.lock: {text}", file=sys.stderr, flush=True)

    try:
        with MachineLock(mode, wait_s, lambda who: say(f"waiting for {who}")) as lock:
            lock.become(command)
    except RunnerError as error:
        say(str(error))
        return 1
    except OSError as error:
        say(f"cannot start {command[0]!r}: {error.strerror}")
        return 127 if isinstance(error, FileNotFoundError) else 126


Blocker = Literal["measurement", "shared"]
_FLOCK = "hhqqi"


class CpuLockFile(LockFile):
    """The file with one byte per CPU; raises :class:`RunnerError` if the path cannot be a lock
    file.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        if not self.writable:
            self.close()
            raise unusable(path, "it cannot be written")

    def try_shared(self) -> bool:
        """Lock all CPUs for reading if no measurement holds one."""
        return self._try(lambda: self._set(fcntl.F_RDLCK, 0, 0))

    def try_cpus(self, cpus: frozenset[int]) -> Blocker | None:
        """Lock the bytes of ``cpus``, all or none; returns who holds one of them, or None on
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
    """``struct flock`` for these bytes; length 0 means up to the end of the file, however long it
    is.
    """
    return struct.pack(_FLOCK, kind, os.SEEK_SET, start, length, 0)


def blockers_text(main: Path, path: Path, cpus: frozenset[int] | None) -> str:
    """Text for a message that says who measures on one of ``cpus`` (None: on any).

    The kernel does not tell who took such a lock. But every holder also holds ``main`` shared, and
    the same user may read the holder's own table of locks.
    """
    names = []
    for pid in holders(main):
        taken = cpus_held(path, pid)
        if taken and (cpus is None or taken & cpus):
            names.append(f"{describe_holder(pid)} on CPUs {cpu_list(taken)}")
    return ", ".join(names) or holders_text(main)


def cpus_held(path: Path, pid: int) -> frozenset[int]:
    """CPUs on which process ``pid`` measures; empty if none, or if it may not be looked at."""
    try:
        inode = path.stat().st_ino
        tables = [
            file.read_text(encoding="utf-8") for file in Path(f"/proc/{pid}/fdinfo").iterdir()
        ]
    except OSError:
        return frozenset()
    found: set[int] = set()
    for line in "\n".join(tables).splitlines():
        words = line.split()
        # "lock: 1: OFDLCK ADVISORY WRITE -1 00:1a:12345 0 1"; the last two numbers are the range.
        if words[:1] != ["lock:"] or words[2] != "OFDLCK" or words[4] != "WRITE":
            continue
        if words[6].endswith(f":{inode}"):
            found.update(range(int(words[7]), int(words[8]) + 1))
    return frozenset(found)


if __name__ == "__main__":
    sys.exit(main())
