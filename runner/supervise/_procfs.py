"""Looking at a process tree through /proc.  A process that is gone is skipped, never an error."""

from __future__ import annotations

import os
from pathlib import Path

from runner.guard import all_pids, read_proc, stat_fields

_HAS_CHILDREN = Path(f"/proc/self/task/{os.getpid()}/children").exists()


def descendants(root: int) -> list[int]:
    """All processes below ``root``, parents before children, zombies included.

    The cost grows with the tree, not with the machine, where the kernel lists children.  A tree
    that changes meanwhile may be seen incompletely: callers repeat until ``wait`` says that
    nothing is left.
    """
    table = None if _HAS_CHILDREN else _parents()
    found: list[int] = []
    known = {root}
    todo = [root]
    while todo:
        pid = todo.pop(0)
        below = _children(pid) if table is None else table.get(pid, [])
        fresh = [child for child in below if child not in known]
        known.update(fresh)
        found += fresh
        todo += fresh
    return found


def _children(pid: int) -> list[int]:
    below: list[int] = []
    try:
        with os.scandir(f"/proc/{pid}/task") as threads:
            # A child belongs to the thread that made it.
            for thread in threads:
                below += map(int, read_proc(f"{thread.path}/children").split())
    except OSError:
        # Ended meanwhile; its children will be found below the subreaper.
        pass
    return below


def _parents() -> dict[int, list[int]]:
    table: dict[int, list[int]] = {}
    for pid in all_pids():
        if (parent := parent_of(pid)) is not None:
            table.setdefault(parent, []).append(pid)
    return table


def parent_of(pid: int) -> int | None:
    """Parent's process id, or None if ``pid`` is gone."""
    found = stat_fields(pid)
    return None if found is None else int(found[1][1])


def session_of(pid: int) -> int | None:
    """Session id, or None if ``pid`` is gone."""
    found = stat_fields(pid)
    return None if found is None else int(found[1][3])


def is_alive(pid: int) -> bool:
    """Whether ``pid`` exists and is no zombie."""
    found = stat_fields(pid)
    return found is not None and found[1][0] not in "ZX"


def environ(pid: int) -> dict[bytes, bytes]:
    """Environment that the process was started with (empty if it is gone or not ours)."""
    pairs = (item.partition(b"=") for item in read_proc(f"/proc/{pid}/environ").split(b"\0"))
    return {name: value for name, sep, value in pairs if sep}


def cpus_allowed(pid: int) -> str | None:
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
    """Whether an MPI library is loaded (libmpi of Open MPI and Intel MPI, libmpich)."""
    return b"/libmpi" in read_proc(f"/proc/{pid}/maps")


def name_of(pid: int) -> str:
    """Short name, as ``ps`` shows it."""
    found = stat_fields(pid)
    return "?" if found is None else found[0]
