"""What a study decides, on run times that are known."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from autotune.errors import WorkError
from autotune.measurement.budget import SearchPlan
from autotune.space import DEFAULT, Parameter, Setting, Space
from autotune.study.conclusion import judge_status
from autotune.study.procedure import StudyOutcome, run_procedure
from autotune.study.simulation import MemoryTrialStore, SimulatedEvaluator
from runner.types import RunRecord
from tests.study.conftest import ListStrategy, evaluator, parameter

ALL = [Setting({"eager": e, "links": n}) for e in (1, 4, 8) for n in (1, 2, 3, 4)]
EFFECT = {"eager=8": 0.8}


def quick(setting: Setting, rng: np.random.Generator) -> float:
    """1 s by default; eager=8 takes 0.8 s, eager=1 twice the time, links do nothing; 1 % noise."""
    factor = {1: 2.0, 4: 1.0, 8: 0.8}.get(int(setting.get("eager", 2)), 1.0)
    return float(factor * rng.lognormal(0, 0.01))


def null(setting: Setting, rng: np.random.Generator) -> float:
    """Nothing matters; 5 % noise."""
    return float(rng.lognormal(0, 0.05))


def study(
    simulated: SimulatedEvaluator,
    space: Space,
    settings: list[Setting],
    trial_store: MemoryTrialStore | None = None,
) -> tuple[StudyOutcome, MemoryTrialStore]:
    trial_store = trial_store or MemoryTrialStore()
    plan = SearchPlan(trials=len(settings))
    answer = run_procedure(simulated, trial_store, ListStrategy(settings), space, plan, seed=1)  # type: ignore[arg-type]
    return answer, trial_store


def test_the_effect_is_found_and_what_does_nothing_is_taken_out(space: Space) -> None:
    simulated = evaluator(quick)
    answer, _ = study(simulated, space, ALL)
    assert answer.setting == Setting({"eager": 8})
    assert answer.proof is not None
    seen = answer.proof.decisions[answer.setting].comparison
    assert seen.lo > 0
    assert seen.gain == pytest.approx(0.25, abs=0.03)


def test_where_nothing_matters_the_default_is_kept(space: Space) -> None:
    false = 0
    for seed in range(40):
        simulated = evaluator(null, seed)
        answer, _ = study(simulated, space, ALL)
        false += answer.setting is not None
    # 40 studies at 5 %: more than 6 have probability 0.3 % (binomial).
    assert false <= 6


def test_a_slow_setting_is_stopped_and_kept_as_censored(space: Space) -> None:
    def model(setting: Setting, rng: np.random.Generator) -> float:
        return 50.0 if setting.get("eager") == 1 else 1.0

    simulated = evaluator(model)
    _, trial_store = study(simulated, space, [Setting({"eager": 1}), Setting({"eager": 4})])
    slow = trial_store.trials[0]
    assert slow.state == "censored"
    assert slow.estimate is not None
    assert 3 <= slow.estimate < 50
    longest = max(e.record.wall_s for e in simulated.history.entries)
    assert longest < 6


def test_a_failing_setting_is_stored_with_its_reason_and_never_wins(space: Space) -> None:
    def model(setting: Setting, rng: np.random.Generator) -> float | str:
        return "failed" if setting.get("eager") == 8 else float(rng.lognormal(0, 0.01))

    answer, trial_store = study(evaluator(model), space, ALL)
    failed = [t for t in trial_store.trials if t.setting.get("eager") == 8]
    assert {t.state for t in failed} == {"failed"}
    assert all(t.reason == "failed" for t in failed)
    assert answer.setting is None


def test_a_default_that_fails_ends_the_study_with_its_reason(space: Space) -> None:
    with pytest.raises(WorkError, match="default"):
        study(evaluator(lambda setting, rng: "failed"), space, ALL)


def test_one_failing_start_of_the_default_does_not_end_the_study(space: Space) -> None:
    calls = [0]

    def model(setting: Setting, rng: np.random.Generator) -> float | str:
        calls[0] += 1
        return "failed" if calls[0] == 1 else 1.0

    simulated = evaluator(model)
    study(simulated, space, [Setting({"eager": 1})])
    assert [e.record.state for e in simulated.history.entries[:2]] == ["failed", "ok"]


def test_an_inactive_parameter_is_learned_and_not_measured_again(space: Space) -> None:
    settings = [Setting({"eager": 4, "links": n}) for n in (1, 2, 3, 4)]
    simulated = evaluator(quick, inactive=frozenset({"links"}))
    _, trial_store = study(simulated, space, settings)
    assert [t.effective for t in trial_store.trials] == [Setting({"eager": 4})] * 4
    searched = {e.key for e in simulated.history.entries if e.kind == "search"}
    assert searched == {"eager=4,links=1"}


def test_what_is_inactive_in_another_layout_stays_in_the_study() -> None:
    layout = Parameter(name="workers", levels=(1, 2), target="resource", default=1)
    where = Space("laid out", (layout, parameter("links", 1, 2, 3)))
    settings = [Setting({"workers": 2, "links": 2}), Setting({"links": 3})]
    simulated = evaluator(quick, inactive=frozenset({"links"}))
    _, trial_store = study(simulated, where, settings)
    assert trial_store.trials[0].effective == Setting({"workers": 2})
    searched = [e.key for e in simulated.history.entries if e.kind == "search"]
    assert searched == ["links=2,workers=2", "links=3"]


class OneRankANode(SimulatedEvaluator):
    """Shared memory is opened only where a node has several ranks."""

    def _record(self, setting: Setting, timeout_s: float | None) -> RunRecord:
        alone = setting.get("map_by") == "node"
        self.inactive = frozenset({"links"}) if alone else frozenset()
        return super()._record(setting, timeout_s)


def test_one_mapping_does_not_ban_a_parameter_from_the_study() -> None:
    mapping = Parameter(name="map_by", levels=("node", "slot"), target="placement", default="slot")
    where = Space("mapped", (mapping, parameter("links", 1, 2, 3)))
    alone = [Setting({"map_by": "node", "links": n}) for n in (2, 3)]
    simulated = OneRankANode(quick, np.random.default_rng(0))
    proposed = [alone[0], Setting({"links": 3}), alone[1]]
    _, trial_store = study(simulated, where, proposed)
    seen = [t.effective for t in trial_store.trials]
    assert seen == [Setting({"map_by": "node"}), Setting({"links": 3}), Setting({"map_by": "node"})]
    searched = [e.key for e in simulated.history.entries if e.kind == "search"]
    assert searched == ["links=2,map_by=node", "links=3"]
    # Another process knows it too.
    study(simulated, where, [*proposed, Setting({"map_by": "node", "links": 1})], trial_store)
    assert len(trial_store.trials) == 4
    assert [e.key for e in simulated.history.entries if e.kind == "search"] == searched
    assert trial_store.trials[-1].effective == Setting({"map_by": "node"})


def test_a_run_that_failed_does_not_say_what_is_inactive(space: Space) -> None:
    class Failing(SimulatedEvaluator):
        def _record(self, setting: Setting, timeout_s: float | None) -> RunRecord:
            record = super()._record(setting, timeout_s)
            failed = setting.get("eager") == 1
            return dataclasses.replace(record, state="failed") if failed else record

    settings = [Setting({"eager": 1, "links": 2}), Setting({"links": 2})]
    failing = Failing(quick, np.random.default_rng(0), inactive=frozenset({"links"}))
    _, trial_store = study(failing, space, settings)
    assert trial_store.trials[0].effective == settings[0]
    assert trial_store.trials[1].effective == DEFAULT


def test_what_is_known_is_not_run(space: Space) -> None:
    simulated = evaluator(quick)
    trial_store = MemoryTrialStore(ratios={Setting({"eager": 1}): 2.0})
    study(simulated, space, [Setting({"eager": 1})], trial_store)
    assert simulated.history.search_runs == 0
    assert trial_store.trials[0].estimate == 2.0
    assert trial_store.trials[0].reused


def test_a_setting_that_means_the_default_is_not_run(space: Space) -> None:
    simulated = evaluator(quick)
    _, trial_store = study(simulated, space, [Setting({"eager": 2})])
    assert trial_store.trials[0].effective == DEFAULT
    assert simulated.history.search_runs == 0


def test_a_finished_study_run_again_measures_nothing_new_in_its_phases(space: Space) -> None:
    simulated = evaluator(quick)
    first, trial_store = study(simulated, space, ALL)
    kinds = [e.kind for e in simulated.history.entries]
    again, _ = study(simulated, space, ALL, trial_store)
    more = [e.kind for e in simulated.history.entries][len(kinds) :]
    assert set(more) <= {"warmup", "default"}
    assert again.setting == first.setting


def test_stopping_anywhere_and_going_on_reaches_the_same_answer(space: Space) -> None:
    class Stopped(Exception):
        pass

    class Fragile(SimulatedEvaluator):
        left = 0

        def run(self, *args: object, **more: object):  # type: ignore[no-untyped-def]
            if self.left == 0:
                raise Stopped
            self.left -= 1
            return super().run(*args, **more)  # type: ignore[arg-type]

    fragile = Fragile(quick, np.random.default_rng(0))
    trial_store = MemoryTrialStore()
    answer = None
    for _ in range(60):
        fragile.left = 16
        try:
            answer, _ = study(fragile, space, ALL, trial_store)
            break
        except Stopped:
            continue
    assert answer is not None
    assert answer.setting == Setting({"eager": 8})
    assert len(trial_store.trials) == len(ALL)


def test_what_other_studies_measured_alone_is_measured_here_before_it_is_judged(
    space: Space,
) -> None:
    """No run of one's own is no reason to say that nothing is faster."""
    simulated = evaluator(quick)
    ratios = {Setting({"eager": 8}): 0.8, Setting({"eager": 1}): 2.0}
    answer, _ = study(simulated, space, list(ratios), MemoryTrialStore(ratios=ratios))
    assert answer.setting == Setting({"eager": 8})
    nothing = evaluator(quick)
    ratios = {Setting({"eager": 4}): 1.0, Setting({"eager": 1}): 2.0}
    answer, _ = study(nothing, space, list(ratios), MemoryTrialStore(ratios=ratios))
    assert answer.setting is None
    assert not nothing.history.entries


def test_the_statuses(space: Space) -> None:
    simulated = evaluator(quick)
    answer, _ = study(simulated, space, ALL)
    assert judge_status(answer, simulated.history) == "recommended"
    nothing, _ = study(evaluator(quick), space, [Setting({"eager": 1})])
    assert judge_status(nothing, simulated.history) == "keep_default"


def test_a_time_budget_is_kept_with_its_reserve(space: Space) -> None:
    simulated = evaluator(null)
    plan = SearchPlan(trials=None, budget_s=120.0)
    settings = [
        Setting({"eager": e, "yield_": y, "links": n})
        for e in (1, 4, 8)
        for y in (0, 1)
        for n in (1, 2, 3, 4)
    ] * 20
    run_procedure(simulated, MemoryTrialStore(), ListStrategy(settings), space, plan, seed=1)  # type: ignore[arg-type]
    assert simulated.history.launched_s <= 120 * 1.25
