"""Process trees: reading them through /proc, finding the processes of a lost run, and ending them.

Reading: a process that has ended is skipped, never an error.

Lost runs: if the supervision process itself was killed, PR_SET_PDEATHSIG terminates the launcher,
and mpirun its ranks. Remaining processes are found by the marker in their environment: by the tuner
at once, or, if it was killed too, by the next tuner on this machine.

Ending: SIGTERM, a grace time, then SIGKILL until no process is left.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from runner.files.paths import exists
from runner.process import all_pids, read_proc, start_of, stat_fields
from runner.supervise.messages import Leftover

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None, use_errno=True)
_HAS_CHILDREN = exists(f"/proc/self/task/{os.getpid()}/children")


def descendants(root: int) -> list[int]:
    """All processes below ``root``, parents before children, zombies included.

    If the kernel lists children, the cost grows with the tree and not with the machine. A changing
    tree may be seen incompletely; callers repeat until ``wait`` reports no children.
    """
    table = None if _HAS_CHILDREN else _parents()
    tree: list[int] = []
    pids = {root}
    todo = [root]
    while todo:
        pid = todo.pop(0)
        below = _children(pid) if table is None else table.get(pid, [])
        fresh = [child for child in below if child not in pids]
        pids.update(fresh)
        tree += fresh
        todo += fresh
    return tree


def _children(pid: int) -> list[int]:
    below: list[int] = []
    try:
        with os.scandir(f"/proc/{pid}/task") as threads:
            # A child belongs to the thread that created it.
            for thread in threads:
                below += map(int, read_proc(f"{thread.path}/children").split())
    except OSError:
        # The process has ended; its children will be found below the subreaper.
        pass
    return below


def _parents() -> dict[int, list[int]]:
    table: dict[int, list[int]] = {}
    for pid in all_pids():
        if (parent := parent_of(pid)) is not None:
            table.setdefault(parent, []).append(pid)
    return table


def parent_of(pid: int) -> int | None:
    """Parent's process id; None if ``pid`` has ended."""
    stat = stat_fields(pid)
    return None if stat is None else int(stat[1][1])


def session_of(pid: int) -> int | None:
    """Session id; None if ``pid`` has ended."""
    stat = stat_fields(pid)
    return None if stat is None else int(stat[1][3])


def is_alive(pid: int) -> bool:
    """True if ``pid`` exists and is no zombie."""
    return start_of(pid) is not None


def is_stopped(pid: int) -> bool:
    """True if ``pid`` is stopped by a signal (SIGSTOP, SIGTSTP)."""
    stat = stat_fields(pid)
    return stat is not None and stat[1][0] == "T"


def environ(pid: int) -> dict[bytes, bytes]:
    """Environment at the start of the process; empty if it has ended or is not readable."""
    pairs = (item.partition(b"=") for item in read_proc(f"/proc/{pid}/environ").split(b"\0"))
    return {name: value for name, sep, value in pairs if sep}


def affinity_of(pid: int) -> str | None:
    """Affinity of the main thread as a list ("0,2-3")."""
    for line in read_proc(f"/proc/{pid}/status").splitlines():
        if line.startswith(b"Cpus_allowed_list:"):
            return line.split(b":", 1)[1].strip().decode("ascii")
    return None


def exe(pid: int) -> str:
    """Path of the program file, or "" if it cannot be read."""
    try:
        return str(Path(f"/proc/{pid}/exe").readlink())
    except OSError:
        return ""


def maps_mpi(pid: int) -> bool:
    """True if an MPI library is loaded (libmpi of Open MPI and Intel MPI, or libmpich)."""
    return b"/libmpi" in read_proc(f"/proc/{pid}/maps")


def name_of(pid: int) -> str:
    """Short name, as ``ps`` shows it."""
    stat = stat_fields(pid)
    return "?" if stat is None else stat[0]


MARKER = "AUTOTUNE_RUN_ID"
"""Environment variable of every supervised program: ``SERVERPID-SERVERSTART-NUMBER``."""


GRACE_S = 3.0
_STRAYS_PATIENCE_S = 10.0


def marker(server: str, number: int) -> str:
    """Value of the marker for run ``number`` of the supervisor with this identity."""
    return f"{server}-{number}"


def identity(server: int) -> str:
    """Process id and start time; together they identify a process uniquely."""
    stat = stat_fields(server)
    return f"{server}-{stat[1][19] if stat else 0}"


def of_server(name: str) -> set[int]:
    """Living processes marked by the supervisor with this identity, and all processes of their
    sessions.

    A process whose environment was cleared is still found if it stayed in the session.
    """
    return _find(lambda pid, owner: owner == name)


def find_orphans() -> set[int]:
    """Living processes marked by any supervisor that is no longer alive.

    Other pid namespaces are left out: there the supervisor's id names another process.
    """
    namespace = _namespace(os.getpid())

    def is_orphan(pid: int, owner: str) -> bool:
        server = int(owner.split("-")[0])
        # A zombie counts as dead: in a container perhaps no process ever reaps it.
        alive = identity(server) == owner and is_alive(server)
        return not alive and _namespace(pid) == namespace

    return _find(is_orphan)


def end(find: Callable[[], set[int]], grace_s: float = GRACE_S) -> set[int]:
    """Send SIGTERM to all processes that ``find`` returns, later SIGKILL, until it returns none.

    SIGKILL follows after ``grace_s`` seconds. Returns the processes that are still left seconds
    later; they cannot be killed from here.
    """
    left = find()
    signal_all(left, signal.SIGTERM)
    # A stopped process handles SIGTERM only after it continues.
    signal_all(left, signal.SIGCONT)
    start = time.monotonic()
    while (left := find()) and time.monotonic() < start + grace_s + _STRAYS_PATIENCE_S:
        if time.monotonic() >= start + grace_s:
            signal_all(left, signal.SIGKILL)
        time.sleep(0.02)
    return left


def signal_all(pids: Iterable[int], number: signal.Signals) -> None:
    """Signal every process that still exists and that may be signalled."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _find(matches: Callable[[int, str], bool]) -> set[int]:
    sessions = {pid: session_of(pid) for pid in all_pids()}
    # Never the caller's own session: it may itself run below a supervisor.
    own_session = session_of(os.getpid())
    living = {pid: s for pid, s in sessions.items() if s != own_session and is_alive(pid)}
    marked_pids = {
        pid for pid in living if (owner := _owner(pid)) is not None and matches(pid, owner)
    }
    sids = {living[pid] for pid in marked_pids} - {None, 0}
    # If the session's leader is alive and unmarked, no run created the session.
    theirs = {sid for sid in sids if sid in marked_pids or sid not in living}
    return marked_pids | {pid for pid, session in living.items() if session in theirs}


def _namespace(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return ""


def _owner(pid: int) -> str | None:
    value = environ(pid).get(MARKER.encode(), b"").decode("ascii", "replace")
    owner, _, _ = value.rpartition("-")
    return owner if owner and owner.split("-")[0].isdigit() else None


_AGAIN_S = 0.02
"""Seconds between two rounds of SIGKILL: a tree may grow while it is killed."""
_PATIENCE_S = 10.0
"""After this many seconds of SIGKILL a process counts as unkillable (stuck in the kernel)."""


class TreeStop:
    """Ends all processes below this one, in steps that its caller triggers over time.

    Process groups would not do: PRRTE gives every rank its own group. The tree below a subreaper is
    complete, because orphans return to it.
    """

    def __init__(self, now: float, grace_s: float) -> None:
        self.next_at = now + grace_s
        self._kill_until: float | None = None
        self.hopeless = False
        signal_tree(signal.SIGTERM)
        # A stopped process handles SIGTERM only after it continues.
        signal_tree(signal.SIGCONT)

    def hurry(self, now: float) -> None:
        """End the grace time now."""
        self.next_at = min(self.next_at, now)

    def on_time(self, now: float) -> None:
        """One round of SIGKILL; must be called whenever ``next_at`` is reached."""
        if self._kill_until is None:
            self._kill_until = now + _PATIENCE_S
        self.hopeless = now >= self._kill_until
        signal_tree(signal.SIGKILL)
        self.next_at = now + _AGAIN_S


def signal_tree(number: signal.Signals) -> None:
    """Send a signal to every descendant that may be signalled."""
    # A process of another user (a setuid program) stays; on_time gives up after a while.
    signal_all(descendants(os.getpid()), number)


def living() -> tuple[Leftover, ...]:
    """Descendants of this process that are still running."""
    pids = [pid for pid in descendants(os.getpid()) if is_alive(pid)]
    return tuple(Leftover(pid, name_of(pid)) for pid in pids)


def continue_without_parent() -> None:
    """Have a stopped process continue when its parent dies, so that it notices the death."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGCONT), 0, 0, 0)


def become_subreaper() -> None:
    """Make orphans below this process its children; raises ``OSError`` if the kernel refuses."""
    if _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def end_everything() -> None:
    """Kill all descendants and wait for them."""
    for _ in range(500):
        signal_tree(signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.02)
