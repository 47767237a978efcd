"""Stored answers whose metric was read by a pattern that cut numbers, or minimised a rate."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from autotune.config.pattern import unit_in_pattern
from autotune.notes import Note
from runner.supervise import PatternMatch
from runner.types import RunRecord
from runner.unit import UNKNOWN

WHOLE = "whole"
"""The condition ``numbers`` of studies whose numbers were read whole."""
TOLERANCE = 1e-6
"""Largest relative difference of a stored figure and the one that is read from the output."""


def reading_note(
    pattern: str | None, conditions: Mapping[str, Any], records: Iterable[RunRecord]
) -> Note | None:
    """Why the figures of a stored study are not certain; None if they are as now.

    ``pattern`` and ``conditions`` are those of the study's key. ``records``: some of its valid
    runs, with their output; the last one that shows a difference is enough. Studies that read whole
    numbers need no look.
    """
    if pattern is None or pattern.startswith("python:") or conditions.get("numbers") == WHOLE:
        return None
    unit = unit_in_pattern(pattern)
    rate = unit.kind == "rate" and not conditions.get("metric_rate")
    shown = ""
    if not pattern.startswith("json:"):
        for record in records:
            seen = _last_match(pattern, record.stdout_tail)
            if seen is None or record.metric_s is None:
                continue
            if not _same(record.metric_s, seen):
                shown = seen.line.strip()
            if seen.unit.kind == "rate" and not conditions.get("metric_rate"):
                rate, unit = True, seen.unit
            if shown or rate:
                break
    if rate:
        return Note(
            "metric.rate_minimised",
            f"the metric {pattern!r} is a rate ({unit.text}), and the smallest one won; search "
            "again with --metric-rate",
            {"pattern": pattern, "unit": unit.text},
        )
    if shown:
        return Note(
            "metric.was_cut",
            f"the metric {pattern!r} read a part of a number, in the line {shown!r}; search again",
            {"pattern": pattern, "line": shown},
        )
    return None


def _last_match(pattern: str, output: str) -> PatternMatch | None:
    try:
        regex = re.compile(pattern)
    except re.error:
        return None
    if regex.groups < 1:
        return None
    found: PatternMatch | None = None
    for line in output.splitlines():
        for match in regex.finditer(line):
            one = PatternMatch.of(match)
            found = one if found is None else found.and_then(one)
    return found


def _same(stored: float, seen: PatternMatch) -> bool:
    """Whether a stored figure is one of those that are read now, in the unit that is printed.

    The output may have lost its beginning, so a figure beyond the ends of what is left is no sign.
    """
    if seen.cut:
        return False
    scale = seen.unit.scale if seen.unit is not UNKNOWN else 1.0
    figures = [seen.first, seen.last, seen.smallest, seen.largest, seen.total]
    figures += [None if seen.total is None else seen.total / seen.count]
    known = [figure for figure in figures if figure is not None]
    printed = [figure / scale for figure in known]
    close = (math.isclose(stored, one, rel_tol=TOLERANCE) for one in [*known, *printed])
    return seen.count > 1 or not known or any(close)
