"""The machine lock: measuring takes it exclusively, tests and builds take it shared.

The lock is a ``flock`` on one file per machine, so a crash of the holder releases it. As a
wrapper::

    python -m runner.lock --shared -- COMMAND ARGS...

runs COMMAND under the lock and passes its exit code on. A descendant of a holder does not lock
again: the holder sets ``AUTOTUNE_MACHINE_LOCK=MODE:PID:FD``, which is valid only if the kernel
confirms that this descriptor holds the lock.

A measurement on some of the CPUs holds the main file shared, and the bytes of its CPUs in a second
file beside it (:mod:`runner.lock.cpu_lock`). So measurements on disjoint CPUs can run at the same
time. A measurement locks the bytes of its CPUs for writing; tests and builds lock all bytes for
reading.

The owner of the file may delete or damage it while it is held; then a second measurement could
begin beside the first. So the lock is checked before each run (:func:`renew_locks`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NoReturn

from runner.cpus import cpu_list, with_siblings
from runner.errors import RunnerError
from runner.lock.cpu_lock import CpuLockFile, measuring
from runner.lock.holder import (
    LockHolder,
    describe_holder,
    holders_of,
    kill_command,
    written_holder,
)
from runner.lock.lockfile import LockFile, Mode, Unusable
from runner.lock.place import (
    FILE_VARIABLE,
    LockPlace,
    cpu_path,
    gate_path,
    lock_path,
    lock_place,
    mode_below,
)

VARIABLE = "AUTOTUNE_MACHINE_LOCK"
_POLL_S = 0.1


def inherited_mode() -> Mode | None:
    """Mode of the lock held by this process or an ancestor; None if there is none.

    A measurement on some CPUs holds the machine's lock ``"shared"``.
    """
    mode, _, rest = os.environ.get(VARIABLE, "").partition(":")
    pid, _, fd = rest.partition(":")
    if mode not in ("shared", "exclusive") or not (pid.isdigit() and fd.isdigit()):
        return None
    # A command started by the wrapper has the descriptor itself. A command started by Python's
    # subprocess does not, but its ancestor, the holder, still has it.
    for owner in (os.getpid(), int(pid)):
        lock_mode = mode_below(owner, int(fd), os.environ.get(FILE_VARIABLE))
        if lock_mode is not None:
            return lock_mode
    return None


class BusyError(RunnerError):
    """Another process held the lock for the whole waiting time."""


@dataclass(frozen=True)
class LockNews:
    """A message of a process that takes the lock, sent once; ``code`` is one of those of notes."""

    code: Literal["lock.waiting", "lock.own", "lock.lost"]
    words: str
    data: Mapping[str, Any]


Tell = Callable[[LockNews], None]


class MachineLock:
    """Context manager; ``mode`` is ``"exclusive"`` (measuring) or ``"shared"`` (tests, builds).

    ``wait_s`` is the longest wait in seconds, None for ever; then :class:`BusyError` names the
    holder. ``tell`` receives messages: that it waits, with the holder; that the lock is only this
    user's; that it was lost. Under an inherited lock nothing is taken, not even an exclusive lock
    under a shared one (tests measure this way); :func:`inherited_mode` returns the mode.

    ``cpus``: measure only on these CPUs, concurrently with measurements on others. Whole cores are
    locked, because a program on a core's other hardware threads would disturb.
    """

    def __init__(
        self,
        mode: Mode,
        wait_s: float | None = None,
        tell: Tell | None = None,
        cpus: frozenset[int] | None = None,
    ) -> None:
        self.mode: Mode = mode
        self.cpus = None if cpus is None else with_siblings(cpus)
        self.waited_s = 0.0
        self._wait_s = wait_s
        self._tell = tell
        self._files: list[LockFile] = []
        self._outer: str | None = None
        self._user_path: str | None = None
        self._place = LockPlace(Path())
        self._reported_codes: set[str] = set()
        self._start = 0.0
        self._pid = 0
        self._is_entered = False

    @property
    def holds_lock(self) -> bool:
        """True if this object holds the lock, and not an ancestor process."""
        return bool(self._files)

    def __enter__(self) -> MachineLock:
        self._outer = os.environ.get(VARIABLE)
        self._user_path = os.environ.get(FILE_VARIABLE)
        self._pid = os.getpid()
        if inherited_mode() is None:
            self._acquire()
        else:
            self._place = LockPlace(lock_path(self._user_path))
        self._is_entered = True
        _OWN_LOCKS.append(self)
        return self

    def renew(self) -> None:
        """Take the lock again if its files, or those of an ancestor, are no longer in place.

        If that is impossible, raises like the first time.
        """
        if not self._is_entered or self._pid != os.getpid():
            return
        if self._files:
            same_place = lock_place(self._user_path).path == self._place.path
            if same_place and all(file.in_place() for file in self._files):
                return
        elif inherited_mode() is not None:
            return
        self._report_loss()
        self._close()
        self._reported_codes.discard("lock.waiting")
        self._acquire()

    def _acquire(self) -> None:
        self._start = time.monotonic()
        while True:
            self._place = lock_place(self._user_path)
            self._say_own()
            path = self._place.path
            try:
                while not (files := self._take(path)):
                    self._pause(self._measuring(path))
                break
            except Unusable:
                # Somebody damaged the file during the wait: then the lock has another path.
                if lock_place(self._user_path).path == path:
                    raise
        self.waited_s += time.monotonic() - self._start
        self._files = files
        os.environ[VARIABLE] = f"{self.mode}:{os.getpid()}:{files[0].fd}"

    def _take(self, path: Path) -> list[LockFile]:
        """The files that make up the lock; empty if another process measures on the same CPUs."""
        whole = self.mode == "exclusive" and self.cpus is None
        with ExitStack() as stack:
            # A process that waits for exclusive use holds the gate, so that a stream of tests
            # cannot keep a measurement waiting for ever.
            with closing(LockFile(gate_path(path))) as gate:
                holders = partial(_others, path)
                self._until(lambda: gate.try_lock("exclusive"), holders)
                main = stack.enter_context(closing(LockFile(path)))
                self._until(lambda: main.try_lock("exclusive" if whole else "shared"), holders)
                files = [main]
                if whole:
                    main.write_holder()
                else:
                    cpus = stack.enter_context(closing(CpuLockFile(cpu_path(path))))
                    if not self._take_cpus(cpus, path):
                        return []
                    files.append(cpus)
            stack.pop_all()
        return files

    def _take_cpus(self, file: CpuLockFile, path: Path) -> bool:
        if self.cpus is None:
            self._until(file.try_lock_all, self._measuring(path))
            return True
        while (blocker := file.try_cpus(self.cpus)) is not None:
            # A measurement may take hours. Holding the gate all that time would keep measurements
            # on other CPUs from starting.
            if blocker == "measurement":
                return False
            self._pause(partial(_others, path))
        return True

    def _measuring(self, path: Path) -> Callable[[], list[LockHolder]]:
        return lambda: measuring(path, cpu_path(path), self.cpus) or _others(path)

    def _until(self, attempt: Callable[[], bool], holders: Callable[[], list[LockHolder]]) -> None:
        while not attempt():
            self._pause(holders)

    def _pause(self, holders: Callable[[], list[LockHolder]]) -> None:
        """One step of waiting; its messages are sent once."""
        path = self._place.path
        if "lock.waiting" not in self._reported_codes and self._tell is not None:
            self._say(_waiting(path, holders()))
        if self._wait_s is not None and time.monotonic() - self._start >= self._wait_s:
            use = self.mode + (f" use of CPUs {cpu_list(self.cpus)}" if self.cpus else " use")
            by = holders()
            end = f", or end it: {kill_command(by)}" if by else ""
            raise BusyError(
                f"the machine lock {path} is held by {_words(path, by)}; waited "
                f"{self._wait_s:g} s for {use}; wait until that process ends{end}",
                code="lock.busy",
            )
        time.sleep(_POLL_S)

    def _report_loss(self) -> None:
        self._say(
            LockNews(
                "lock.lost",
                f"the machine lock {self._place.path} is not the one that others take any more: "
                "it was deleted, replaced or spoilt while it was held, or the common one was "
                "repaired. Another measurement may have run beside this one; taking the lock anew",
                {"path": str(self._place.path)},
            )
        )

    def _say_own(self) -> None:
        place = self._place
        if place.common is None:
            return
        self._say(
            LockNews(
                "lock.own",
                f"the machine lock of all users cannot be used ({place.why}). Taking a lock of "
                f"your own, {place.path}: measurements of other users are not kept apart from "
                f"yours. Ask its owner or root to remove {place.common}*",
                {"path": str(place.path), "common": str(place.common), "why": place.why},
            )
        )

    def _say(self, news: LockNews) -> None:
        if news.code not in self._reported_codes and self._tell is not None:
            self._tell(news)
        if news.code != "lock.lost":
            self._reported_codes.add(news.code)

    def __exit__(self, *_: object) -> None:
        if self._is_entered:
            _OWN_LOCKS.remove(self)
            self._is_entered = False
        self._close()

    def _close(self) -> None:
        if not self._files:
            return
        if self._outer is None:
            os.environ.pop(VARIABLE, None)
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


_OWN_LOCKS: list[MachineLock] = []
"""The locks that this process has taken."""


def renew_locks() -> None:
    """Check each lock that this process holds before a run: :meth:`MachineLock.renew`."""
    for lock in list(_OWN_LOCKS):
        lock.renew()


def _others(path: Path) -> list[LockHolder]:
    """The holders without this process: it holds the file shared while it waits for its CPUs."""
    return [holder for holder in holders_of(path) if holder.pid != os.getpid()]


def _words(path: Path, holders: Sequence[LockHolder]) -> str:
    """The holders of a lock: from the visible processes, else from the content of the file."""
    if holders:
        return ", ".join(holder.words for holder in holders)
    owner = written_holder(path)
    if owner == describe_holder(os.getpid()):
        # Of an earlier use of the lock.
        owner = ""
    return f"{owner}, which cannot be seen from here" if owner else "another process"


def _waiting(path: Path, holders: Sequence[LockHolder]) -> LockNews:
    end = f"; to end it: {kill_command(holders)}" if holders else ""
    return LockNews(
        "lock.waiting",
        f"waiting for the machine lock: {_words(path, holders)}{end}",
        {"path": str(path), "holders": [holder.to_json() for holder in holders]},
    )
