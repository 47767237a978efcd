"""One error budget for a study's life: rounds are frozen, never measured anew, and named."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from autotune.errors import WorkError
from autotune.measurement.budget import SearchPlan
from autotune.measurement.run_history import CONFIRM
from autotune.space import Setting, Space
from autotune.stats import ErrorBudget
from autotune.study.conclusion import round_rows
from autotune.study.procedure import StudyOutcome, run_procedure
from autotune.study.proof_rounds import Round, Rounds, look_plan
from autotune.study.simulation import MemoryTrialStore, SimulatedEvaluator
from tests.case_table import case_table
from tests.refusals import refused
from tests.study.conftest import ListStrategy, evaluator

SETTINGS = [
    Setting({"eager": e, "yield_": y, "links": n})
    for e in (1, 4, 8)
    for y in (0, 1)
    for n in (1, 2, 3, 4)
]


def hopeful(setting: Setting, rng: np.random.Generator) -> float:
    """8 % noise and a gain of 3 %: a proof that seldom ends before its last look."""
    return float(rng.lognormal(0, 0.08) * (0.97 if setting.get("eager") == 8 else 1.0))


def go_on(
    simulated: SimulatedEvaluator, trial_store: MemoryTrialStore, space: Space, plan: SearchPlan
) -> StudyOutcome:
    strategy = ListStrategy(SETTINGS)
    return run_procedure(simulated, trial_store, strategy, space, plan, seed=1)  # type: ignore[arg-type]


def undecided(
    space: Space, plan: SearchPlan
) -> tuple[SimulatedEvaluator, MemoryTrialStore, StudyOutcome]:
    """The first study whose first proof was made and did not name anything."""
    for seed in range(40):
        simulated, trial_store = evaluator(hopeful, seed), MemoryTrialStore()
        answer = go_on(simulated, trial_store, space, plan)
        if answer.proofs and answer.setting is None and answer.proofs[0][1].open:
            return simulated, trial_store, answer
    raise AssertionError("no study of 40 was left open")


def proof_runs(simulated: SimulatedEvaluator, phase: str) -> list[tuple[int, str, int]]:
    """Block, setting and place of every run of one phase."""
    return [(e.block, e.key, e.order) for e in simulated.history.entries if e.phase == phase]


def test_a_larger_budget_changes_nothing_of_a_round_that_was_begun(space: Space) -> None:
    simulated, trial_store, first = undecided(space, SearchPlan(trials=None, max_runs=130))
    made, proof = first.proofs[0]
    before = proof_runs(simulated, made.phase)
    more = go_on(simulated, trial_store, space, SearchPlan(trials=None, max_runs=400))
    again = more.proofs[0][0]
    assert (again.settings, again.plan) == (made.settings, made.plan)
    assert proof_runs(simulated, made.phase)[: len(before)] == before
    assert max(Counter((b, k) for b, k, _ in proof_runs(simulated, made.phase)).values()) == 1
    assert proof.settings == more.proofs[0][1].settings


def test_every_further_round_has_its_own_smaller_share(space: Space) -> None:
    simulated, trial_store, answer = undecided(space, SearchPlan(trials=8))
    for trials in (16, 24):
        answer = go_on(simulated, trial_store, space, SearchPlan(trials=trials))
    budget = ErrorBudget(0.05)
    assert [made.number for made, _ in answer.proofs] == list(range(1, len(answer.proofs) + 1))
    for made, _ in answer.proofs:
        assert made.plan.alpha == pytest.approx(budget.proof(made.number))
        assert made.plan.finalists == len(made.settings)
    spent = sum(made.plan.alpha + made.slow_alpha for made, _ in answer.proofs)
    assert spent <= 0.05
    assert [row["round"] for row in round_rows(answer)] == [m.number for m, _ in answer.proofs]


def test_the_same_command_again_makes_no_further_round(space: Space) -> None:
    simulated, trial_store, first = undecided(space, SearchPlan(trials=12))
    plans, runs = dict(trial_store.plans), simulated.history.confirmation_runs
    again = go_on(simulated, trial_store, space, SearchPlan(trials=12))
    assert trial_store.plans == plans
    assert simulated.history.confirmation_runs == runs
    assert [p.decisions for _, p in again.proofs] == [p.decisions for _, p in first.proofs]


def test_what_was_left_undecided_is_proven_anew_for_a_larger_budget_only(space: Space) -> None:
    plan = SearchPlan(trials=12, max_runs=1000)
    for seed in range(60):
        simulated, trial_store = evaluator(hopeful, seed), MemoryTrialStore()
        answer = go_on(simulated, trial_store, space, plan)
        proof = answer.proof
        if proof and [d.outcome for d in proof.decisions.values()] == ["undecided"]:
            break
    else:
        raise AssertionError("no study of 60 was undecided at its last look")
    assert len(go_on(simulated, trial_store, space, plan).proofs) == 1
    more = go_on(simulated, trial_store, space, SearchPlan(trials=12, max_runs=2000))
    assert len(more.proofs) == 2
    assert more.proofs[1][0].settings == more.proofs[0][0].settings
    assert more.proofs[1][0].phase != more.proofs[0][0].phase


def test_a_winner_stands_where_a_longer_search_finds_nothing_better(space: Space) -> None:
    def model(setting: Setting, rng: np.random.Generator) -> float:
        return float(rng.lognormal(0, 0.01) * (0.8 if setting.get("eager") == 8 else 1.0))

    simulated, trial_store = evaluator(model), MemoryTrialStore()
    settings = [Setting({"eager": 8}), Setting({"eager": 1}), Setting({"links": 2})]
    for trials in (1, 2, 3):
        strategy = ListStrategy(settings)
        answer = run_procedure(
            simulated, trial_store, strategy, space, SearchPlan(trials=trials), seed=1
        )  # type: ignore[arg-type]
        assert answer.setting == Setting({"eager": 8})
        assert answer.recommendation is not None
        assert answer.recommendation.round.number == 1


def test_the_whole_of_a_slim_winner_makes_no_round_of_its_own(space: Space) -> None:
    def model(setting: Setting, rng: np.random.Generator) -> float:
        return float(rng.lognormal(0, 0.01) * (0.8 if setting.get("eager") == 8 else 1.0))

    simulated, trial_store = evaluator(model), MemoryTrialStore()
    settings = [Setting({"eager": 8, "links": 3}), Setting({"eager": 1}), Setting({"links": 2})]
    for trials in (1, 2, 3):
        strategy = ListStrategy(settings)
        answer = run_procedure(
            simulated, trial_store, strategy, space, SearchPlan(trials=trials), seed=1
        )  # type: ignore[arg-type]
        assert answer.setting == Setting({"eager": 8})
        assert len(answer.proofs) == 1


def test_a_better_winner_of_a_later_round_is_named_with_its_round(space: Space) -> None:
    factor = {1: 0.9, 8: 0.7}

    def model(setting: Setting, rng: np.random.Generator) -> float:
        return float(rng.lognormal(0, 0.01) * factor.get(int(setting.get("eager", 2)), 1.0))

    simulated, trial_store = evaluator(model), MemoryTrialStore()
    settings = [Setting({"eager": 1}), Setting({"eager": 8})]
    for trials, named in ((1, {"eager": 1}), (2, {"eager": 8})):
        strategy = ListStrategy(settings)
        answer = run_procedure(
            simulated, trial_store, strategy, space, SearchPlan(trials=trials), seed=1
        )  # type: ignore[arg-type]
        assert answer.setting == Setting(named)
    assert answer.recommendation is not None
    assert answer.recommendation.round.number == 2
    # The winner of the first round was proven beside the new one.
    assert Setting({"eager": 1}) in answer.proofs[1][0].settings


def test_the_first_document_stays_whoever_freezes_later(space: Space) -> None:
    trial_store = MemoryTrialStore()
    one = Rounds(trial_store, space, 0.05)
    other = Rounds(trial_store, space, 0.05)
    name = one.next_name
    first = one.preregister([Setting({"eager": 8})], min_gain=0.02, limit_s=1.0)
    assert other.next_name != name
    assert Rounds(trial_store, space, 0.05).all() == [first]


@pytest.mark.parametrize(
    "damage",
    [
        {"settings": [{"plm_ssh_agent": "/tmp/evil"}]},
        {"settings": 3},
        {"looks": []},
        {"alpha": 7},
        {"whole": {"nosuch": 1}},
    ],
)
def test_a_frozen_plan_that_was_changed_is_refused_in_words(
    space: Space, damage: dict[str, object]
) -> None:
    trial_store = MemoryTrialStore()
    Rounds(trial_store, space, 0.05).preregister(
        [Setting({"eager": 8})], min_gain=0.02, limit_s=None
    )
    trial_store.plans["round:1"] = json.dumps(json.loads(trial_store.plans["round:1"]) | damage)
    simulated = evaluator(hopeful)
    with refused(WorkError, "study.damaged"):
        go_on(simulated, trial_store, space, SearchPlan(trials=1))
    assert simulated.history.count(CONFIRM) == 0


def test_a_round_survives_its_json(space: Space) -> None:
    made = Rounds(MemoryTrialStore(), space, 0.05).preregister(
        [Setting({"eager": 8})],
        min_gain=0.03,
        limit_s=2.5,
        slim=[Setting({"eager": 8})],
        whole=Setting({"eager": 8, "links": 2}),
        trials=7,
        budget_s=30.0,
        max_runs=90,
    )
    assert Round.from_json(json.loads(json.dumps(made.to_json())), space) == made


@case_table("finalists", [1, 2, 3])
def test_a_proof_can_win_at_its_first_look_with_an_interval(finalists: int) -> None:
    plan = look_plan(finalists, ErrorBudget(0.05).proof(1), 0.02)
    assert plan.win_from == plan.first_interval == {1: 8, 2: 9, 3: 12}[finalists]
    assert plan.level >= 1 - plan.alpha / finalists
    small = plan.win_from
    times = np.full(small, 1.0), np.full(small, 0.9)
    assert plan.decide(*times, resolution=0.0).outcome == "better"
