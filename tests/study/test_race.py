"""Runs beyond the first go where they decide something."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from autotune.measurement.budget import Budget, BudgetSpent, SearchPlan
from autotune.measurement.run_history import HistoryEntry, RunHistory
from autotune.space import (
    DEFAULT,
    InactiveParameters,
    Parameter,
    Setting,
    Space,
    parse_expression,
)
from autotune.study.procedure import StudyOutcome, run_procedure
from autotune.study.proof import Blocks, confirm_blocks, matters
from autotune.study.proof_rounds import Rounds
from autotune.study.pruning import Pruner
from autotune.study.race import (
    MOST_WITHOUT_EFFECT,
    RaceEvidence,
    race_evidence,
)
from autotune.study.search_result import BUDGET_SPENT
from autotune.study.simulation import MemoryTrialStore, SimulatedEvaluator
from autotune.study.trial_store import Trial
from runner.types import RunRecord
from tests.case_table import case_table
from tests.study.conftest import ListStrategy, evaluator, parameter

MANY = [
    Setting({"eager": e, "yield_": y, "links": n})
    for e in (1, 4, 8)
    for y in (0, 1)
    for n in (1, 2, 3, 4)
]


def run(order: int, setting: Setting, seconds: float, trial: int | None = None) -> HistoryEntry:
    phase = "default" if setting == DEFAULT else "search"
    return HistoryEntry(order, setting.key, phase, RunRecord(state="ok", wall_s=seconds), trial)


def study(
    simulated: SimulatedEvaluator, space: Space, plan: SearchPlan
) -> tuple[StudyOutcome, MemoryTrialStore]:
    trial_store = MemoryTrialStore()
    strategy: Any = ListStrategy(MANY)
    return run_procedure(simulated, trial_store, strategy, space, plan, seed=1), trial_store


def test_evidence_is_each_run_against_the_default_around_it() -> None:
    slow, fast = Setting({"eager": 1}), Setting({"eager": 8})
    trials = [Trial(0, slow, slow, "ok"), Trial(1, fast, fast, "failed")]
    entries = [
        run(0, DEFAULT, 1.0),
        run(1, slow, 2.0, 0),
        run(2, DEFAULT, 1.0),
        HistoryEntry(3, fast.key, "search", RunRecord(state="failed", wall_s=0.1), 1),
    ]
    seen = race_evidence(entries, trials)
    assert seen.settings == [slow, fast]
    assert seen.ratios == [[pytest.approx(2.0)], [math.inf]]


def test_runs_made_after_the_race_do_not_change_what_it_decided() -> None:
    slow = Setting({"eager": 1})
    trials = [Trial(0, slow, slow, "ok")]
    entries = [run(0, DEFAULT, 1.0), run(1, DEFAULT, 1.1), run(2, slow, 2.0, 0)]
    later = [run(3 + i, DEFAULT, 9.0) for i in range(5)]
    assert race_evidence(entries, trials) == race_evidence(entries + later, trials)


def test_the_acting_part_keeps_what_its_conditions_need() -> None:
    """A variable of a transport does nothing without the parameter that chooses the transport."""
    pml = Parameter("pml", ("ob1", "ucx"))
    scheme = Parameter("scheme", ("am", "get"), when=parse_expression("pml == 'ucx'"))
    space = Space("carriers", (pml, scheme, Parameter("eager", (1, 2, 4))))
    bench: Any = SimpleNamespace(plan=SearchPlan())
    idle = InactiveParameters(space)
    whole = Setting({"pml": "ucx", "scheme": "am", "eager": 4})
    tried = [
        *(whole.with_values({"eager": e}) for e in (1, 2, 4)),
        *(Setting({"pml": "ucx", "scheme": "get", "eager": e}) for e in (1, 2, 4)),
        *(Setting({"pml": "ucx", "eager": e}) for e in (1, 2, 4)),
    ]
    ratios = [[0.75 if s.get("scheme") == "am" else 1.0] for s in tried]
    known = RaceEvidence(tried, ratios, 0.02)
    assert known.acting(whole, 0.02) == {"scheme"}
    idle.learn_default("pml", "ob1")
    part = Pruner(bench, idle, 1.0, 1).likely_part(known, whole)
    assert part == whole.without("eager")


def test_what_another_study_measured_counts_as_one_run() -> None:
    known, new = Setting({"eager": 1}), Setting({"eager": 8})
    trials = [Trial(0, known, known, "ok", 0.7, reused=True), Trial(1, new, new, "ok")]
    entries = [run(0, DEFAULT, 1.0), run(1, DEFAULT, 1.0), run(2, new, 1.0, 1)]
    assert race_evidence(entries, trials).ratios == [[0.7], [pytest.approx(1.0)]]


def test_a_part_of_the_leader_that_looks_as_fast_stands_for_it() -> None:
    both, acting, idle = (
        Setting({"eager": 8, "links": 2}),
        Setting({"eager": 8}),
        Setting({"links": 2}),
    )
    seen = RaceEvidence([both, acting, idle], [[0.80, 0.79], [0.81], [1.0]], 0.02)
    assert seen.simplest_part(both, 0.02) == acting
    missing = RaceEvidence([both, idle], [[0.80, 0.79], [1.0]], 0.02)
    assert missing.simplest_part(both, 0.02) == both
    noisy = RaceEvidence([both, acting, idle], [[0.80, 0.79], [0.81], [1.0]], 0.2)
    assert noisy.simplest_part(both, 0.02) == both
    half = RaceEvidence([both, acting, idle], [[0.80, 0.79], [0.95], [1.0]], 0.05)
    assert half.simplest_part(both, 0.02) == both
    failed = RaceEvidence([both, acting], [[0.80, 0.79], [math.inf]], 0.02)
    assert failed.simplest_part(both, 0.02) == both
    nothing = RaceEvidence([both, acting], [[math.inf], [math.inf]], 0.02)
    assert nothing.simplest_part(both, 0.02) == both


def test_pairs_elsewhere_tell_what_a_lucky_leader_hides() -> None:
    """The leader's one lucky run looks far better than its part; five other pairs say: no."""
    limits = (1, 2, 4, 8, 16)
    one = [Setting({"eager": limit}) for limit in limits]
    two = [Setting({"eager": limit, "links": 2}) for limit in limits]
    idle = Setting({"links": 2})
    alone = [[1.0], [1.1], [0.9], [0.5], [0.5]]
    beside = [[1.05], [1.0], [0.95], [0.3], [0.5]]
    seen = RaceEvidence([*one, *two, idle], [*alone, *beside, [1.0]], 0.2)
    assert seen.simplest_part(two[3], 0.02) == one[3]
    # It does act: most pairs say so.
    acting = RaceEvidence([*one, *two, idle], [*alone, *([0.6 * r[0]] for r in alone), [0.6]], 0.2)
    assert acting.simplest_part(two[3], 0.02) == two[3]
    # Failures on both sides tell nothing, and break nothing.
    broken = [[math.inf], [math.inf], *alone[2:]], [[math.inf], [math.inf], *beside[2:]]
    failed = RaceEvidence([*one, *two, idle], [*broken[0], *broken[1], [1.0]], 0.2)
    assert failed.simplest_part(two[3], 0.02) == one[3]


def test_without_runs_of_the_default_there_is_no_evidence() -> None:
    slow = Setting({"eager": 1})
    assert race_evidence([run(0, slow, 1.0, 0)], [Trial(0, slow, slow, "ok")]).settings == []


def test_the_race_keeps_to_its_allowance(space: Space) -> None:
    simulated = evaluator(lambda setting, rng: float(rng.lognormal(0, 0.15)), 3)
    plan = SearchPlan(trials=len(MANY), race_share=0.5)
    _, trial_store = study(simulated, space, plan)
    settings = {t.effective for t in trial_store.trials} - {DEFAULT}
    runs = sum(e.kind in ("search", "race") for e in simulated.history.entries)
    assert runs <= len(settings) + math.ceil(0.5 * len(settings))


def test_hopeless_settings_get_one_run_and_the_best_get_more(space: Space) -> None:
    def model(setting: Setting, rng: np.random.Generator) -> float:
        factor = {1: 2.0, 8: 0.9}.get(int(setting.get("eager", 2)), 1.0)
        return float(factor * rng.lognormal(0, 0.02))

    simulated = evaluator(model)
    answer, _ = study(simulated, space, SearchPlan(trials=len(MANY)))
    assert answer.setting == Setting({"eager": 8})
    counts = Counter(e.key for e in simulated.history.entries if e.kind in ("search", "race"))
    slow = [n for key, n in counts.items() if "eager=1" in key]
    fast = [n for key, n in counts.items() if "eager=8" in key]
    assert set(slow) == {1}
    assert max(fast) > 1


def test_the_race_decides_as_a_grid_of_five_repeats_in_a_third_of_its_runs() -> None:
    space = Space("grid", tuple(parameter(n, 1, 2, 3) for n in ("a", "b", "c")))
    settings = [
        Setting({"a": a, "b": b, "c": c}) for a in (1, 2, 3) for b in (1, 2, 3) for c in (1, 2, 3)
    ]

    def model(setting: Setting, rng: np.random.Generator) -> float:
        return float((0.85 if setting.get("a") == 2 else 1.0) * rng.lognormal(0, 0.05))

    same = 0
    for seed in range(20):
        rng = np.random.default_rng([seed, 5])
        grid = {s: np.median([model(s, rng) for _ in range(5)]) for s in settings}
        best = min(grid, key=lambda s: grid[s])
        simulated = evaluator(model, seed)
        plan = SearchPlan(trials=len(settings))
        strategy: Any = ListStrategy(settings)
        answer = run_procedure(simulated, MemoryTrialStore(), strategy, space, plan, seed)
        raced = [
            e
            for e in simulated.history.entries
            if e.kind in ("default", "search", "race", "warmup")
        ]
        # Runs of the default that the proof and the pruning make come after the race.
        last = max(i for i, e in enumerate(raced) if e.kind in ("search", "race"))
        assert 3 * (last + 1) <= 5 * (len(settings) + 1)
        same += answer.setting is not None and answer.setting.get("a") == best.get("a") == 2
    assert same >= 18


def test_a_budget_of_runs_is_kept_with_its_reserve(space: Space) -> None:
    for most in (60, 90):
        simulated = evaluator(lambda setting, rng: float(rng.lognormal(0, 0.05)), most)
        answer, _ = study(simulated, space, SearchPlan(trials=None, max_runs=most))
        assert len(simulated.history.entries) <= most
        assert "budget" in answer.ended_by or len(answer.trials) == len(MANY)


def wide(p3: float, noise: float, count: int, plan: SearchPlan) -> tuple[StudyOutcome, list[str]]:
    """A study of ``count`` settings of 16 parameters of which one acts, and the kinds of its
    runs."""
    names = [f"p{i}" for i in range(16)]
    space = Space("wide", tuple(parameter(n, 1, 2) for n in names))
    rng = np.random.default_rng(4)
    settings = [Setting({n: int(rng.integers(1, 3)) for n in names}) for _ in range(count)]

    def model(setting: Setting, draw: np.random.Generator) -> float:
        return float((p3 if setting.get("p3") == 2 else 1.0) * draw.lognormal(0, noise))

    strategy: Any = ListStrategy(settings)
    simulated = evaluator(model)
    answer = run_procedure(simulated, MemoryTrialStore(), strategy, space, plan, seed=1)
    return answer, [entry.kind for entry in simulated.history.entries]


def test_a_budget_of_runs_holds_through_pruning_and_proof() -> None:
    """Taking 15 of 16 parameters out wants many runs."""
    answer, kinds = wide(0.6, 0.1, 12, SearchPlan(trials=12, max_runs=100))
    assert len(kinds) <= 100
    assert answer.setting is not None
    assert answer.setting.get("p3") == 2


def test_a_budget_for_one_finalist_proves_the_setting_that_was_run() -> None:
    """A part that was never run is proven beside its whole, or not at all."""
    levels = ("a", "b", "c", "d")
    space = Space("flags", tuple(Parameter(name, (1,)) for name in levels))
    pairs = [Setting({x: 1, y: 1}) for x, y in itertools.combinations(levels, 2)]

    def model(setting: Setting, rng: np.random.Generator) -> float:
        return float((0.7 if "a" in setting else 1.0) * rng.lognormal(0, 0.02))

    proven = {}
    for most in (36, 200):
        simulated = SimulatedEvaluator(model, np.random.default_rng(3))
        strategy: Any = ListStrategy(pairs)
        plan = SearchPlan(trials=len(pairs), max_runs=most)
        answer = run_procedure(simulated, MemoryTrialStore(), strategy, space, plan, seed=1)
        proven[most] = answer.proofs[0][0].settings
    assert [len(s) for s in proven[36]] == [2]
    assert Setting({"a": 1}) in proven[200]


def test_a_search_that_would_never_end_leaves_a_budget_to_pruning_and_proof() -> None:
    """A gain that the smallest proof does not decide, in settings full of what does nothing."""
    answer, kinds = wide(0.9, 0.06, 400, SearchPlan(trials=None, max_runs=400))
    assert len(kinds) <= 400
    assert answer.ended_by == BUDGET_SPENT
    # 400 runs hold 336 more than two of the smallest searches; 40 % of those and 24 are kept.
    assert kinds.count("search") + kinds.count("race") <= 400 - 134 - 24
    assert answer.setting is not None
    assert answer.setting.get("p3") == 2
    assert len(answer.setting) <= 4


@case_table(("held", "kept"), [(32, 24), (64, 24), (164, 64), (10_000, 374)])
def test_small_budgets_keep_the_smallest_proof_only(held: float, kept: int) -> None:
    assert SearchPlan().least_runs == 32
    assert SearchPlan().kept_runs(held) == kept


def test_what_a_budget_holds_is_the_narrower_of_its_bounds() -> None:
    history = RunHistory.of([run(i, DEFAULT, 2.0) for i in range(3)])
    assert Budget(history).holds == math.inf
    assert Budget(history, seconds=10.0).holds == 5
    assert Budget(history, seconds=10.0, runs=4).holds == 4
    assert Budget(RunHistory.of([]), seconds=10.0).holds == math.inf


def test_a_budget_counts_seconds_and_runs() -> None:
    history = RunHistory.of([run(i, DEFAULT, 2.0) for i in range(3)])
    assert Budget(history).affords(10**6)
    assert Budget(history, runs=5).affords(2)
    assert not Budget(history, runs=5).affords(3)
    assert Budget(history, seconds=10.0).affords(2)
    assert not Budget(history, seconds=9.9).affords(2)
    assert Budget(history, seconds=1.0, runs=1).renewal().affords(0)
    assert not Budget(history, runs=1).renewal().affords(2)
    assert Budget(history, seconds=7.0).affords(1, run_s=1.0)
    assert not Budget(history, seconds=7.0).affords(1)
    assert not Budget(history, seconds=7.0).affords(2, run_s=0.6)
    Budget(history, seconds=6.1, runs=4).require()
    for spent in (Budget(history, seconds=6.0), Budget(history, runs=3)):
        with pytest.raises(BudgetSpent):
            spent.require()


def searched(seed: int = 4) -> RaceEvidence:
    """One run of each of 60 settings of ten parameters; p3=2 has a gain of 15 %, 3 % noise."""
    rng = np.random.default_rng(seed)
    settings = [
        Setting({f"p{i}": int(rng.integers(1, 4)) for i in range(10) if rng.random() < 0.5})
        for _ in range(60)
    ]
    unique = [s for s in dict.fromkeys(settings) if s]
    ratios = [[float(rng.lognormal(0, 0.03)) / (1.15 if s.get("p3") == 2 else 1.0)] for s in unique]
    return RaceEvidence(unique, ratios, 0.03)


def test_what_all_settings_say_of_a_parameter_names_the_acting_part() -> None:
    seen = searched()
    leader = seen.finalists(1, 0.02)[0]
    assert leader["p3"] == 2
    assert len(leader) > 1
    assert seen.acting(leader, 0.02) == {"p3"}
    assert set(seen.idle(leader, 0.02)) == set(leader) - {"p3"}
    other = next(s for s in seen.settings if s.get("p3") != 2)
    assert seen.idle(other, 0.02) == ()


def test_settings_that_differ_only_in_what_does_nothing_race_as_one() -> None:
    """Twelve settings with the gain have twelve runs together: no further run decides anything."""
    seen = searched()
    assert len([s for s in seen.settings if s.get("p3") == 2]) >= 6
    assert len(seen.finalists(3, 0.02)) == 1
    assert seen.next_setting(0.02) is None


def test_settings_that_only_look_lucky_are_few_among_the_finalists() -> None:
    """Three settings of 40 are fast together with none that shares a parameter with them."""
    settings = [Setting({f"p{i}": 1}) for i in range(40)]
    rng = np.random.default_rng(1)
    ratios = [[float(rng.lognormal(0, 0.05))] for _ in settings]
    for i in (3, 5, 9):
        ratios[i] = [0.89, 0.90]
    seen = RaceEvidence(settings, ratios, 0.05)
    assert not any(seen.acting(s, 0.02) for s in settings)
    assert len(seen.finalists(3, 0.02)) == MOST_WITHOUT_EFFECT


def test_the_acting_part_is_proven_beside_its_whole_and_recommended() -> None:
    answer, kinds = wide(0.85, 0.03, 60, SearchPlan(trials=60))
    made, proof = answer.proofs[0]
    assert answer.setting == Setting({"p3": 2}) == made.settings[0]
    assert made.whole in made.settings
    assert answer.recommendation is not None
    assert answer.recommendation.pruning.whole == made.whole
    assert answer.recommendation.pruning.blocks == proof.decisions[made.settings[0]].comparison.n
    # The other 15 parameters were not taken out by runs.
    assert kinds.count("prune") < 8 * 3


def test_a_part_of_the_winner_goes_on_until_it_is_decided() -> None:
    """The part has the same gain and is preferred, although it looks a little slower at first."""
    part, whole = Setting({"p3": 2}), Setting({"p3": 2, "p5": 2})
    space = Space("pair", tuple(parameter(f"p{i}", 1, 2) for i in range(8)))
    preferred = 0
    for seed in range(20):
        simulated = evaluator(
            lambda s, rng: float(rng.lognormal(0, 0.04) / (1.1 if s else 1)), seed
        )
        made = Rounds(MemoryTrialStore(), space, 0.05).preregister(
            [part, whole], min_gain=0.02, limit_s=None
        )
        blocks = Blocks(simulated, made.phase, made.settings, seed, None)
        proof = confirm_blocks(blocks, made.plan, Budget(simulated.history))
        if whole in proof.winners:
            assert proof.decisions[part].outcome != "futile" or matters(
                blocks.pairs(part, against=whole), 0.02
            )
        preferred += part in proof.winners
    assert preferred >= 18
