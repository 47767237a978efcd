"""Processes of a run whose supervisor is gone, found by the marker in their environment.

Needed only when the supervisor itself was killed: PR_SET_PDEATHSIG then terminates the launcher,
and mpirun its ranks; what did not obey is found here, by the tuner at once, or, where the tuner
was killed too, by the next one on this machine.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from runner.guard import all_pids, stat_fields
from runner.supervise import _procfs

MARKER = "AUTOTUNE_RUN_ID"
"""Environment variable of every supervised program: ``SERVERPID-SERVERSTART-NUMBER``."""


GRACE_S = 3.0
_PATIENCE_S = 10.0


def marker(server: int, number: int) -> str:
    """Value of the marker for run ``number`` of the supervisor with this process id."""
    return f"{identity(server)}-{number}"


def identity(server: int) -> str:
    """Process id and start time: names a process once and for all."""
    found = stat_fields(server)
    return f"{server}-{found[1][19] if found else 0}"


def of_server(name: str) -> set[int]:
    """Living processes marked by the supervisor with this identity, and all of their sessions.

    A process whose environment was cleared is still found if it stayed in the session.
    """
    return _find(lambda pid, owner: owner == name)


def abandoned() -> set[int]:
    """Living processes marked by any supervisor that is not alive any more.

    Not those of another pid namespace: there the supervisor's process id means something else.
    """
    here = _namespace(os.getpid())

    def wanted(pid: int, owner: str) -> bool:
        server = int(owner.split("-")[0])
        # A zombie is dead: in a container nobody may collect it.
        alive = identity(server) == owner and _procfs.is_alive(server)
        return not alive and _namespace(pid) == here

    return _find(wanted)


def end(find: Callable[[], set[int]], grace_s: float = GRACE_S) -> set[int]:
    """SIGTERM all that ``find`` finds, after ``grace_s`` seconds SIGKILL, until nothing is found.

    Returns what is left after some seconds of that: processes that cannot be killed from here.
    """
    left = find()
    signal_all(left, signal.SIGTERM)
    # A stopped process takes SIGTERM only when it goes on.
    signal_all(left, signal.SIGCONT)
    start = time.monotonic()
    while (left := find()) and time.monotonic() < start + grace_s + _PATIENCE_S:
        if time.monotonic() >= start + grace_s:
            signal_all(left, signal.SIGKILL)
        time.sleep(0.02)
    return left


def signal_all(pids: Iterable[int], number: signal.Signals) -> None:
    """Signal every process that still exists and may be signalled."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _find(wanted: Callable[[int, str], bool]) -> set[int]:
    sessions = {pid: _procfs.session_of(pid) for pid in all_pids()}
    # Never the caller's own session: it may itself run below some supervisor.
    here = _procfs.session_of(os.getpid())
    living = {pid: s for pid, s in sessions.items() if s != here and _procfs.is_alive(pid)}
    marked = {pid for pid in living if (owner := _owner(pid)) is not None and wanted(pid, owner)}
    sids = {living[pid] for pid in marked} - {None, 0}
    # A session that an unmarked living process leads was not made by a run.
    theirs = {sid for sid in sids if sid in marked or sid not in living}
    return marked | {pid for pid, session in living.items() if session in theirs}


def _namespace(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return ""


def _owner(pid: int) -> str | None:
    value = _procfs.environ(pid).get(MARKER.encode(), b"").decode("ascii", "replace")
    owner, _, _ = value.rpartition("-")
    return owner if owner and owner.split("-")[0].isdigit() else None
