"""What can be resolved, and how results are put into a sentence."""

from __future__ import annotations

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from autotune.stats import (
    LookPlan,
    compare,
    comparison_words,
    estimate,
    estimate_words,
    resolution_table,
)
from benchmarks.harness.simulated_times import simulate


def test_the_promised_gain_is_found_with_the_promised_power() -> None:
    ratios = np.exp(np.random.default_rng(81).normal(0, 0.05, 400))
    plan = LookPlan(futility=0.0)
    for row in resolution_table(ratios, 1.0, plan)[1:3]:
        rng = np.random.default_rng(82)
        upto = LookPlan(looks=plan.looks, futility=0.0)
        found = 0
        for _ in range(250):
            s = simulate("normal", rng, row.blocks, gain=row.gain, cv=0.05)
            decision = upto.decide(s.default, s.candidate, resolution=0)
            found += decision.outcome == "better"
        assert found / 250 == pytest.approx(0.8, abs=0.08)


def test_more_blocks_resolve_more_and_cost_more() -> None:
    ratios = np.exp(np.random.default_rng(83).normal(0, 0.08, 30))
    rows = resolution_table(ratios, 1.5, LookPlan(finalists=2))
    assert [r.blocks for r in rows] == [12, 18, 27, 40]
    assert [r.gain for r in rows] == sorted((r.gain for r in rows), reverse=True)
    assert rows[0].runs == 36
    assert rows[0].seconds == pytest.approx(54)
    noisier = resolution_table(ratios**2, 1.5, LookPlan(finalists=2))
    assert all(n.gain > r.gain for n, r in zip(noisier, rows, strict=True))


def test_resolution_of_the_metric_and_min_gain_are_floors() -> None:
    still = np.exp(np.random.default_rng(84).normal(0, 1e-5, 12))
    assert {r.gain for r in resolution_table(still, 1.0, LookPlan())} == {0.02}
    assert resolution_table(still, 1.0, LookPlan(), coarseness=0.07)[0].gain >= 0.07
    with pytest.raises(ValueError, match=r"\b3\b"):
        resolution_table([1.0, 1.0], 1.0, LookPlan())


def words(default, candidate, **options) -> str:
    return comparison_words(compare(default, candidate, resolution=0, **options))


ONE = [1.0] * 12
SMALL = np.linspace(-0.005, 0.005, 12)


def test_sentences(snapshot: SnapshotAssertion) -> None:
    assert [
        words(ONE, 1 / (1.083 + SMALL)),
        words(ONE, 1.12 + SMALL),
        words(ONE, 4 + SMALL),
        words(ONE, 1 + SMALL),
        words(ONE, 1 / (1.01 + SMALL)),
        words(ONE, 1 + 20 * SMALL),
        words(ONE[:3], [0.9, 0.8, 1.1]),
    ] == snapshot


def test_sentences_of_censored_blocks(snapshot: SnapshotAssertion) -> None:
    setting, default = {"censored_candidate": [True] * 12}, {"censored_default": [True] * 12}
    assert [
        words(ONE, [3.0] * 12, **setting),
        words([3.0] * 12, ONE, **default),
        words(ONE, ONE, **default, **setting),
    ] == snapshot


def test_sentences_of_an_estimate(snapshot: SnapshotAssertion) -> None:
    six = [1.62, 1.64, 1.63, 1.65, 1.66, 1.64]
    cut = estimate(six, censored_runs=[True] * 6)
    assert [estimate_words(one) for one in (estimate(six), estimate(six[:1]), cut)] == snapshot
