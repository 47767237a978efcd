"""Fresh pairs: a gain that is gone where each run follows one of its own is not recommended."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from autotune.comparison.paired_comparison import ComparisonRequest, compare_on
from autotune.measurement.budget import Budget, SearchPlan
from autotune.measurement.events import silent
from autotune.measurement.run_history import LEAD
from autotune.space import DEFAULT, Setting, Space
from autotune.stats import LookPlan, compare
from autotune.study.conclusion import best_seen
from autotune.study.fresh_pairs import DOUBT_BLOCKS, fresh_findings, measure_fresh_gain, second_look
from autotune.study.procedure import StudyOutcome, run_procedure
from autotune.study.proof import Blocks, confirm_blocks
from autotune.study.simulation import MemoryTrialStore, SimulatedEvaluator
from tests.study.conftest import ListStrategy, evaluator

FAST = Setting({"eager": 8})


def heating(by: float, noise: float, seed: int) -> SimulatedEvaluator:
    """No setting is faster; any run behind one of another setting than the default takes longer."""

    def model(setting: Setting, rng: np.random.Generator) -> float:
        hot = simulated.history.previous not in (None, DEFAULT.key)
        return float(rng.lognormal(0, noise)) * (1 + by if hot else 1.0)

    simulated = evaluator(model, seed)
    return simulated


def study(simulated: SimulatedEvaluator, space: Space, seed: int) -> StudyOutcome:
    strategy: Any = ListStrategy([FAST])
    plan = SearchPlan(trials=1)
    return run_procedure(simulated, MemoryTrialStore(), strategy, space, plan, seed)


def test_a_setting_that_wins_by_slowing_the_default_is_vetoed(space: Space) -> None:
    answers = [study(heating(0.1, 0.02, seed), space, seed) for seed in range(40)]
    vetoed = [made for answer in answers for made in answer.with_objections]
    assert len(vetoed) >= 5
    assert all(answer.setting is None for answer in answers)
    codes = {note.code for made in vetoed for note in made.objections}
    assert "result.fresh_contradicts" in codes
    assert all(made.fresh is not None and made.fresh.gain < 0 for made in vetoed)


@pytest.mark.parametrize("faster", [True, False])
def test_a_gain_not_worth_naming_is_vetoed(faster: bool) -> None:
    """Where the fresh pairs show a tenth of the smallest gain, with an interval that has it."""

    def fresh_of(gain: float) -> list[bool]:
        ratios = 1 / (1 + gain) * np.exp(np.linspace(-0.1, 0.1, 30))
        ones = np.ones(30)
        pair = (ones, ratios) if faster else (ratios, ones)
        fresh = compare(*(list(map(float, side)) for side in pair), min_gain=0.02)
        assert fresh.interval
        assert fresh.lo < 0 < 0.02 < fresh.hi
        return [one.stops for one in fresh_findings(FAST, 0.03, fresh, faster)]

    assert fresh_of(0.002) == [True]
    assert fresh_of(0.015) == []


def test_a_real_gain_is_kept(space: Space) -> None:
    def model(setting: Setting, rng: np.random.Generator) -> float:
        return float(rng.lognormal(0, 0.03)) * (0.9 if setting == FAST else 1.0)

    answers = [study(evaluator(model, seed), space, seed) for seed in range(30)]
    assert sum(answer.setting == FAST for answer in answers) >= 28
    assert not any(answer.with_objections for answer in answers)


@pytest.mark.parametrize("faster", [True, False])
def test_a_gain_that_is_not_seen_at_first_gets_more_pairs(faster: bool) -> None:
    """The first six pairs show the contrary by chance; thirty decide."""

    def model(setting: Setting, rng: np.random.Generator) -> float:
        late = len([e for e in simulated.history.entries if not e.phase.endswith(LEAD)]) >= 12
        gain = 0.05 if late == faster else -0.05
        noise = 1 + 0.2 * (rng.random() - 0.5)
        return noise * (1 - gain if setting == FAST else 1.0)

    simulated = evaluator(model, 3)
    blocks = Blocks(simulated, "confirm:r1:fresh:x", [FAST], 1, None, leads=True)
    fresh = measure_fresh_gain(blocks, 6, 0.02, Budget(simulated.history), faster)
    assert fresh is not None
    assert fresh.n == DOUBT_BLOCKS
    assert (fresh.gain > 0) == faster
    assert fresh_findings(FAST, 0.05 if faster else -0.05, fresh, faster) == []
    assert [one.stops for one in fresh_findings(FAST, 0.05, fresh, not faster)] == [True]


def test_a_budget_that_holds_no_pairs_gives_none() -> None:
    simulated = evaluator(lambda setting, rng: 1.0)
    blocks = Blocks(simulated, "confirm:r1:fresh:x", [FAST], 1, None, leads=True)
    assert measure_fresh_gain(blocks, 12, 0.02, Budget(simulated.history, None, 15)) is None
    some = measure_fresh_gain(blocks, 12, 0.02, Budget(simulated.history, None, 24))
    assert some is not None
    assert some.n == 6
    assert fresh_findings(FAST, 0.1, None) == []


def compared(simulated: SimulatedEvaluator, space: Space, plan: LookPlan, seed: int) -> Any:
    target: Any = None
    request = ComparisonRequest(target, space, DEFAULT, FAST, plan, seed=seed)
    machine: Any = simulated
    outcomes: list[Any] = []

    def outcome(*parts: Any, **more: Any) -> Any:
        outcomes.append(parts)
        return parts

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("autotune.comparison.paired_comparison.outcome_of", outcome)
        compare_on(machine, request, f"{seed}")
    return outcomes[0]


def test_a_comparison_has_fresh_pairs_where_a_side_is_faster(space: Space) -> None:
    def model(setting: Setting, rng: np.random.Generator) -> float:
        return float(rng.lognormal(0, 0.01)) * (slow if setting == FAST else 1.0)

    slow = 0.9
    assert compared(evaluator(model, 1), space, LookPlan(), 1)[-1].fresh.gain > 0
    slow = 1.2
    assert compared(evaluator(model, 1), space, LookPlan(), 1)[-1].fresh.gain < 0
    slow = 1.0
    assert compared(evaluator(model, 1), space, LookPlan(), 1)[-1].fresh is None


def test_fresh_pairs_contradict_a_comparison_that_heat_decided(space: Space) -> None:
    contradicted = 0
    for seed in range(20):
        simulated = heating(0.1, 0.02, seed)
        _, _, _, proof, _, after = compared(simulated, space, LookPlan(), seed)
        seen = proof.decisions[FAST].comparison
        if seen.significant and seen.lo > 0:
            contradicted += 1
            assert "result.fresh_contradicts" in [one.note.code for one in after.findings]
    assert contradicted >= 5


@pytest.mark.parametrize("gain", [0.01, -0.01])
def test_a_difference_too_small_to_name_is_not_contradicted(space: Space, gain: float) -> None:
    """One percent is sure, and less than is worth naming: proof and fresh pairs agree."""

    def model(setting: Setting, rng: np.random.Generator) -> float:
        return float(rng.lognormal(0, 0.001)) / (1 + (gain if setting == FAST else 0.0))

    parts = compared(evaluator(model, 5), space, LookPlan(), 5)
    proof, after = parts[3], parts[-1]
    assert proof.decisions[FAST].comparison.significant
    assert after.findings == ()


def test_a_gain_of_which_less_than_half_is_left_is_not_contradicted(space: Space) -> None:
    """Published 20 %, now 6 %: the plan's least gain is 10 %, the one worth naming 2 %."""

    def model(setting: Setting, rng: np.random.Generator) -> float:
        return float(rng.lognormal(0, 0.005)) / (1 + (0.06 if setting == FAST else 0.0))

    simulated = evaluator(model, 6)
    blocks = Blocks(simulated, "compare:0", [FAST], 6, None)
    plan = LookPlan(min_gain=0.05, win_from=8, futility=0.0)
    budget = Budget(simulated.history)
    proof = confirm_blocks(blocks, plan, budget)
    assert proof.decisions[FAST].outcome == "better"
    assert second_look(blocks, plan, proof, budget, silent, least=0.02).findings == ()
    strict = second_look(blocks, plan, proof, budget, silent, least=0.10)
    assert [one.note.code for one in strict.findings] == ["result.fresh_contradicts"]


def test_times_of_leads_are_not_used() -> None:
    simulated = evaluator(lambda setting, rng: 2.0 if lead else 1.0)
    lead = False
    simulated.run(DEFAULT, "default")
    lead = True
    simulated.run(DEFAULT, f"confirm:r1:fresh:x:{LEAD}")
    simulated.run(FAST, f"confirm:r1:fresh:x:{LEAD}")
    history = simulated.history
    assert history.default_values() == [1.0]
    assert best_seen(history, FAST) is None
    assert history.confirmation_runs == 2
