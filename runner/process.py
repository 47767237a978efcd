"""Processes of this machine, as the kernel tells them apart: by their id and their start.

The module imports nothing outside of the standard library, because the supervision process uses it
between runs, and the runtimes inside ranks do.
"""

from __future__ import annotations

import os


def read_proc(path: str) -> bytes:
    """Contents of a file of /proc; empty if the file is gone or may not be read."""
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
    """Ids of all processes of the machine that are visible from here."""
    with os.scandir("/proc") as entries:
        return [int(entry.name) for entry in entries if entry.name.isdigit()]


def stat_fields(pid: int) -> tuple[str, list[str]] | None:
    """The name and the fields from ``state`` on of ``/proc/PID/stat``; None if it is gone."""
    text = read_proc(f"/proc/{pid}/stat").decode("utf-8", "replace")
    if not text:
        return None
    # A name may contain blanks and brackets; the last closing bracket ends it.
    start, end = text.index("("), text.rindex(")")
    return text[start + 1 : end], text[end + 2 :].split()


def start_of(pid: int) -> int | None:
    """When a process started, in ticks after boot; None if it has ended, as a zombie has."""
    stat = stat_fields(pid)
    return None if stat is None or stat[1][0] in "ZX" else int(stat[1][19])
