"""Terminal output of the layouts that a study has tried."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.api.tried_layouts import TriedLayout
from autotune.space.parameter import RESOURCES
from autotune.terminal.render import print_line, print_table
from autotune.wording import Metric, beginning

_ROOM = 34
"""Columns of the rest of a setting at 80 columns, with the figures beside it."""


def print_layouts(rows: Sequence[TriedLayout], metric: Metric) -> None:
    """Print a line for each layout, the Pareto-optimal ones marked."""
    print_line()
    if not rows:
        print_line("no layout has a valid run beside the default")
        return
    each = [name for name in ("threads", "workers") if any(_number(r, name) > 1 for r in rows)]
    each = each or ["threads"]
    lines = [
        [
            str(row.layout.ranks),
            *(str(_number(row, name)) for name in each),
            str(row.layout.cores),
            metric.words(row.time_s),
            metric.words(row.core_seconds),
            str(row.runs),
            "*" if row.pareto else "",
            _others(row),
        ]
        for row in rows
    ]
    figures = ("rate", "per core") if metric.kind == "rate" else ("time", "core-s")
    columns = [*(f">{n}" for n in ("ranks", *each, "cores", *figures, "runs")), "*"]
    print_table(
        "layouts by the median of all their runs (no comparison); * no other layout is as\n"
        "fast with as few core-seconds",
        [*columns, "with"],
        lines,
    )


def _number(row: TriedLayout, name: str) -> int:
    return int(getattr(row.layout, name))


def _others(row: TriedLayout) -> str:
    """What the setting has besides its layout."""
    rest = row.setting.without(*RESOURCES)
    return beginning(rest.key, _ROOM) if rest else "-"
