"""The time line of a run: a JSON file of what each worker did when, and who sent how much to whom.

For each worker: when it ran which rank and which region, and when it waited. For each rank: the
messages and bytes that it sent to each other one.
"""

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


def executions(log: EventLog, begin: float) -> tuple[list[str], list[list[float]]]:
    """The names of the regions, and rows (worker, rank, region, begin, end) of their executions.

    Seconds after ``begin``. An execution ends when its function returns; where it waits within the
    function, the worker may run others meanwhile.
    """
    numbers: dict[str, int] = {}
    begun: dict[tuple[str, int, int], float] = {}
    rows: list[list[float]] = []
    for event in log.events:
        key = (event.graph, event.rank, event.region)
        if event.kind == "start":
            begun[key] = event.time
        elif event.kind == "body" and key in begun:
            name = f"{event.graph}.{log.graphs[event.graph].regions[event.region].name}"
            region = numbers.setdefault(name, len(numbers))
            rank = log.tasks[event.rank].rank
            start, end = begun.pop(key) - begin, event.time - begin
            rows.append([event.worker, rank, region, start, end])
    return [*numbers], rows


def write_time_line(path: Path, log: EventLog, workers: int, begin: float, comm: Any) -> None:
    """Write the time lines of all processes to a file; collective over ``comm``.

    ``begin`` is when this process began its ranks (``perf_counter``): all processes begin together.
    Raises :class:`ConfigError` if the file cannot be written.
    """
    regions, tasks = executions(log, begin)
    own = {
        "workers": workers,
        "ranks": [task.rank for task in log.tasks],
        "lapses": joined(log.lapses, begin),
        "regions": regions,
        "tasks": tasks,
        "messages": [[*pair, *traffic] for pair, traffic in sorted(log.sent.items())],
        "cut": log.is_cut,
    }
    processes = [own] if comm is None else comm.gather(own, root=0)
    if processes is None:
        return
    try:
        with atomic_file(path) as file:
            file.write(json.dumps({"schema": SCHEMA, "processes": processes}).encode())
    except OSError as error:
        raise ConfigError(f"--time-line {path}: {error.strerror}", code="mate.option") from None
