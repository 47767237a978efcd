"""The looks of a check: few runs, and no more false proofs than the usual ones."""

from __future__ import annotations

import numpy as np

from autotune.api.prediction_check import CHECK_RUNS, check_plan
from autotune.stats import LookPlan


def test_a_check_takes_few_runs_and_keeps_its_level() -> None:
    plan = check_plan(0.02, has_budget=False)
    assert 1 + 2 * plan.looks[-1] <= CHECK_RUNS
    assert plan.level >= 0.95
    assert check_plan(0.02, has_budget=True) == LookPlan(min_gain=0.02)


def test_a_clear_gain_is_proven_and_none_is_not() -> None:
    plan = check_plan(0.02, has_budget=False)
    default, faster = [1.0] * 11, [0.8] * 11
    assert plan.decide(default, faster).outcome == "better"
    draw = np.random.default_rng(3)
    won = 0
    for _ in range(400):
        pairs = np.exp(draw.normal(0, 0.1, (2, 11)))
        won += plan.decide(pairs[0].tolist(), pairs[1].tolist()).outcome == "better"
    assert won <= 17  # 2.5 % of 400 on this side, and three standard deviations more.
