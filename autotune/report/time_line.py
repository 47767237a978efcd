"""The time line of a MATE run as a table and a picture: who computes, who waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from autotune.config.validated import validate
from autotune.errors import UsageError
from autotune.report.page import PageTable, Section
from runner.files import MIB, read_user_file
from runner.files.json_text import parse_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LARGEST = 256 * MIB
BINS = 1500
"""Columns of the picture; a column shows what took most of its time."""
WAITING, BETWEEN = -1, -2
"""What a worker does beside ranks: it waits, or it schedules (no lapse says what it does)."""

Lapse = tuple[int, int, float, float]


class ProcessTimeLine(BaseModel):
    """One process: rows of worker, rank (-1: it waits), begin and end in seconds."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    workers: int = Field(ge=1, le=4096)
    lapses: list[Lapse]


class TimeLine(BaseModel):
    """The file that a MATE program writes with ``--time-line FILE``."""

    model_config = ConfigDict(extra="forbid")

    schema_: Literal["mate-time-line-1"] = Field(alias="schema")
    processes: list[ProcessTimeLine] = Field(min_length=1)


@dataclass(frozen=True)
class TimeLineRow:
    """What one worker did, in seconds: it ran ranks (their calls included), it waited.

    ``ranks`` are the global ranks that it ran, ``between_s`` is the rest.
    """

    process: int
    worker: int
    ranks: tuple[int, ...]
    runs_s: float
    waits_s: float
    between_s: float


def read_time_line(path: Path) -> TimeLine:
    """The time line in a file; raises UsageError for a file that is none."""
    try:
        data: Any = parse_json(read_user_file(path, LARGEST))
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror}", code="time_line.unreadable"
        ) from None
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}", code="time_line.unreadable") from None
    return validate(data, str(path), TimeLine)


def worker_times(time_line: TimeLine) -> list[TimeLineRow]:
    """What each worker did until the last one had ended, in the order of processes and workers."""
    end = max((row[3] for p in time_line.processes for row in p.lapses), default=0.0)
    rows = []
    for process, part in enumerate(time_line.processes):
        for worker in range(part.workers):
            own = [row for row in part.lapses if row[0] == worker]
            runs = sum(row[3] - row[2] for row in own if row[1] >= 0)
            waits = sum(row[3] - row[2] for row in own if row[1] < 0)
            ranks = tuple(sorted({row[1] for row in own if row[1] >= 0}))
            rows.append(TimeLineRow(process, worker, ranks, runs, waits, end - runs - waits))
    return rows


def time_line_section(time_line: TimeLine) -> Section:
    """The section of a page: a row for each worker, drawn and in numbers."""
    times = worker_times(time_line)
    total = sum(row.runs_s + row.waits_s + row.between_s for row in times)
    waits = sum(row.waits_s for row in times)
    rows = tuple(
        (
            f"{row.process}",
            f"{row.worker}",
            f"{len(row.ranks)}",
            *(f"{1e3 * value:.1f}" for value in (row.runs_s, row.waits_s, row.between_s)),
        )
        for row in times
    )
    sentence = (
        "Of one run, which was recorded and is slower than others: the workers wait for "
        f"{waits / total if total else 0.0:.0%} of their time. White: a worker waits."
    )
    columns = ("process", "worker", ">ranks", ">runs, ms", ">waits, ms", ">between, ms")
    return Section(
        "Who computes, who waits",
        words=(sentence,),
        figures=(time_line_picture(time_line, "Ranks that each worker runs, by colour"),),
        tables=(PageTable("Time of each worker", columns, rows),),
    )


def time_line_picture(time_line: TimeLine, title: str) -> str:
    """A row for each worker, a colour for each rank, white where it waits; SVG text."""
    from autotune.report.figures import COLOURS, INK, drawing

    end = max((row[3] for p in time_line.processes for row in p.lapses), default=0.0) or 1.0
    labels: list[str] = []
    rows = sum(part.workers for part in time_line.processes)
    with drawing(title, "milliseconds since the ranks began", "", 1.1 + 0.26 * rows) as figure:
        for process, part in enumerate(time_line.processes):
            for worker in range(part.workers):
                place = len(labels)
                labels.append(f"process {process}, worker {worker}")
                columns = _columns([row for row in part.lapses if row[0] == worker], end)
                for rank, first, last in _spans(columns):
                    if rank == WAITING:
                        continue
                    colour = INK if rank == BETWEEN else COLOURS[rank % len(COLOURS)]
                    left, width = 1000 * end * first / BINS, 1000 * end * (last - first) / BINS
                    figure.axes.barh(
                        place, width, left=left, height=0.7, color=colour, linewidth=0,
                        alpha=0.15 if rank == BETWEEN else 0.8,
                    )  # fmt: skip
        figure.axes.set_yticks(range(rows), labels)
        figure.axes.set_ylim(rows - 0.5, -0.5)
        figure.axes.set_xlim(0, 1000 * end)
        figure.axes.tick_params(axis="y", length=0)
    return figure.svg


def _columns(lapses: Sequence[Lapse], end: float) -> NDArray[np.int64]:
    """For each column of the picture what took most of its time: a rank, or WAITING, BETWEEN."""
    import numpy as np

    best = np.full(BINS, BETWEEN, dtype=np.int64)
    left = np.ones(BINS)
    most = np.zeros(BINS)
    spent: dict[int, NDArray[np.float64]] = {}
    for _, rank, begin, stop in lapses:
        low, high = max(begin / end * BINS, 0.0), min(stop / end * BINS, float(BINS))
        first, last = int(low), min(int(high), BINS - 1)
        row = spent.setdefault(rank, np.zeros(BINS))
        row[first : last + 1] += 1.0
        row[first] -= low - first
        row[last] -= last + 1 - high
    for rank, row in spent.items():
        left -= row
        better = row > most
        best[better], most[better] = rank, row[better]
    best[left > most] = BETWEEN
    return best


def _spans(columns: NDArray[np.int64]) -> list[tuple[int, int, int]]:
    """Equal neighbours as (value, first, end)."""
    import numpy as np

    edges = np.flatnonzero(np.diff(columns)) + 1
    starts, ends = [0, *edges.tolist()], [*edges.tolist(), len(columns)]
    return [(int(columns[a]), a, b) for a, b in zip(starts, ends, strict=True)]
