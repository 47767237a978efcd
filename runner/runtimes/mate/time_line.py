"""The time line of a run: when each worker ran which rank, and when it waited; a JSON file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from runner.files import atomic_file
from runner.runtimes.mate.errors import ConfigError
from runner.runtimes.mate.log import EventLog, Lapse

SCHEMA = "mate-time-line-1"
GAP_S = 1e-6
"""Lapses of one worker with the same rank are one if no more than this lies between them."""


def joined(lapses: list[Lapse], begin: float) -> list[list[float]]:
    """Rows (worker, rank or -1, begin, end), seconds after ``begin``, worker after worker."""
    rows: list[list[float]] = []
    for lapse in sorted(lapses):
        start, end = lapse.begin - begin, lapse.end - begin
        last = rows[-1] if rows else None
        if last is not None and last[:2] == [lapse.worker, lapse.rank] and start - last[3] <= GAP_S:
            last[3] = max(last[3], end)
        else:
            rows.append([lapse.worker, lapse.rank, start, end])
    return sorted(rows, key=lambda row: (row[0], row[2]))


def write_time_line(path: Path, log: EventLog, workers: int, begin: float, comm: Any) -> None:
    """Write the time lines of all processes to a file; collective over ``comm``.

    ``begin`` is when this process began its ranks (``perf_counter``): all processes begin together.
    Raises :class:`ConfigError` if the file cannot be written.
    """
    own = {"workers": workers, "lapses": joined(log.lapses, begin)}
    processes = [own] if comm is None else comm.gather(own, root=0)
    if processes is None:
        return
    try:
        with atomic_file(path) as file:
            file.write(json.dumps({"schema": SCHEMA, "processes": processes}).encode())
    except OSError as error:
        raise ConfigError(f"--time-line {path}: {error.strerror}", code="mate.option") from None
