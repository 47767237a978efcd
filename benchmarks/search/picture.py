"""Two pictures of a benchmark of searches: shares against search runs and machine seconds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autotune.report.figures import COLOURS, Point, curve

Contestants = Mapping[str, Mapping[str, Any]]
"""The figures of each contestant, as ``--json`` stores them."""


def draw(contestants: Contestants, place: Path) -> list[Path]:
    """Write ``place`` (against runs) and ``place`` with ``-seconds``; returns the two files.

    Points are means over all searches with a gain, bars are two standard errors. Drawn are the
    first eight contestants that are not on the small plan.
    """
    shown = [name for name, row in contestants.items() if not row["slow"]][: len(COLOURS)]
    by_runs = {
        name: {
            int(mark): _point(values[0], contestants[name]["share_error"][mark])
            for mark, values in contestants[name]["share"].items()
            if not math.isnan(values[0])
        }
        for name in shown
    }
    by_time = {
        name: {int(s): _point(*point) for s, point in contestants[name]["share_by_s"].items()}
        for name in shown
    }
    other = place.with_name(f"{place.stem}-seconds{place.suffix}")
    title = "Share of OPUB's gain"
    place.write_text(curve(by_runs, title, "search runs", "mean share"), encoding="utf-8")
    other.write_text(curve(by_time, title, "machine seconds", "mean share"), encoding="utf-8")
    return [place, other]


def _point(mean: float, error: float) -> Point:
    return mean, mean - 2 * error, mean + 2 * error
