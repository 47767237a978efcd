"""What is named after the proof: pruned, beside the whole, looked at afresh, its tail seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from autotune.measurement.bench import Bench
from autotune.measurement.budget import Budget, SearchPlan
from autotune.measurement.run_history import CONFIRM, DEFAULT_KEY, LEAD, RunHistory
from autotune.space import InactiveParameters, Setting, Space
from autotune.study import recommendation
from autotune.study.fresh_pairs import (
    FRESH_BLOCKS,
    FRESH_LEAST,
    TAIL_BLOCKS,
    fresh_blocks,
    slow_of,
    slow_row,
)
from autotune.study.procedure import run_procedure
from autotune.study.proof import Blocks, Pairs, confirm_blocks
from autotune.study.proof_rounds import Rounds
from autotune.study.pruning import Pruner
from autotune.study.recommendation import Recommendation
from autotune.study.search_result import slow_words
from autotune.study.simulation import MemoryTrialStore, SimulatedEvaluator
from tests.study.conftest import ListStrategy, ensure, evaluator, parameter

WHOLE = Setting({"eager": 8, "links": 3, "yield_": 1})
SMALL = Setting({"eager": 8})


def acting(setting: Setting, rng: np.random.Generator) -> float:
    """eager=8 takes 0.8 of the time, nothing else acts; 1 % noise."""
    return float(rng.lognormal(0, 0.01) * (0.8 if setting.get("eager") == 8 else 1.0))


def recommend(
    simulated: SimulatedEvaluator,
    space: Space,
    finalists: list[Setting],
    plan: SearchPlan | None = None,
    **frozen: Any,
) -> Recommendation:
    """The first winner of one round of these finalists, named."""
    trial_store = MemoryTrialStore()
    plan = plan or SearchPlan()
    budget = Budget(simulated.history, plan.budget_s, plan.max_runs)
    simulated.budget = budget
    bench = Bench(simulated, plan, budget)
    bench.ensure_defaults()
    made = Rounds(trial_store, space, 0.05).preregister(
        finalists, min_gain=0.02, limit_s=None, **frozen
    )
    blocks = Blocks(simulated, made.phase, made.settings, 1, None)
    proof = confirm_blocks(blocks, made.plan, Budget(simulated.history))
    pruner = Pruner(bench, InactiveParameters(space), 1.0, 1)
    return recommendation.recommend(pruner, trial_store, space, proof.winners[0], made, proof)


def test_a_winner_that_came_whole_is_pruned_after_the_proof(space: Space) -> None:
    simulated = evaluator(acting)
    made = recommend(simulated, space, [WHOLE])
    assert made.setting == SMALL
    assert (made.pruning.state, made.pruning.whole) == ("pruned", WHOLE)
    assert made.pruning.non_inferior is True
    assert made.pruning.slower_at_most is not None
    assert made.pruning.margin is not None
    assert made.pruning.slower_at_most < made.pruning.margin
    # Its gain is its own, of blocks in which it ran, none of them the round's.
    mine = [e for e in simulated.history.entries if e.key == SMALL.key and e.kind == CONFIRM]
    assert {e.phase for e in mine}.isdisjoint({made.round.phase})
    assert made.decision.outcome == "better"
    assert made.decision.comparison.n <= sum(":slim:" in e.phase for e in mine)


def test_a_parameter_that_acts_stays(space: Space) -> None:
    def both(setting: Setting, rng: np.random.Generator) -> float:
        factor = (0.8 if setting.get("eager") == 8 else 1.0) * (
            0.9 if setting.get("links") == 3 else 1.0
        )
        return float(rng.lognormal(0, 0.01) * factor)

    made = recommend(evaluator(both), space, [WHOLE])
    assert made.setting == Setting({"eager": 8, "links": 3})
    assert made.pruning.state == "pruned"


def test_where_the_budget_does_not_hold_it_not_pruned_is_said(space: Space) -> None:
    simulated = evaluator(acting)
    made = recommend(simulated, space, [WHOLE], SearchPlan(max_runs=40))
    assert made.setting == WHOLE
    assert made.pruning.state == "not pruned"  # data
    assert "budget" in made.pruning.why


def test_pruning_that_the_budget_ended_half_way_is_not_called_done() -> None:
    """Groups of two are taken out first, then single parameters: the budget ends before."""

    def first_acts(setting: Setting, rng: np.random.Generator) -> float:
        return float(rng.lognormal(0, 0.01) * (0.8 if setting.get("p0") == 2 else 1.0))

    wide = Space("wide", tuple(parameter(f"p{i}", 1, 2, 3) for i in range(8)))
    whole = Setting({f"p{i}": 2 for i in range(8)})
    simulated = evaluator(first_acts)
    made = recommend(simulated, wide, [whole], SearchPlan(max_runs=104))
    assert 1 < len(made.setting) < len(whole)
    assert made.pruning.state == "not pruned"  # data
    assert "budget" in made.pruning.why


def test_a_small_setting_that_is_not_proven_itself_is_not_named(space: Space) -> None:
    """Each of two parameters gives a part that eight blocks overlook and a proof does not find."""

    def two_parts(setting: Setting, rng: np.random.Generator) -> float:
        both = setting.get("eager") == 8 and setting.get("links") == 3
        # In the blocks that take parameters out every part looks as good as the whole.
        pruning = simulated.history.entries and simulated.history.entries[-1].kind in ("prune",)
        good = both or (pruning and len(setting) > 0)
        return float(rng.lognormal(0, 0.01) * (0.9 if good else 1.0))

    simulated = evaluator(two_parts)
    whole = Setting({"eager": 8, "links": 3})
    made = recommend(simulated, space, [whole])
    assert made.setting == whole
    assert made.pruning.state == "not pruned"  # data
    assert "alone" in made.pruning.why


def test_a_slim_finalist_is_measured_beside_what_it_was_taken_from(space: Space) -> None:
    simulated = evaluator(acting)
    made = recommend(simulated, space, [SMALL], slim=[SMALL], whole=WHOLE)
    assert made.setting == SMALL
    assert made.pruning.state == "pruned"
    assert made.pruning.non_inferior is True
    beside = [e for e in simulated.history.entries if ":slim:" in e.phase]
    assert {e.key for e in beside} == {SMALL.key, WHOLE.key, DEFAULT_KEY}


def test_a_slim_setting_that_loses_much_is_said_to(space: Space) -> None:
    def much(setting: Setting, rng: np.random.Generator) -> float:
        factor = {0: 1.0, 1: 0.9, 2: 0.7, 3: 0.5}[len(setting)]
        return float(rng.lognormal(0, 0.01) * factor)

    made = recommend(evaluator(much), space, [SMALL], slim=[SMALL], whole=WHOLE)
    assert made.pruning.non_inferior is False


def test_the_fresh_look_is_of_as_many_blocks_as_was_fixed(space: Space) -> None:
    simulated = evaluator(acting)
    made = recommend(simulated, space, [SMALL], slim=[SMALL])
    assert made.fresh is not None
    proof = Blocks(simulated, made.round.phase, [SMALL], 1, None).pairs(SMALL)
    fixed = fresh_blocks(proof, made.decision.comparison.gain)
    assert made.fresh.n == fixed == FRESH_LEAST
    assert made.fresh.gain == pytest.approx(0.25, abs=0.03)
    fresh = [e for e in simulated.history.entries if ":fresh:" in e.phase]
    assert len([e for e in fresh if not e.phase.endswith(LEAD)]) == 2 * fixed
    last_of_proof = max(e.order for e in simulated.history.entries if e.phase == made.round.phase)
    assert min(e.order for e in fresh) > last_of_proof


def test_the_number_of_fresh_blocks_grows_with_the_scatter_of_the_proof() -> None:
    def pairs(scatter: float) -> Pairs:
        return Pairs([1.0] * 9, [1 / (1.1 + scatter * (n - 4)) for n in range(9)], [False] * 9)

    assert fresh_blocks(pairs(0.001), 0.1) == FRESH_LEAST
    assert FRESH_LEAST < fresh_blocks(pairs(0.03), 0.1) < FRESH_BLOCKS
    assert fresh_blocks(pairs(0.05), 0.1) == FRESH_BLOCKS
    assert fresh_blocks(pairs(0.03), 0.0) == FRESH_BLOCKS


def test_slow_launches_seen_only_after_the_proof_are_looked_into(space: Space) -> None:
    def late(setting: Setting, rng: np.random.Generator) -> float:
        entries = [e for e in simulated.history.entries if ":fresh:" in e.phase]
        seen = [e for e in entries if not e.phase.endswith(LEAD)]
        slow = 5.0 if len(seen) in (2, 5, 7) else 1.0
        return slow * acting(setting, rng)

    simulated = evaluator(late)
    made = recommend(simulated, space, [SMALL], slim=[SMALL])
    assert made.fresh is not None
    assert made.fresh.n == FRESH_LEAST
    timed = [e for e in simulated.history.entries if not e.phase.endswith(LEAD)]
    assert sum(":fresh:" in e.phase for e in timed) == 2 * TAIL_BLOCKS


def test_without_budget_there_is_no_fresh_look(space: Space) -> None:
    made = recommend(evaluator(acting), space, [SMALL], SearchPlan(max_runs=30), slim=[SMALL])
    assert made.fresh is None


def test_asking_again_measures_nothing(space: Space) -> None:
    simulated, trial_store = evaluator(acting), MemoryTrialStore()
    settings = [WHOLE, Setting({"links": 2})]
    plan = SearchPlan(trials=2)
    strategy: Any = ListStrategy(settings)
    first = run_procedure(simulated, trial_store, strategy, space, plan, seed=1)
    runs = simulated.history.confirmation_runs
    again: Any = ListStrategy(settings)
    second = run_procedure(simulated, trial_store, again, space, plan, seed=1)
    assert simulated.history.confirmation_runs == runs
    assert second.recommendation == first.recommendation


def slow_sometimes(default: float, candidate: float) -> Any:
    """Launches that take five times as long, by chance; the candidate has a gain of 11 %."""

    def model(setting: Setting, rng: np.random.Generator) -> float:
        acts = setting.get("eager") == 8
        slow = 5.0 if rng.random() < (candidate if acts else default) else 1.0
        return float(slow * rng.lognormal(0, 0.01) * (0.9 if acts else 1.0))

    return model


def test_a_setting_with_more_slow_launches_is_not_recommended(space: Space) -> None:
    """Every fifth launch five times as long: where the median wins, most are seen and vetoed."""
    proven = vetoed = 0
    for seed in range(20):
        simulated, trial_store = evaluator(slow_sometimes(0.0, 0.2), seed), MemoryTrialStore()
        strategy: Any = ListStrategy([SMALL])
        answer = run_procedure(
            simulated, trial_store, strategy, space, SearchPlan(trials=1), seed=1
        )
        if not answer.proofs or answer.proofs[0][1].winners != [SMALL]:
            continue
        proven += 1
        verdicts = [made.slow.verdict for made in answer.with_objections]
        vetoed += verdicts == ["more frequent"]  # data
        assert (answer.setting is None) == bool(answer.with_objections)
    assert proven >= 6
    assert vetoed >= proven / 2


def test_a_setting_without_the_defaults_slow_launches_is_said_to_have_fewer(space: Space) -> None:
    simulated = evaluator(slow_sometimes(0.3, 0.0), 1)
    made = recommend(simulated, space, [SMALL], slim=[SMALL])
    assert made.slow.verdict == "rarer"
    assert made.slow.slow == 0
    assert "rarer" in slow_words(slow_row(made.slow))


def test_launches_of_the_search_do_not_count_for_the_rates(space: Space) -> None:
    simulated = evaluator(acting)
    for _ in range(5):
        simulated.run(SMALL, "search")
        simulated.run(Setting(), "default")
    assert slow_of(simulated.history, SMALL, alpha=0.05).launches == 0
    ensure(Blocks(simulated, f"{CONFIRM}:r1", [SMALL], 1, None), 4)
    assert slow_of(simulated.history, SMALL, alpha=0.05).launches == 4


def test_an_interrupted_block_is_completed_never_drawn_again(space: Space) -> None:
    simulated = evaluator(acting)
    blocks = Blocks(simulated, f"{CONFIRM}:r1", [SMALL, WHOLE], 1, None)
    ensure(blocks, 3)
    first = simulated.history.entries[-1]
    kept = RunHistory.of(simulated.history.entries[:-1])
    simulated.history = kept
    before = list(kept.entries)
    ensure(Blocks(simulated, f"{CONFIRM}:r1", [SMALL, WHOLE], 1, None), 3)
    assert simulated.history.entries[:-1] == before
    assert simulated.history.entries[-1].key == first.key
