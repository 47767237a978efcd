"""Stored studies whose numbers were cut, or whose metric is a rate."""

from __future__ import annotations

import pytest

from autotune.study.stored_reading import reading_note
from runner.types import RunRecord


def run(figure: float, line: str) -> RunRecord:
    return RunRecord("ok", wall_s=20.0, metric_s=figure, stdout_tail=f"begin\n{line}\nend\n")


@pytest.mark.parametrize(
    ("pattern", "figure", "line", "code"),
    [
        ("total: ([0-9.]+)", 1.03, "total: 1.030E+01", "metric.was_cut"),
        ("total: ([0-9.]+)", 1.0, "total: 1,594.3", "metric.was_cut"),
        ("total: ([0-9.]+)", 1.0, "total: 1m23.45s", "metric.was_cut"),
        ("total: ([0-9.]+)", 1.0, "total: 1,594", "metric.was_cut"),
        ("total: ([0-9.]+)", 9.8, "total: 9.800E+00", None),
        ("total: ([0-9.]+)", 12.5, "total: 12.5 s", None),
        ("total: ([0-9.]+)", 12.5, "total: 12.5 ms", None),
        ("total: ([0-9.]+)", 12.5, "total: 12.5 GB/s", "metric.rate_minimised"),
        ("rating of=(.*)", 12.5, "VALID with a GFLOP/s rating of=12.5", "metric.rate_minimised"),
        ("json:gflops", 12.5, "", "metric.rate_minimised"),
        ("json:seconds", 12.5, "", None),
        ("python:cpu_seconds:abc", 12.5, "total: 1.5", None),
        (None, 12.5, "total: 1.5", None),
        ("elsewhere (.*)", 12.5, "total: 1.5", None),
    ],
)
def test_what_a_stored_study_shows(
    pattern: str | None, figure: float, line: str, code: str | None
) -> None:
    note = reading_note(pattern, {}, [run(figure, line)])
    assert (None if note is None else note.code) == code
    assert reading_note(pattern, {"numbers": "whole"}, [run(figure, line)]) is None
