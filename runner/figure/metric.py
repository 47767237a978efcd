"""The metric: the figure of a program that counts, read from its output, and its possible
faults."""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import dataclass

from runner.figure.unit import UNKNOWN, Unit, unit_in_header, unit_of_key
from runner.supervise import ExecResult, PatternMatch
from runner.supervise.messages import ABSENT, VERIFY
from runner.types import LaunchSpec, MetricChoice

SMALLEST, LARGEST = 1e-100, 1e100
"""Figures beyond these are not measurements, and their ratios would overflow."""


def patterns_of(spec: LaunchSpec) -> dict[str, str]:
    """The regular expressions to search for, line by line."""
    patterns = {"metric": spec.metric, VERIFY: spec.verify, ABSENT: spec.verify_absent}
    return {k: v for k, v in patterns.items() if v is not None and not v.startswith("json:")}


def metric_count(spec: LaunchSpec, result: ExecResult) -> int | None:
    """How often the metric's regular expression matched; None if the spec has none."""
    if "metric" not in patterns_of(spec):
        return None
    return result.matches["metric"].count if "metric" in result.matches else 0


def metric_of(spec: LaunchSpec, result: ExecResult) -> float | None:
    """The program's own time in seconds, 1/rate for a rate; None if it printed no positive number,
    or one outside of :data:`SMALLEST` to :data:`LARGEST`.

    Unit prefixes (ms, GB/s) are resolved.
    """
    if spec.metric is None:
        return None
    if spec.metric.startswith("json:"):
        value = _json_figure(spec.metric[5:], result)
    else:
        match = result.matches.get("metric")
        value = None if match is None else select_figure(spec.metric_choice, match)
    if value is None or not (math.isfinite(value) and value > 0):
        return None
    figure = 1 / value if spec.metric_rate else value
    return figure if SMALLEST <= figure <= LARGEST else None


def _json_figure(key: str, result: ExecResult) -> float | None:
    """A figure of the last JSON line: a number, or a text such as "1:02:03" or "1,594.3"."""
    raw = (result.json_line or {}).get(key)
    if isinstance(raw, str):
        match = re.match("(.*)", raw)
        figure = None if match is None else PatternMatch.of(match)
        if figure is None or figure.last is None:
            return None
        return figure.last if figure.unit.stated else unit_of_key(key).base_value(figure.last)
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return None
    try:
        return unit_of_key(key).base_value(float(raw))
    except OverflowError:
        return None


def metric_unit(spec: LaunchSpec, result: ExecResult) -> str:
    """The unit of a figure that is not a time, such as "GB/s"; "" for a time or if unknown."""
    unit = _printed_unit(spec, result)
    return unit.text if unit.stated and unit.kind != "time" else ""


def _printed_unit(spec: LaunchSpec, result: ExecResult) -> Unit:
    """The metric's unit in the output: from the words beside it, or the header of its table."""
    if spec.metric is None:
        return UNKNOWN
    if spec.metric.startswith("json:"):
        return unit_of_key(spec.metric[5:])
    match = result.matches.get("metric")
    if match is None or not match.line:
        return UNKNOWN
    if match.unit.kind or match.unit.stated:
        return match.unit
    lines = result.stdout_tail.splitlines()
    row = next((n for n in range(len(lines) - 1, -1, -1) if lines[n].startswith(match.line)), None)
    return UNKNOWN if row is None else unit_in_header(lines, row, match.column)


@dataclass(frozen=True)
class MetricFault:
    """Why a metric cannot be used as the spec asks; ``code`` as in docs/reference/codes.md."""

    code: str
    words: str


def metric_fault(spec: LaunchSpec, result: ExecResult) -> MetricFault | None:
    """The fault of the metric in the output; None if there is none.

    Faults: a truncated or missing number, a rate that would be minimised, and a time that would be
    maximised.
    """
    if spec.metric is None:
        return None
    match = result.matches.get("metric")
    line = "" if match is None else match.line.strip()
    unit = _printed_unit(spec, result)
    if unit.kind == "rate" and not spec.metric_rate:
        words = rate_words("--metric", spec.metric, unit, line)
        return MetricFault(code="metric.rate", words=words)
    if unit.kind == "time" and spec.metric_rate:
        words = time_words("--metric-rate", spec.metric, unit, line)
        return MetricFault(code="metric.time", words=words)
    if match is not None and match.cut:
        words = (
            f"the metric is a part of a number, or one that is not certain, in the line\n"
            f"  {match.cut}\n"
            "Expected a number such as 12.5, 1.25e+01, 1,594.3, 1m23.45s or 1:02:03; the group "
            r"(\S+) in the pattern takes the whole"
        )
        return MetricFault(code="metric.cut", words=words)
    if metric_of(spec, result) is None:
        words = f"the output has no positive number for {spec.metric!r}"
        return MetricFault(code="metric.none", words=words)
    return None


def rate_words(option: str, pattern: str, unit: Unit, line: str = "") -> str:
    """The message for a rate that would be minimised; ``line``: where it was read."""
    where = f", in the line\n  {line}\n" if line else ".\n"
    return (
        f"{option} reads a rate ({unit.text}): a larger one is better{where}"
        f"Expected a time here; for a rate: --metric-rate {shlex.quote(pattern)}"
    )


def time_words(option: str, pattern: str, unit: Unit, line: str = "") -> str:
    """The message for a time that would be maximised; ``line``: where it was read."""
    where = f", in the line\n  {line}\n" if line else ".\n"
    return (
        f"{option} reads a time ({unit.text}): a smaller one is better{where}"
        f"Expected a rate here; for a time: --metric {shlex.quote(pattern)}"
    )


def select_figure(choice: MetricChoice, match: PatternMatch) -> float | None:
    """The figure of one run that counts, chosen among all printed ones; None if none is a
    number."""
    if choice == "last":
        return match.last
    if choice == "first":
        return match.first
    if choice == "min":
        return match.smallest
    if choice == "max" or match.total is None:
        return match.largest
    return match.total if choice == "sum" else match.total / match.count
