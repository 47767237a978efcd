"""Comparison with the default: coverage, verdicts, ties, censoring."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.errors import WorkError
from autotune.stats import NoBlocks, compare
from autotune.stats.comparison import verdict
from benchmarks.harness.simulated_times import MODELS, SimulatedComparison, simulate
from tests.case_table import case_table
from tests.refusals import refused

pairs = st.lists(st.tuples(st.floats(0.1, 100), st.floats(0.1, 100)), min_size=6, max_size=25)
methods = pytest.mark.parametrize("method", ["sign", "wilcoxon"])


def of(s: SimulatedComparison, **options):
    return compare(s.default, s.candidate, censored_candidate=s.censored_candidate, **options)


def covers(c, truth: float) -> bool:
    return (c.lo == -1 or math.log1p(c.lo) <= truth) and truth <= math.log1p(c.hi)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("blocks", [8, 20])
def test_coverage_of_the_sign_interval(model: str, blocks: int) -> None:
    studies, rng = 400, np.random.default_rng(31)
    inside = sum(
        covers(of(s), s.truth)
        for s in (simulate(model, rng, blocks, gain=0.08) for _ in range(studies))
    )
    assert inside / studies >= 0.95 - 2 * math.sqrt(0.95 * 0.05 / studies)


def test_why_wilcoxon_is_not_the_default() -> None:
    """A candidate with a noise of its own breaks its symmetry: it promises 95 % and misses."""
    rng = np.random.default_rng(32)
    drawn = [simulate("asymmetric", rng, 40) for _ in range(200)]
    assert np.mean([covers(of(s), s.truth) for s in drawn]) >= 0.925
    assert np.mean([covers(of(s, method="wilcoxon"), s.truth) for s in drawn]) < 0.925


@methods
@pytest.mark.parametrize("model", ["normal", "heavy tail", "bimodal", "drift", "quantised"])
def test_false_winners_are_rare(model: str, method) -> None:
    studies, rng = 400, np.random.default_rng(33)
    wins = sum(
        of(simulate(model, rng, 12), method=method).verdict == "better" for _ in range(studies)
    )
    assert wins / studies <= 0.025 + 2 * math.sqrt(0.025 * 0.975 / studies)


def test_interval_by_hand() -> None:
    ratios = [1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.07, 1.08, 1.09, 1.10, 1.11, 1.12]
    c = compare(ratios, [1.0] * 12, resolution=0)
    assert c.gain == pytest.approx(math.sqrt(1.06 * 1.07) - 1)
    assert (c.lo, c.hi) == (pytest.approx(0.03), pytest.approx(0.10))
    assert c.level == pytest.approx(1 - 2 * (1 + 12 + 66) / 4096)


def test_wilcoxon_interval_by_hand() -> None:
    logs = np.random.default_rng(34).normal(0.05, 0.03, 10)
    walsh = sorted((a + b) / 2 for a, b in combinations_with_replacement(logs, 2))
    c = compare(np.exp(logs), np.ones(10), resolution=0, method="wilcoxon")
    assert math.log1p(c.gain) == pytest.approx(np.median(walsh))
    assert math.log1p(c.lo) == pytest.approx(walsh[8])  # table value for n = 10: 9th of 55
    assert math.log1p(c.hi) == pytest.approx(walsh[-9])


@settings(max_examples=60, deadline=None)
@given(pairs, st.sampled_from(["sign", "wilcoxon"]))
def test_swapping_the_two_mirrors_the_result(blocks, method) -> None:
    one, two = zip(*blocks, strict=True)
    ab = compare(one, two, method=method)
    ba = compare(two, one, method=method)
    if ab.lo > -1 and math.isfinite(ab.hi):  # coarse steps may open an end
        assert math.log1p(ba.lo) == pytest.approx(-math.log1p(ab.hi), abs=1e-9)
    assert math.log1p(ba.gain) == pytest.approx(-math.log1p(ab.gain), abs=1e-9)
    assert ab.lo <= ab.gain <= ab.hi


@settings(max_examples=60, deadline=None)
@given(pairs, st.floats(0.2, 50), st.sampled_from(["sign", "wilcoxon"]))
def test_censoring_only_widens(blocks, limit: float, method) -> None:
    default, candidate = map(list, zip(*blocks, strict=True))
    full = compare(default, candidate, resolution=0, method=method)
    cut = compare(
        default,
        [min(c, limit) for c in candidate],
        censored_candidate=[c > limit for c in candidate],
        resolution=0,
        method=method,
    )
    assert cut.lo <= full.lo + 1e-12
    assert cut.hi >= full.hi - 1e-12
    if cut.verdict == "worse":
        assert full.hi < 0
    if cut.bound == "exact":
        assert cut.gain == pytest.approx(full.gain)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(-1, 1)), min_size=6, max_size=40),
    st.sampled_from(["sign", "wilcoxon"]),
)
def test_one_step_of_the_metric_never_makes_a_winner(blocks, method) -> None:
    default = [0.01 * k for k, _ in blocks]
    candidate = [0.01 * (k + step) for k, step in blocks]
    c = compare(default, candidate, resolution=0.01, method=method)
    assert c.verdict not in ("better", "worse")
    assert not c.significant


def test_a_coarse_metric_gives_a_warning_not_a_winner() -> None:
    """0.1449 s against 0.1451 s prints as 0.14 and 0.15: a "7 % gain" in every block."""
    c = compare([0.15] * 20, [0.14] * 20)
    assert (c.verdict, c.ties) == ("undecided", 20)
    assert any(w.code == "metric.coarse" for w in c.warnings)
    assert any(w.data == {"ties": 20, "blocks": 20} for w in c.warnings)


def test_a_gain_above_the_resolution_is_still_found() -> None:
    rng = np.random.default_rng(35)
    default = np.round(0.30 + rng.normal(0, 0.01, 12), 2)
    c = compare(default, np.round(default / 1.5, 2))
    assert c.verdict == "better"


def test_zeros_of_a_coarse_metric_are_bounds_and_without_steps_an_error() -> None:
    c = compare([0.01, 0.0, 0.02, 0.01, 0.0, 0.01], [0.0, 0.0, 0.01, 0.01, 0.01, 0.0])
    assert c.verdict == "undecided"
    assert math.isfinite(c.gain)
    with pytest.raises(WorkError, match="0 s"):
        compare([0.0] * 6, [0.0] * 6)


def test_candidate_always_over_the_limit_is_worse() -> None:
    c = compare([1.0, 1.02, 0.99, 1.01, 1.0, 1.03], [3.0] * 6, censored_candidate=[True] * 6)
    assert (c.verdict, c.bound, c.lo) == ("worse", "at most", -1.0)  # data
    assert c.hi == pytest.approx(1.03 / 3 - 1, abs=0.01)
    assert any(w.data == {"side": "setting", "cut": 6, "blocks": 6} for w in c.warnings)


def test_default_over_the_limit_is_a_gain_of_at_least() -> None:
    rng = np.random.default_rng(36)
    c = compare([3.0] * 8, 1 + rng.normal(0, 0.01, 8), censored_default=[True] * 8)
    assert (c.verdict, c.bound, c.hi) == ("better", "at least", math.inf)  # data


def test_both_over_the_limit_say_nothing() -> None:
    c = compare([3.0] * 8, [3.0] * 8, censored_default=[True] * 8, censored_candidate=[True] * 8)
    assert (c.verdict, c.bound) == ("undecided", "unknown")
    assert math.isnan(c.gain)


@case_table(
    ("gain", "lo", "hi", "expected"),
    [
        (0.05, 0.01, 0.09, "better"),
        (0.02, 0.001, 0.04, "better"),
        (0.019, 0.001, 0.04, "undecided"),
        (0.05, 0.0, 0.09, "undecided"),
        (-0.01, -0.03, -0.001, "worse"),
        (0.0, -0.019, 0.019, "equivalent"),
        (0.01, 0.005, 0.015, "equivalent"),
        (0.0, -0.02, 0.01, "undecided"),
    ],
)
def test_the_rule_of_the_verdict(gain: float, lo: float, hi: float, expected: str) -> None:
    assert verdict(gain, lo, hi, 0.02) == expected


def test_too_few_blocks_give_a_range_and_no_verdict() -> None:
    c = compare([2.0, 2.1, 2.2, 2.05], [1.0, 1.0, 1.1, 1.02])
    assert (c.interval, c.verdict, c.significant) == (False, "undecided", False)
    assert any(w.code == "blocks.few" for w in c.warnings)


def test_misuse_by_code_is_a_value_error() -> None:
    with pytest.raises(ValueError, match=r"\b2\b.*\b1\b"):
        compare([1.0, 2.0], [1.0])
    with pytest.raises(NoBlocks):
        compare([], [])


def test_what_is_no_time_is_refused() -> None:
    with refused(WorkError, "metric.no_time"):
        compare([1.0, 2.0], [math.nan, 1.0])
