"""What a stopped run proves: of a time, of a rate, and of an own objective nothing."""

from __future__ import annotations

import math

import pytest

from autotune.measurement.budget import SearchPlan
from autotune.measurement.run_history import (
    DEFAULT_KEY,
    DEFAULT_PHASE,
    SEARCH,
    HistoryEntry,
    RunHistory,
)
from autotune.study.proof import candidate_seconds
from autotune.wording import OBJECTIVE
from runner.types import RunRecord
from tests.case_table import case_table

KINDS = {
    "time": {"metric_s": 8.0},
    "rate": {"metric_s": 1e-6, "metric_rate": True},
    "objective": {"metric_s": 4e9, "metric_unit": OBJECTIVE},
    "no figure": {},
}
"""Of runs of 10 s: 8 s of work; a million a second; bytes; nothing printed."""


def default(order: int, kind: str) -> HistoryEntry:
    record = RunRecord(state="ok", wall_s=10.0, **KINDS[kind])  # type: ignore[arg-type]
    return HistoryEntry(order, DEFAULT_KEY, DEFAULT_PHASE, record)


def stopped(order: int) -> HistoryEntry:
    return HistoryEntry(order, "a=1", SEARCH, RunRecord(state="timeout", wall_s=32.0), trial=0)


@case_table(
    ("kind", "ratio"),
    [("time", 30 / 8), ("rate", 3.2), ("objective", None), ("no figure", 3.2)],
)
def test_a_stopped_run(kind: str, ratio: float | None) -> None:
    history = RunHistory.of([default(0, kind), default(1, kind), stopped(2)])
    least = history.ratio(history.entries[-1])
    assert least == (None if ratio is None else pytest.approx(ratio))
    reference = history.entries[0]
    seconds = candidate_seconds(history.entries[-1], reference)
    assert seconds == pytest.approx((ratio or 1.0) * reference.record.value_s)


@case_table(
    ("kind", "factor"),
    [("time", 2 + 3 * 0.5 * 8), ("rate", 3 * 0.5 * 10), ("objective", 3 * 10), ("no figure", 15)],
)
def test_when_a_run_is_stopped(kind: str, factor: float) -> None:
    """Three times the incumbent, here of half the default's figure."""
    plan = SearchPlan()
    limit = plan.run_limit_s([default(0, kind).record, default(1, kind).record], 0.5)
    assert limit is not None
    assert math.isclose(limit, plan.limit_slack_s + factor)
