"""Terminal output of a calibration."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from autotune.terminal.render import print_line, print_table
from autotune.wording import HEADLINES, WHY_UNGUARDED, count, percent, seconds

if TYPE_CHECKING:
    from autotune.calibration.response import Calibration, ResponseTable


_MOST_ROWS = 10


_NOTABLE = 0.05


def print_calibration(result: Calibration) -> None:
    """Print the settings with the largest gains, for each number of ranks."""
    for one in result.tables:
        print_line()
        print_line(
            f"{count(one.ranks, 'rank')} on {count(one.nodes, 'node')}: "
            f"{len(one.responses)} settings",
            bold=True,
        )
        print_table("", ["operation", ">bytes", ">default us", "fastest", ">gain"], _rows(one))
    print_line(
        f"\n{result.launches} launches in {seconds(result.seconds)}; {result.points} of "
        f"{result.grid} points of a full grid ({result.points / max(result.grid, 1):.0%})"
    )
    if not result.guarded:
        print_line(HEADLINES["unguarded"], bold=True)
        print_line(WHY_UNGUARDED)


def _rows(one: ResponseTable) -> list[list[str]]:
    """The points with the largest gains, one row for each operation and size."""
    rows = []
    for point, level in one.default.items():
        levels = [
            (points[point].shrunk, setting.key)
            for setting, points in one.responses.items()
            if point in points
        ]
        log, key = min(levels, default=(0.0, ""))
        if log < -_NOTABLE:
            row = [point.operation, f"{point.size}", f"{level.us:.4g}", key]
            rows.append((log, [*row, percent(math.expm1(-log))]))
    return [row for _, row in sorted(rows)[:_MOST_ROWS]]
