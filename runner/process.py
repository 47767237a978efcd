"""Processes of this machine, identified as in the kernel by their id and start.

The module imports only the standard library, because the supervision process uses it between runs,
and the runtimes inside ranks.
"""

from __future__ import annotations

import os


def read_proc(path: str) -> bytes:
    """Contents of a file of /proc; empty if the file is gone or not readable."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        parts = []
        while part := os.read(fd, 1 << 16):
            parts.append(part)
        return b"".join(parts)
    except OSError:
        # The process ended between open and read.
        return b""
    finally:
        os.close(fd)


def all_pids() -> list[int]:
    """Ids of all visible processes of the machine."""
    with os.scandir("/proc") as entries:
        return [int(entry.name) for entry in entries if entry.name.isdigit()]


def stat_fields(pid: int) -> tuple[str, list[str]] | None:
    """The name, and the fields from ``state`` on, of ``/proc/PID/stat``; None if it is gone."""
    text = read_proc(f"/proc/{pid}/stat").decode("utf-8", "replace")
    if not text:
        return None
    # A name may contain blanks and brackets; the last closing bracket ends it.
    start, end = text.index("("), text.rindex(")")
    return text[start + 1 : end], text[end + 2 :].split()


def start_of(pid: int) -> int | None:
    """Start of a process in ticks after boot; None if it has ended, even if it is a zombie."""
    stat = stat_fields(pid)
    return None if stat is None or stat[1][0] in "ZX" else int(stat[1][19])
