"""The default's runs, and budgets that they alone would use up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from autotune.measurement.budget import BudgetTooSmall, SearchPlan
from autotune.space import DEFAULT, Setting, Space
from autotune.study.procedure import StudyOutcome, run_procedure
from autotune.study.simulation import MemoryTrialStore, SimulatedEvaluator
from tests.refusals import refused
from tests.study.conftest import ListStrategy, evaluator


def slow(setting: Setting, rng: np.random.Generator) -> float:
    """26 s, 20 s with eager=8; 1 % noise."""
    return float((20 if setting.get("eager") == 8 else 26) * rng.lognormal(0, 0.01))


def study(simulated: SimulatedEvaluator, space: Space, budget_s: float) -> StudyOutcome:
    strategy: Any = ListStrategy([Setting({"eager": e}) for e in (1, 4, 8)])
    plan = SearchPlan(trials=None, budget_s=budget_s)
    return run_procedure(simulated, MemoryTrialStore(), strategy, space, plan, seed=1)


@pytest.mark.parametrize("budget_s", [5.0, 25.0, 40.0, 60.0])
def test_a_budget_of_two_runs_is_refused_and_not_overdrawn(space: Space, budget_s: float) -> None:
    simulated = evaluator(slow)
    with pytest.raises(BudgetTooSmall, match="--budget"):
        study(simulated, space, budget_s)
    assert simulated.history.launched_s <= budget_s
    assert {entry.key for entry in simulated.history.entries} == {DEFAULT.key}


def test_a_refused_budget_says_what_is_needed(space: Space) -> None:
    simulated = evaluator(slow)
    with refused(BudgetTooSmall, "budget.too_small"):
        study(simulated, space, 600.0)
    assert len(simulated.history.entries) == 2  # Warming up, and one to go by.


def test_a_refused_budget_is_spent_but_once(space: Space) -> None:
    simulated = evaluator(slow)
    for _ in range(3):
        with pytest.raises(BudgetTooSmall):
            study(simulated, space, 25.0)
    assert simulated.history.launched_s <= 25.0


def test_a_larger_budget_goes_on_where_a_smaller_was_refused(space: Space) -> None:
    simulated = evaluator(slow)
    with pytest.raises(BudgetTooSmall):
        study(simulated, space, 25.0)
    answer = study(simulated, space, 1500.0)
    assert answer.setting == Setting({"eager": 8})
    assert simulated.history.launched_s <= 1500


def test_what_the_message_names_is_enough(space: Space) -> None:
    simulated = evaluator(slow)
    plan = SearchPlan(trials=None)
    answer = study(simulated, space, plan.least_runs * 26.2 * 1.05)
    assert answer.proof is not None or answer.ended_by
    assert len(answer.trials) >= 1
