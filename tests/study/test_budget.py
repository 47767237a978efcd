"""A budget ends with the run under way, whatever the study is doing then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from autotune.measurement.budget import BudgetTooSmall, SearchPlan
from autotune.measurement.run_history import RunHistory
from autotune.space import DEFAULT, Setting, Space
from autotune.study.conclusion import judge_status
from autotune.study.procedure import StudyOutcome, run_procedure
from autotune.study.simulation import MemoryTrialStore, SimulatedEvaluator
from tests.study.conftest import ListStrategy, evaluator

MANY = [
    Setting({"eager": e, "yield_": y, "links": n})
    for e in (8, 1, 4)
    for y in (0, 1)
    for n in (1, 2, 3, 4)
]


def uneven(setting: Setting, rng: np.random.Generator) -> float | str:
    """Candidates take up to five times the default's second; eager=8 looks well now and then."""
    if setting == DEFAULT:
        return float(rng.lognormal(0, 0.02))
    if setting.get("links") == 3:
        return "failed"
    return float((0.8 if setting.get("eager") == 8 else 2.0) * rng.lognormal(0, 0.8))


def steady(setting: Setting, rng: np.random.Generator) -> float:
    """eager=8 is a fifth faster."""
    return float((0.8 if setting.get("eager") == 8 else 1.0) * rng.lognormal(0, 0.01))


def study(
    simulated: SimulatedEvaluator, space: Space, plan: SearchPlan, trial_store: MemoryTrialStore
) -> StudyOutcome:
    strategy: Any = ListStrategy(MANY)
    strategy.restore(trial_store.trials)
    return run_procedure(simulated, trial_store, strategy, space, plan, seed=1)


def before_the_last(history: RunHistory) -> float:
    return sum(entry.record.wall_s for entry in history.entries[:-1])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("model", [uneven, steady])
@pytest.mark.parametrize("budget_s", [42.0, 60.0, 100.0, 300.0])
def test_nothing_is_started_behind_the_budget(
    space: Space, model: Any, budget_s: float, seed: int
) -> None:
    simulated = evaluator(model, seed)
    answer = study(simulated, space, SearchPlan(trials=None, budget_s=budget_s), MemoryTrialStore())
    assert before_the_last(simulated.history) < budget_s
    assert judge_status(answer, simulated.history) in (
        "recommended",
        "keep_default",
        "contradicted",
        "inconclusive",
        "too_noisy",
    )


@pytest.mark.parametrize("runs", [33, 40, 60, 150])
@pytest.mark.parametrize("model", [uneven, steady])
def test_no_run_is_made_behind_the_bound_on_runs(space: Space, model: Any, runs: int) -> None:
    simulated = evaluator(model)
    study(simulated, space, SearchPlan(trials=None, max_runs=runs), MemoryTrialStore())
    assert len(simulated.history.entries) <= runs


class Stalling(SimulatedEvaluator):
    """From the run ``stall`` on a launch takes a minute: an ever busier machine."""

    stall = 40

    def _record(self, setting: Setting, timeout_s: float | None) -> Any:
        record = super()._record(setting, timeout_s)
        if len(self.history.entries) >= self.stall:
            record.wall_s += 60.0
        return record


@pytest.mark.parametrize("stall", range(3, 130, 9))
def test_a_budget_that_is_used_up_anywhere_ends_the_study_in_order(
    space: Space, stall: int
) -> None:
    """In the search, in the race, while parameters are taken out, in the proof, and after it."""
    simulated = Stalling(steady, np.random.default_rng(0))
    simulated.stall = stall
    trial_store = MemoryTrialStore()
    plan = SearchPlan(trials=None, budget_s=150.0)
    try:
        answer = study(simulated, space, plan, trial_store)
    except BudgetTooSmall:
        assert stall < 5
        return
    assert before_the_last(simulated.history) < 150.0
    status = judge_status(answer, simulated.history)
    assert status != "keep_default"
    # A larger one goes on where this one ended, and finds what is there to be found.
    simulated.stall = 10**6
    more = study(simulated, space, SearchPlan(trials=None, budget_s=2000.0), trial_store)
    assert more.setting == Setting({"eager": 8})
