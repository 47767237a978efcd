"""Ratios with intervals, and the rows of a table of lines."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from autotune.errors import WorkError
from autotune.stats import compare
from benchmarks.harness.table import Table
from runner.types import RunRecord


@dataclass(frozen=True)
class Speedup:
    """Times as fast as the reference; ``interval`` False: the range, of too few blocks."""

    value: float
    low: float
    high: float
    interval: bool

    def __str__(self) -> str:
        return f"{self.value:.3g} ({self.low:.3g} .. {self.high:.3g})" + "*" * (not self.interval)

    @property
    def time(self) -> str:
        """The other way round: time over that of the reference."""
        return f"{1 / self.value:.3f} ({1 / self.high:.3f} .. {1 / self.low:.3f})"


NO_INTERVAL = "* fewer than 6 blocks: the range, no interval"


def speedup(reference: Sequence[float], own: Sequence[float]) -> Speedup:
    """From the times of both in the same blocks, with a 95 % interval."""
    gain = compare(reference, own, resolution=0.0)
    return Speedup(1 + gain.gain, 1 + gain.lo, 1 + gain.hi, gain.interval)


def middle(records: Sequence[RunRecord], key: str) -> float:
    """Median of a number of the program's JSON line."""
    return statistics.median(float(record.extra[key]) for record in records)


def seconds(records: Sequence[RunRecord]) -> list[float]:
    return [record.value_s for record in records]


def rows_of(table: Table, runs: Sequence[Sequence[RunRecord]]) -> list[dict[str, Any]]:
    """One row for each line: its median, its speed-up, and the further figures."""
    by_name = {line.name: seconds(own) for line, own in zip(table.lines, runs, strict=True)}
    rows = []
    for line, records in zip(table.lines, runs, strict=True):
        own = by_name[line.name]
        row: dict[str, Any] = {
            "line": line.name,
            "layout": f"{line.processes} x {line.workers}",
            "seconds": f"{statistics.median(own):.4g}",
            "speed-up": str(speedup(seconds(runs[0]), own)) if records is not runs[0] else "1",
        }
        if any(one.against for one in table.lines):
            other = by_name.get(line.against, own)
            row["of its own"] = "1" if other is own else str(speedup(other, own))
        row |= {key: f"{middle(records, key):.4g}" for key in table.show}
        rows.append(row)
    return rows


def slow_lines(table: Table, runs: Sequence[Sequence[RunRecord]]) -> list[str]:
    """The lines that break the bound of the table, in words."""
    if table.slowest is None:
        return []
    slow = []
    for line, own in list(zip(table.lines, runs, strict=True))[1:]:
        ratio = speedup(seconds(runs[0]), seconds(own))
        if 1 / ratio.value > table.slowest:
            slow.append(f"{table.name}: {line.name}: {ratio.time} times as long")
    return slow


def require_same(table: Table, runs: Sequence[Sequence[RunRecord]]) -> None:
    """Raise WorkError if the lines do not compute the same number in all runs."""
    first: float | None = None
    for line, own in zip(table.lines, runs, strict=True):
        for record in own if line.key else ():
            number = record.extra.get(line.key)
            if not isinstance(number, (int, float)):
                raise WorkError(
                    f"{table.name}: {line.name} prints no number {line.key}", code="benchmark.fails"
                )
            first = number if first is None else first
            if not math.isclose(number, first, rel_tol=table.within, abs_tol=0.0):
                raise WorkError(
                    f"{table.name}: {line.key} of {line.name} is {number!r}, expected {first!r} "
                    f"within {table.within:g}: the lines do not the same work",
                    code="benchmark.fails",
                )
