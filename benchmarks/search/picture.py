"""Two figures in SVG: best setting so far against search runs and against machine seconds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from autotune.report.figures import COLOURS, Point, curve
from autotune.space import DEFAULT, Setting
from benchmarks.search.contestants import Standing
from benchmarks.search.replayed_search import MARKS, ReplayedSearch

_SECONDS = (10, 20, 40, 80, 160, 320)


def draw(standings: Sequence[Standing], runs: int, place: Path) -> list[Path]:
    """Write ``place`` (against runs) and ``place`` with ``-seconds``; returns the two files.

    Points are means over all courses with a gain, bars are two standard errors. Drawn are the first
    eight contestants that are not on the small plan.
    """
    shown = [s for s in standings if not s.slow][: len(COLOURS)]
    by_runs = {s.name: {m: _point(s, m, None) for m in MARKS if m <= runs} for s in shown}
    last = max((c.named[-1][1] for s in shown for c in _gaining(s)), default=0.0)
    marks = [m for m in _SECONDS if m <= last] or [_SECONDS[0]]
    by_time = {s.name: {m: _point(s, None, float(m)) for m in marks} for s in shown}
    other = place.with_name(f"{place.stem}-seconds{place.suffix}")
    place.write_text(curve(by_runs, "Share of OPUB's gain", "search runs", "mean share"))
    other.write_text(curve(by_time, "Share of OPUB's gain", "machine seconds", "mean share"))
    return [place, other]


def _gaining(standing: Standing) -> list[ReplayedSearch]:
    return [c for courses in standing.courses.values() for c in courses if not c.land.null]


def _point(standing: Standing, runs: int | None, seconds: float | None) -> Point:
    shares = [
        c.land.share(c.at(runs) if runs is not None else _by_then(c, seconds or 0.0))
        for c in _gaining(standing)
    ]
    if not shares:  # Without a gain on any landscape there is no share.
        return math.nan, math.nan, math.nan
    mean, error = float(np.mean(shares)), float(np.std(shares)) / len(shares) ** 0.5
    return mean, mean - 2 * error, mean + 2 * error


def _by_then(course: ReplayedSearch, seconds: float) -> Setting:
    before = [setting for _, spent, setting in course.named if spent <= seconds]
    return before[-1] if before else DEFAULT
