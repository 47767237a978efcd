"""The time line of a MATE run: who computes, who waits, what regions take, who sends to whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from autotune.config.validated import validate
from autotune.errors import UsageError
from autotune.report.page import PageTable, Section
from runner.files import MIB, read_user_file
from runner.files.json_text import parse_json
from runner.trace.partners import Pair, Partners

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LARGEST = 256 * MIB
BINS = 1500
"""Columns of the picture; a column shows what took most of its time."""
WAITING, BETWEEN = -1, -2
"""What a worker does beside ranks: it waits, or it schedules (no lapse says what it does)."""

LARGEST_RANK = 1 << 20
Lapse = tuple[int, int, float, float]
Rank = Annotated[int, Field(ge=0, lt=LARGEST_RANK)]
Count = Annotated[int, Field(ge=0)]


class ProcessTimeLine(BaseModel):
    """One process: rows of worker, rank (-1: it waits), begin and end in seconds.

    ``ranks`` are its own, global ones. ``tasks``: executions of regions, rows of worker, rank,
    number of the region in ``regions``, begin and end in seconds. ``messages``: rows of sender,
    receiver, messages and bytes. ``cut``: recording ended before the run did. Files of older
    versions have only the first two.
    """

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    workers: int = Field(ge=1, le=4096)
    lapses: list[Lapse]
    ranks: list[Rank] = []
    regions: list[str] = []
    tasks: list[tuple[int, int, Count, float, float]] = []
    messages: list[tuple[Rank, Rank, Count, Count]] = []
    cut: bool = False

    @model_validator(mode="after")
    def _numbers(self) -> ProcessTimeLine:
        if any(task[2] >= len(self.regions) for task in self.tasks):
            raise ValueError(f"a task has a region of a number above {len(self.regions) - 1}")
        return self


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


@dataclass(frozen=True)
class RegionRow:
    """The executions of a region in all ranks; ``share`` is of the time in all regions."""

    name: str
    executions: int
    total_s: float
    longest_s: float
    share: float


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
            # Two neighbouring lapses may overlap by what reading the clock takes.
            between = max(0.0, end - runs - waits)
            rows.append(TimeLineRow(process, worker, ranks, runs, waits, between))
    return rows


def region_times(time_line: TimeLine) -> list[RegionRow]:
    """The regions that were recorded, the one with the most time first."""
    seconds: dict[str, list[float]] = {}
    for part in time_line.processes:
        for _, _, region, begin, end in part.tasks:
            seconds.setdefault(part.regions[region], []).append(end - begin)
    whole = sum(map(sum, seconds.values())) or 1.0
    rows = [
        RegionRow(name, len(own), sum(own), max(own), sum(own) / whole)
        for name, own in seconds.items()
    ]
    return sorted(rows, key=lambda row: (-row.total_s, row.name))


def rank_messages(time_line: TimeLine) -> Partners | None:
    """The messages between ranks, with the process of each rank as its place; None without any.

    Raises UsageError if a message goes to a rank that no process has.
    """
    places = {
        rank: number for number, part in enumerate(time_line.processes) for rank in part.ranks
    }
    pairs = [Pair(*row) for part in time_line.processes for row in part.messages]
    if not pairs:
        return None
    are_numbered = places.keys() == {*range(len(places))}
    if not are_numbered or any(not {pair.sender, pair.receiver} <= places.keys() for pair in pairs):
        raise UsageError(
            "the time line has messages of ranks that no process has; expected the file that a "
            "MATE program wrote with --time-line",
            code="time_line.unreadable",
        )
    return Partners(tuple(places[rank] for rank in range(len(places))), tuple(pairs))


def cut_words(time_line: TimeLine) -> str:
    """A sentence that says up to when a run was recorded; "" for a complete one."""
    ends = [
        max((row[3] for row in part.lapses), default=0.0)
        for part in time_line.processes
        if part.cut
    ]
    if not ends:
        return ""
    return (
        f"Recording was full after {1e3 * min(ends):.1f} ms; what came later is only in the "
        "messages."
    )


def time_line_sections(time_line: TimeLine) -> list[Section]:
    """The sections of a page: who computes and who waits, and the messages between ranks."""
    from autotune.report.traffic import messages_section

    partners = rank_messages(time_line)
    sections = [_workers_section(time_line)]
    if partners is not None:
        sections.append(messages_section("Messages between ranks on MATE", partners, "processes"))
    return sections


def _workers_section(time_line: TimeLine) -> Section:
    """A row for each worker, drawn and in numbers, and one for each region."""
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
    tables = [PageTable("Time of each worker", columns, rows)]
    if regions := region_times(time_line):
        cells = tuple(
            (
                row.name,
                f"{row.executions}",
                f"{1e3 * row.total_s:.1f}",
                f"{1e6 * row.total_s / row.executions:.1f}",
                f"{1e6 * row.longest_s:.1f}",
                f"{row.share:.0%}",
            )
            for row in regions
        )
        names = ("region", ">executions", ">ms", ">mean, us", ">longest, us", ">share")
        tables.append(PageTable("Time of each region", names, cells))
    return Section(
        "Who computes, who waits",
        words=tuple(filter(None, (sentence, cut_words(time_line)))),
        figures=(time_line_picture(time_line, "Ranks that each worker runs, by colour"),),
        tables=tuple(tables),
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
