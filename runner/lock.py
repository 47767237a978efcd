"""The machine lock: measuring takes it exclusively, tests and builds take it shared.

``flock`` on one file per machine, so a crash of the holder releases it.  As a wrapper::

    python -m runner.lock --shared -- COMMAND ARGS...

runs COMMAND under the lock and passes its exit code on.  Whoever runs below a holder does not lock
again: the holder says so in ``AUTOTUNE_MACHINE_LOCK=MODE:PID:FD``, which is believed only if that
descriptor is seen to hold the lock.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import NoReturn, cast

from runner.errors import RunnerError
from runner.lockfile import LockFile, Mode, holders_text, mode_held

VARIABLE = "AUTOTUNE_MACHINE_LOCK"
FILE_VARIABLE = "AUTOTUNE_LOCK_FILE"
"""Another place for the lock file, for tests and for containers that share a directory."""
_POLL_S = 0.1


def lock_path() -> Path:
    """The file that everybody on this machine uses.

    The choice must not depend on the user or on TMPDIR, else two users would lock two files: the
    first directory of the list that everybody may write to.
    """
    chosen = os.environ.get(FILE_VARIABLE)
    if chosen:
        return Path(chosen)
    for place in ("/run/lock", "/dev/shm", "/tmp"):
        directory = Path(place)
        if directory.is_dir() and directory.stat().st_mode & 0o1002 == 0o1002:
            return directory / "autotune-machine.lock"
    raise RunnerError(
        "no place for the machine lock: none of /run/lock, /dev/shm, /tmp is a directory that "
        f"everybody may write to (mode 1777); set {FILE_VARIABLE} to a path all users share"
    )


def inherited() -> Mode | None:
    """Mode of the lock that this process or one above it holds, or None."""
    mode, _, rest = os.environ.get(VARIABLE, "").partition(":")
    pid, _, fd = rest.partition(":")
    if mode not in ("shared", "exclusive") or not (pid.isdigit() and fd.isdigit()):
        return None
    path = lock_path()
    # A command started by the wrapper has the descriptor itself; one started by Python's
    # subprocess has not, but the holder above it still has.
    for owner in (os.getpid(), int(pid)):
        held = mode_held(path, owner, int(fd))
        if held is not None:
            return held
    return None


class MachineLock:
    """Context manager.  ``mode`` is ``"exclusive"`` (measuring) or ``"shared"`` (tests, builds).

    ``wait_s``: longest wait, None for ever; then :class:`RunnerError` names the holder.
    ``on_wait(holder)`` is called once if there is a wait.  Under an inherited lock nothing is
    taken, also not exclusively under a shared one (that is how tests measure): ask
    :func:`inherited`.
    """

    def __init__(
        self,
        mode: Mode,
        wait_s: float | None = None,
        on_wait: Callable[[str], None] | None = None,
    ) -> None:
        self.mode: Mode = mode
        self.waited_s = 0.0
        self._wait_s = wait_s
        self._on_wait = on_wait
        self._file: LockFile | None = None
        self._outer: str | None = None
        self._told = False

    def __enter__(self) -> MachineLock:
        if inherited() is not None:
            return self
        path = lock_path()
        start = time.monotonic()
        # Who waits for exclusive use holds the gate, so that a stream of tests cannot keep a
        # measurement waiting for ever.
        gate = LockFile(path.with_name(path.name + ".gate"))
        try:
            self._acquire(gate, "exclusive", path, start)
            file = LockFile(path)
            try:
                self._acquire(file, self.mode, path, start)
            except BaseException:
                file.close()
                raise
        finally:
            gate.close()
        self.waited_s = time.monotonic() - start
        self._file = file
        if self.mode == "exclusive":
            file.write_holder()
        self._outer = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = f"{self.mode}:{os.getpid()}:{file.fd}"
        return self

    def _acquire(self, file: LockFile, mode: Mode, path: Path, start: float) -> None:
        while not file.try_lock(mode):
            if not self._told and self._on_wait is not None:
                self._on_wait(holders_text(path))
            self._told = True
            if self._wait_s is not None and time.monotonic() - start >= self._wait_s:
                raise RunnerError(
                    f"the machine lock {path} is held by {holders_text(path)}; waited "
                    f"{self._wait_s:g} s for {self.mode} use; wait for its end or end it"
                )
            time.sleep(_POLL_S)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is None:
            return
        if self._outer is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = self._outer
        self._file.close()
        self._file = None

    def become(self, command: Sequence[str]) -> NoReturn:
        """Replace this process by ``command``, which keeps the lock until it ends.

        Raises ``OSError`` if it cannot be started.
        """
        if self._file is not None:
            os.set_inheritable(self._file.fd, True)
        os.execvp(command[0], list(command))


def main(words: Sequence[str] | None = None) -> int:
    """Command line of the wrapper; returns only if the command was not started."""
    parser = argparse.ArgumentParser(prog="python -m runner.lock", description="Machine lock.")
    group = parser.add_mutually_exclusive_group(required=True)
    for mode in ("shared", "exclusive"):
        group.add_argument(f"--{mode}", dest="mode", action="store_const", const=mode)
    parser.add_argument("--wait", type=float, metavar="S", help="longest wait in seconds")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND ARGS")
    options = parser.parse_args(words)
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        parser.error("no command; put it after --")
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


if __name__ == "__main__":
    sys.exit(main())
