"""The median of run times: interval, censoring, resolution, warnings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from autotune.errors import WorkError
from autotune.stats import detect_resolution, estimate
from benchmarks.harness.simulated_times import NOISES
from tests.case_table import case_table

few = settings(max_examples=60)
times = st.lists(st.floats(0.01, 1e3), min_size=1, max_size=30)


def warned(values, code: str, **options) -> Mapping[str, Any] | None:
    """The figures of the warning of this code; None if there is none."""
    found = {warning.code: warning.data for warning in estimate(values, **options).warnings}
    return found.get(code)


@few
@given(times)
def test_interval_holds_the_median_and_is_made_of_runs(values) -> None:
    e = estimate(values)
    assert e.lo <= e.median <= e.hi
    assert {e.lo, e.hi} <= set(values)
    assert e.interval == (len(values) >= 6)
    assert (e.level >= 0.95) == e.interval


@few
@given(times, st.floats(0.1, 10))
def test_a_change_of_unit_changes_nothing_else(values, unit: float) -> None:
    one, two = estimate(values), estimate([v * unit for v in values])
    assert two.median == pytest.approx(one.median * unit)
    assert two.hi == pytest.approx(one.hi * unit)
    assert two.spread == pytest.approx(one.spread, abs=1e-9)


def test_interval_is_the_one_of_scipy() -> None:
    values = np.random.default_rng(4).lognormal(0, 0.1, 21)
    e = estimate(values)
    theirs = stats.quantile_test(values, q=np.median(values), p=0.5).confidence_interval(0.95)
    assert (e.lo, e.hi) == (theirs.low, theirs.high)


@case_table(("n", "level"), [(6, 0.96875), (5, 0.9375), (12, 0.96142578125)])
def test_the_true_level_is_told(n: int, level: float) -> None:
    assert estimate(np.linspace(1, 1.1, n)).level == pytest.approx(level)


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("n", [6, 15])
def test_coverage_of_the_true_median(name: str, n: int) -> None:
    studies, rng = 400, np.random.default_rng(21)
    truth = math.exp(np.median(NOISES[name](rng, 0.05, 400_000)))
    runs = [estimate(np.exp(NOISES[name](rng, 0.05, n)), resolution=0) for _ in range(studies)]
    inside = np.mean([e.lo <= truth <= e.hi for e in runs])
    assert inside >= 0.95 - 2 * math.sqrt(0.95 * 0.05 / studies)


def test_median_is_exact_while_fewer_than_half_are_censored() -> None:
    true = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6]
    limit = [min(t, 1.35) for t in true]
    e = estimate(limit, censored_runs=[t > 1.35 for t in true])
    assert (e.median, e.bound, e.censored_runs) == (1.3, "exact", 3)
    assert e.hi == math.inf
    assert any((w.code, w.data) == ("runs.cut", {"cut": 3, "runs": 7}) for w in e.warnings)


def test_median_is_a_lower_bound_when_half_are_censored() -> None:
    e = estimate([1.0, 1.1, 1.2, 1.2], censored_runs=[False, False, True, True])
    assert e.bound == "at least"  # data
    assert e.median == pytest.approx(1.15)


@few
@given(st.lists(st.floats(0.5, 2), min_size=6, max_size=25), st.floats(0.6, 2))
def test_censoring_only_widens_what_the_full_data_say(values, limit: float) -> None:
    full = estimate(values)
    cut = estimate([min(v, limit) for v in values], censored_runs=[v > limit for v in values])
    assert cut.lo <= full.lo
    assert cut.hi >= full.hi
    assert cut.median <= full.median
    if cut.bound == "exact":
        assert cut.median == full.median


@case_table(
    ("values", "step"),
    [
        ([1.64, 1.63, 1.7], 0.01),
        ([0.14] * 9, 0.01),
        ([12.0, 13.0, 11.0], 1.0),
        ([0.004 * k for k in (251, 256, 249, 260, 252, 251, 255, 250)], 0.004),
        ([1200.0, 1250.5], 0.1),
        ([0.2130001, 0.2130456], 1e-7),
        ([math.pi, math.e], None),
        ([], None),
        ([0.0, 0.0], None),
    ],
)
def test_resolution_of_a_metric(values, step) -> None:
    found = detect_resolution(values)
    assert found is None if step is None else found == pytest.approx(step)


@few
@given(st.lists(st.integers(50, 400), min_size=1, max_size=40), st.sampled_from([0.01, 0.1, 1.0]))
def test_values_are_multiples_of_the_resolution_found(counts, step: float) -> None:
    values = [k * step for k in counts]
    found = detect_resolution(values)
    assert found is not None
    assert found >= step * (1 - 1e-9)
    for value in values:
        assert value / found == pytest.approx(round(value / found), abs=1e-6)


def test_warnings_say_what_is_wrong() -> None:
    rng = np.random.default_rng(5)
    calm = 1 + rng.normal(0, 0.01, 20)
    assert estimate(calm).warnings == ()
    assert warned(calm[:3], "runs.few") == {"runs": 3}
    assert warned(1 + rng.normal(0, 0.3, 20), "runs.scatter")
    assert warned([*calm, 3.0], "runs.outliers")
    assert warned([*calm[:10], *(calm[10:] * 1.4)], "runs.two_groups")
    coarse = warned(np.round(calm / 7, 2), "metric.coarse")
    assert coarse is not None
    assert coarse["resolution_s"] == pytest.approx(0.01)
    assert not warned(np.round(calm * 10, 2), "metric.coarse")
    assert warned(calm / 100, "metric.short")
    assert not warned(calm / 100, "metric.short", min_time=0)


def test_a_run_is_short_by_its_wall_time() -> None:
    """The program's own figure may be the time of one operation of a run of seconds."""
    one_operation = 1e-6 * (4 + np.random.default_rng(5).normal(0, 0.04, 20))
    assert not warned(one_operation, "metric.short", walls=np.full(20, 3.0))
    short = warned(one_operation, "metric.short", walls=np.full(20, 0.05))
    assert short is not None
    assert short["wall_s"] == pytest.approx(0.05)
    # A run that the time limit ended is no run of that length.
    cut = [False] * 19 + [True]
    assert warned(one_operation, "metric.short", walls=[*np.full(19, 0.05), 9.0], censored_runs=cut)
    with pytest.raises(ValueError, match=r"\b20\b.*\b3\b"):
        estimate(one_operation, walls=[3.0] * 3)


def test_calm_data_are_seldom_warned_of() -> None:
    rng = np.random.default_rng(6)
    noisy = [estimate(1 + rng.normal(0, 0.03, 12), resolution=0).warnings for _ in range(400)]
    assert sum(map(bool, noisy)) <= 0.06 * 400


@case_table("wrong", [math.nan, math.inf, -1.0])
def test_what_is_no_time_is_refused_with_its_place(wrong: float) -> None:
    with pytest.raises(WorkError, match="run 2"):
        estimate([1.0, wrong])


def test_misuse_by_code_is_a_value_error() -> None:
    with pytest.raises(ValueError):
        estimate([])
    with pytest.raises(ValueError, match="1 entries"):
        estimate([1.0, 2.0], censored_runs=[True])
