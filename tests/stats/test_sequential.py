"""Looks: exact error over all of them, decisions that stay, futility, finalists."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.errors import UsageError
from autotune.stats import LOOKS, Decision, LookPlan, drift_blocks, settle, winner
from autotune.stats.comparison import judge
from autotune.stats.log_ratios import log_ratios
from benchmarks.harness.simulated_times import simulate
from tests.case_table import case_table


def run(plan: LookPlan, default, candidate) -> Decision:
    """As a study does: ask at every look until the answer is final."""
    for n in plan.looks:
        decision = plan.decide(default[:n], candidate[:n], resolution=0)
        if decision.stop:
            return decision
    return decision


def outcomes(plan: LookPlan, model: str, studies: int, seed: int, **truth) -> list[str]:
    rng = np.random.default_rng(seed)
    drawn = (simulate(model, rng, plan.looks[-1], **truth) for _ in range(studies))
    return [plan.decide(s.default, s.candidate, resolution=0).outcome for s in drawn]


@case_table("model", ["normal", "heavy tail", "outliers", "asymmetric"])
def test_intervals_of_all_looks_hold_the_truth_together(model: str) -> None:
    plan, studies, rng = LookPlan(), 300, np.random.default_rng(41)
    held = 0
    for _ in range(studies):
        s = simulate(model, rng, 40, gain=0.03)
        ratios = log_ratios(s.default, s.candidate, resolution=0)
        ends = [
            judge(ratios.first(n), k, level=1, alpha=0.05, min_gain=0.02, method="sign")
            for n, k in zip(plan.looks, plan.ranks, strict=True)
        ]
        held += all(math.log1p(c.lo) <= s.truth <= math.log1p(c.hi) for c in ends)
    assert held / studies >= plan.level - 2 * math.sqrt(0.95 * 0.05 / studies)


def test_exact_false_winner_rate_over_every_short_study() -> None:
    """All 1024 sequences of 10 equally likely blocks, decided at 5, 8 and 10."""
    plan = LookPlan(looks=(5, 8, 10), alpha=0.2, win_from=5, min_gain=0.0, futility=0.0)
    faster = (np.arange(1024)[:, None] >> np.arange(10)) & 1
    candidate = np.where(faster, 0.5, 2.0)
    wins = sum(plan.decide([1.0] * 10, c, resolution=0).outcome == "better" for c in candidate)
    assert len(set(plan.ranks)) == 3
    assert wins / 1024 == pytest.approx((1 - plan.level) / 2)
    assert 0 < wins / 1024 <= 0.1


@case_table("model", ["normal", "drift", "bimodal"])
def test_false_winners_over_all_looks(model: str) -> None:
    found = outcomes(LookPlan(), model, 400, 42)
    assert found.count("better") / 400 <= 0.025 + 2 * math.sqrt(0.025 * 0.975 / 400)


def test_repeating_drifted_blocks_makes_no_winner() -> None:
    """Dropping blocks by what the default did must not favour either side."""
    plan, rng, wins, dropped = LookPlan.single_look(20), np.random.default_rng(43), 0, 0
    for _ in range(400):
        s = simulate("drift", rng, 30, cv=0.10)
        kept = np.setdiff1d(np.arange(30), drift_blocks(s.default))
        dropped += 30 - kept.size
        if kept.size >= 20:
            decision = plan.decide(s.default[kept], s.candidate[kept], resolution=0)
            wins += decision.outcome == "better"
    assert dropped > 400
    assert wins / 400 <= 0.025 + 2 * math.sqrt(0.025 * 0.975 / 400)


def test_power() -> None:
    assert outcomes(LookPlan(), "normal", 100, 44, gain=0.10, cv=0.05).count("better") >= 95
    assert outcomes(LookPlan(), "normal", 100, 44, gain=0.05, cv=0.01).count("better") == 100
    assert outcomes(LookPlan(), "normal", 150, 44, gain=0.05, cv=0.05).count("better") >= 110


def test_futility_saves_blocks_and_costs_little_power() -> None:
    rng = np.random.default_rng(45)
    used = {0.0: 0, 0.1: 0}
    for _ in range(80):
        s = simulate("normal", rng, 40)
        for futility in used:
            used[futility] += run(LookPlan(futility=futility), s.default, s.candidate).comparison.n
    assert used[0.1] < 0.75 * used[0.0]
    won = [
        outcomes(LookPlan(futility=f), "normal", 120, 46, gain=0.05, cv=0.05).count("better")
        for f in (0.0, 0.1)
    ]
    assert won[0] >= won[1] >= won[0] - 0.06 * 120


@case_table("gain", [0.0, 0.03, 0.05])
def test_a_symmetric_plan_answers_alike_whichever_side_is_first(gain: float) -> None:
    plan, rng = LookPlan(symmetric=True), np.random.default_rng(44)
    turned = {"better": "worse", "worse": "better"}
    seen = []
    for _ in range(150):
        s = simulate("normal", rng, plan.looks[-1], gain=gain, cv=0.03)
        found = plan.decide(s.default, s.candidate, resolution=0)
        other = plan.decide(s.candidate, s.default, resolution=0)
        assert other.outcome == turned.get(found.outcome, found.outcome)
        seen.append(found.outcome)
    assert "futile" not in seen
    assert seen.count("better") >= {0.0: 0, 0.03: 60, 0.05: 140}[gain]
    assert seen.count("worse") <= 8


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1, 3]), st.sampled_from([-0.1, 0.0, 0.05, 0.2]))
def test_a_decision_depends_on_complete_looks_only_and_stays(seed, finalists, gain) -> None:
    plan = LookPlan(finalists=finalists)
    s = simulate("normal", np.random.default_rng(seed), 40, gain=gain)
    last: Decision | None = None
    for n in range(1, 41):
        decision = plan.decide(s.default[:n], s.candidate[:n], resolution=0)
        between = n not in LOOKS and n > LOOKS[0]
        if last is not None and (last.stop or between):
            assert decision == last
        if decision.outcome == "better":
            assert decision.comparison.n >= 12
        assert decision.stop == (decision.next_look is None)
        last = decision
    assert last is not None
    assert last.stop


def test_win_chance_is_exactly_nothing_when_no_win_is_left() -> None:
    plan, spare = LookPlan(), LookPlan().ranks[-1] - 1
    lost = [1.0] * 27, [1.1] * (spare + 1) + [0.8] * (26 - spare)
    assert plan.win_chance(log_ratios(*lost, resolution=0)) == 0.0
    open_still = [1.0] * 27, [1.1] * spare + [0.8] * (27 - spare)
    assert plan.win_chance(log_ratios(*open_still, resolution=0)) > 0.0


def test_clear_cases_end_early() -> None:
    rng = np.random.default_rng(47)
    base = 1 + rng.normal(0, 0.005, 40)
    other = 1 + rng.normal(0, 0.005, 40)
    assert run(LookPlan(), base, other / 1.2).comparison.n == 12
    worse = run(LookPlan(), base, other * 1.2)
    assert (worse.outcome, worse.comparison.n) == ("worse", 8)
    assert run(LookPlan(), base, other).outcome in ("equivalent", "futile")
    assert run(LookPlan(), base, other).comparison.n <= 18


def test_candidate_that_always_hits_the_limit_ends_at_the_first_look() -> None:
    decision = LookPlan().decide([1.0] * 8, [3.0] * 8, censored_candidate=[True] * 8, resolution=0)
    assert decision.outcome == "worse"


def test_coarse_metric_never_wins_at_any_look() -> None:
    decision = LookPlan().decide([0.15] * 40, [0.14] * 40)
    assert decision.outcome in ("futile", "undecided")
    assert any(w.code == "metric.coarse" for w in decision.comparison.warnings)


def test_fixed_plan_is_a_single_comparison_with_alpha_split() -> None:
    plan = LookPlan.single_look(12, finalists=3)
    assert plan.ranks == (2,)
    assert plan.level >= 1 - 0.05 / 3
    s = simulate("normal", np.random.default_rng(48), 12, gain=0.3)
    assert not plan.decide(s.default[:11], s.candidate[:11]).stop
    assert plan.decide(s.default, s.candidate).outcome == "better"


def test_wilcoxon_plan_keeps_its_level() -> None:
    plan = LookPlan(method="wilcoxon", finalists=2)
    assert plan.level >= 0.975
    assert outcomes(plan, "normal", 60, 49, gain=0.1).count("better") >= 57


def test_runners_up_are_stopped_once_a_finalist_has_won() -> None:
    rng = np.random.default_rng(50)
    base = 1 + rng.normal(0, 0.03, 12)
    fast, slight = base / 1.3, base / (1.05 + np.tile([-0.08, 0.03, 0.05], 4))
    plan = LookPlan(finalists=2)
    decisions = [plan.decide(base, c, resolution=0) for c in (slight, fast)]
    assert [d.outcome for d in decisions] == ["continue", "better"]
    assert [d.outcome for d in settle(decisions)] == ["futile", "better"]
    assert winner(settle(decisions)) == 1
    assert settle(decisions[:1]) == decisions[:1]
    assert winner(decisions[:1]) is None


@case_table(
    ("wrong", "word"),
    [
        ({"looks": ()}, "looks"),
        ({"looks": (12, 8)}, "looks"),
        ({"alpha": 0.0}, "alpha"),
        ({"finalists": 0}, "finalists"),
        ({"min_gain": -0.1}, "min-gain"),
    ],
)
def test_values_that_make_no_plan_are_refused(wrong, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        LookPlan(**wrong)


def test_with_a_margin_the_looks_end_when_a_loss_is_ruled_out_or_shown() -> None:
    plan = LookPlan(margin=0.02)
    rng = np.random.default_rng(3)
    for gain, outcome in ((0.0, "not slower"), (0.1, "not slower"), (-0.06, "worse")):
        first, second = np.exp(0.005 * rng.standard_normal((2, 40)))
        decision = plan.decide(first, second / (1 + gain))
        assert decision.outcome == outcome
        assert decision.comparison.n == 8


def test_with_a_margin_a_wide_interval_is_followed_to_the_last_look() -> None:
    plan = LookPlan(margin=0.02)
    rng = np.random.default_rng(3)
    first, second = np.exp(0.5 * rng.standard_normal((2, 40)))
    for count, outcome in ((7, "continue"), (12, "continue"), (39, "continue"), (40, "undecided")):
        assert plan.decide(first[:count], second[:count]).outcome == outcome


def test_a_look_that_is_to_decide_is_the_only_one_and_the_last() -> None:
    plan = LookPlan(margin=0.02, decide_at=18)
    fast, slow = np.full(40, 1.0), np.full(40, 1.1)
    early = plan.decide(slow[:12], fast[:12])
    assert (early.outcome, early.next_look) == ("continue", 18)
    decision = plan.decide(slow, fast)
    assert (decision.outcome, decision.comparison.n) == ("not slower", 18)
    rng = np.random.default_rng(3)
    first, second = np.exp(0.5 * rng.standard_normal((2, 40)))
    assert plan.decide(first, second).outcome == "undecided"


@case_table(
    "wrong", [{"margin": 0.0}, {"margin": 1.0}, {"decide_at": 12}, {"margin": 0.1, "decide_at": 13}]
)
def test_margins_and_looks_that_make_no_plan_are_refused(wrong) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError, match="expected"):
        LookPlan(**wrong)


def test_a_loss_of_just_the_margin_passes_no_more_often_than_promised() -> None:
    plan = LookPlan(margin=0.02)
    rng = np.random.default_rng(11)
    passed = 0
    for _ in range(1000):
        first, second = np.exp(0.02 * rng.standard_normal((2, 40)))
        passed += plan.decide(first * 0.98, second).outcome == "not slower"
    # 2.5 % of 1000, and two standard errors.
    assert passed <= 25 + 2 * (1000 * 0.025 * 0.975) ** 0.5
    assert LookPlan(looks=(8, 40)).first_interval == 8
    assert LookPlan(looks=(4, 40)).first_interval == 40
