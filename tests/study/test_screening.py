"""Screening by cheap runs, on run times that are known."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from syrupy.assertion import SnapshotAssertion

from autotune.errors import AutotuneError, WorkError
from autotune.measurement.budget import Budget, BudgetSpent, SearchPlan
from autotune.measurement.run_history import RunHistory
from autotune.space import DEFAULT, Setting, Space
from autotune.stats.cheap_runs import CHANCE
from autotune.store import Store
from autotune.store.model import PRUNED
from autotune.strategies import Proposal
from autotune.study.procedure import StudyOutcome, run_procedure
from autotune.study.screening import AUDIT, BOTH_FIRST, OFF, Screening
from autotune.study.screening_summary import (
    LINK,
    screening_words,
    stored_summary,
    summary,
    why_off,
)
from autotune.study.simulation import MemoryTrialStore, SimulatedEvaluator
from autotune.study.trial_store import CHEAP, Trial
from tests.contract.store_samples import key
from tests.study.conftest import ListStrategy, evaluator

Model = Callable[[Setting, np.random.Generator], float | str]
ALL = [
    Setting({"eager": e, "links": n, "yield_": y})
    for e, n, y in itertools.product((1, 4, 8), (1, 2, 3, 4), (0, 1))
]
"""24 settings; those with eager=8 are fast, those with eager=1 are slow."""
FACTOR = {1: 1.6, 2: 1.0, 4: 1.1, 8: 0.8}


class InOrder(ListStrategy):
    """Proposes the first setting of which it was not told; the study may run others in between."""

    def ask(self) -> Any:
        known = {observation.setting for observation in self.told}
        left = [setting for setting in self.settings if setting not in known]
        return Proposal(left[0]) if left else None


def timed(unit_s: float, noise: float = 0.01, turned: bool = False) -> Model:
    """Seconds of a form; ``turned``: what is slow in the full form is fast in this one."""

    def model(setting: Setting, rng: np.random.Generator) -> float:
        factor = FACTOR[int(setting.get("eager", 2))] * 1.02 ** int(setting.get("links", 1))
        return float(unit_s * (1 / factor if turned else factor) * rng.lognormal(0, noise))

    return model


def screening(
    cheap: Model, trial_store: MemoryTrialStore, seed: int = 7, plan: SearchPlan | None = None
) -> Screening:
    return Screening(evaluator(cheap, seed), "--iterations 10", trial_store, plan or SearchPlan())


def study(
    space: Space,
    full: Model,
    cheap: Model,
    settings: list[Setting] = ALL,
    plan: SearchPlan | None = None,
) -> tuple[StudyOutcome, MemoryTrialStore, Screening]:
    trial_store = MemoryTrialStore()
    plan = plan or SearchPlan(trials=3 * len(settings))
    screens = screening(cheap, trial_store, plan=plan)
    answer = run_procedure(
        evaluator(full),
        trial_store,
        InOrder(settings),
        space,
        plan,
        1,
        screening=screens,  # type: ignore[arg-type]
    )
    return answer, trial_store, screens


def shuffled() -> list[Setting]:
    order = np.random.default_rng(3).permutation(len(ALL))
    return [ALL[i] for i in order]


def test_settings_without_gain_are_kept_from_full_runs_and_the_fast_one_wins(space: Space) -> None:
    answer, trial_store, screens = study(space, timed(1.0), timed(0.1), shuffled())
    out = [t for t in trial_store.trials if t.state == PRUNED]
    assert len(out) >= 6
    assert all(t.estimate is None for t in out)
    full_keys = {e.key for e in answer.budget.history.entries}
    assert not full_keys & {t.effective.key for t in out}
    assert answer.setting is not None
    assert answer.setting["eager"] == 8
    assert not screens.over
    # No cheap run is among the full runs, and the other way round.
    kinds = {e.kind for e in screens.evaluator.history.entries}
    assert kinds == {"warmup", "default", "screen"}
    assert "screen" not in answer.budget.history.phases


def test_the_first_settings_and_some_others_are_run_in_both_forms(space: Space) -> None:
    _, trial_store, _ = study(space, timed(1.0), timed(0.1), shuffled())
    seen = [t.attrs[CHEAP] for t in trial_store.trials]
    assert not any(t.state == PRUNED for t in trial_store.trials[:BOTH_FIRST])
    judged = [s for s in seen[BOTH_FIRST:] if isinstance(s, dict) and s["no_gain"]]
    kept = [bool(s["kept"]) for s in judged]
    assert kept == [i % AUDIT == AUDIT - 1 for i in range(len(kept))]
    assert sum(kept) >= 1


def test_a_strategy_learns_less_from_a_cheap_run(space: Space) -> None:
    trial = Trial(0, ALL[0], ALL[0], state=PRUNED, attrs={CHEAP: {"ratio": 1.44}})
    assert trial.observation().fitness == pytest.approx(1.2)
    trial.attrs[CHEAP] = {"ratio": 0.99}
    assert trial.observation().fitness == 1.0


@pytest.mark.parametrize("noise", [0.005, 0.05])
def test_a_setting_that_is_5_percent_faster_is_screened_out_at_most_that_often(
    noise: float,
) -> None:
    times, out = 400, 0
    setting = Setting({"eager": 8})

    def model(one: Setting, rng: np.random.Generator) -> float:
        return float(rng.lognormal(0, noise) / (1.05 if one == setting else 1))

    for seed in range(times):
        trial_store = MemoryTrialStore(trials=agreeing())
        screens = screening(model, trial_store, seed, SearchPlan(min_gain=0.05))
        screens.start(Budget(RunHistory()))
        out += screens.screens_out(Trial(9, setting, setting))
    assert out <= stats.binom.ppf(0.999, times, CHANCE)


def agreeing() -> list[Trial]:
    """The first trials, in which both forms agree."""
    return [
        Trial(
            i, one, one, state="ok", estimate=1 + i / 10,
            attrs={CHEAP: {"ratio": 1 + i / 10, "no_gain": False, "kept": ""}},
        )
        for i, one in enumerate(ALL[:BOTH_FIRST])
    ]  # fmt: skip


def test_a_machine_that_becomes_slower_screens_out_nothing(space: Space) -> None:
    trial_store = MemoryTrialStore(trials=agreeing())
    runs = itertools.count()

    def model(one: Setting, rng: np.random.Generator) -> float:
        # After the first six runs, all take twice as long; the setting is 5 % faster.
        factor = 1.05 if one == ALL[-1] else 1
        return float(rng.lognormal(0, 0.005) / factor * (1 if next(runs) < 6 else 2))

    screens = screening(model, trial_store)
    screens.start(Budget(RunHistory()))
    trial = Trial(9, ALL[-1], ALL[-1])
    assert not screens.screens_out(trial)
    assert len(screens.evaluator.history.entries) == 9


def test_where_the_forms_disagree_screening_ends_and_the_best_is_found(space: Space) -> None:
    answer, trial_store, screens = study(space, timed(1.0), timed(0.1, turned=True), shuffled())
    assert screens.over
    off = trial_store.stored_document(OFF)
    assert off is not None
    assert off["correlation"] < 0
    assert off["settings"] == BOTH_FIRST
    assert sum(CHEAP in t.attrs for t in trial_store.trials) == BOTH_FIRST
    assert answer.setting is not None
    assert answer.setting["eager"] == 8


def test_settings_that_were_screened_out_wrongly_are_run_in_full(space: Space) -> None:
    # The forms agree on the first settings only: later links=3 and 4 are slow in cheap runs.
    full = timed(1.0)

    def cheap(setting: Setting, rng: np.random.Generator) -> float:
        known = full(setting, rng)
        assert isinstance(known, float)
        return 0.1 * (3 / known if int(setting.get("links", 1)) > 2 else known)

    first = [s for s in shuffled() if int(s["links"]) <= 2][:BOTH_FIRST]
    settings = [*first, *(s for s in shuffled() if s not in first)]
    answer, trial_store, screens = study(space, full, cheap, settings)
    assert screens.over
    off = trial_store.stored_document(OFF)
    assert off is not None
    assert off["missed_gain"] > 0.1
    run = {t.setting for t in trial_store.trials if t.has_result}
    assert run == set(settings)
    assert any(t.state == PRUNED for t in trial_store.trials)
    assert answer.setting is not None
    assert answer.setting["eager"] == 8


def test_a_setting_that_fails_in_cheap_runs_gets_full_runs(space: Space) -> None:
    def cheap(setting: Setting, rng: np.random.Generator) -> float | str:
        return "failed" if setting.get("eager") == 8 else float(rng.lognormal(0, 0.01))

    answer, trial_store, _ = study(space, timed(1.0), cheap, shuffled())
    assert all(t.has_result for t in trial_store.trials if t.setting.get("eager") == 8)
    assert answer.setting is not None
    assert answer.setting["eager"] == 8


def test_a_default_that_fails_in_the_cheap_form_names_the_remedy(space: Space) -> None:
    with pytest.raises(WorkError, match=r"(?s)--iterations 10.*Correct \[fidelity\]"):
        study(space, timed(1.0), lambda s, r: "failed")


def test_an_interrupted_search_goes_on_as_it_would_have(space: Space) -> None:
    def names(trials: list[Trial]) -> list[tuple[Setting, str, object]]:
        return [(t.setting, t.state, t.attrs.get(CHEAP)) for t in trials]

    class Fixed(SimulatedEvaluator):
        """Times that depend only on the setting, so that more runs of the default change none."""

        def _record(self, setting: Setting, timeout_s: float | None):  # type: ignore[no-untyped-def]
            self.rng = np.random.default_rng(5)
            return super()._record(setting, timeout_s)

    def go(stops: tuple[int, ...]) -> list[tuple[Setting, str, object]]:
        trial_store = MemoryTrialStore()
        full = Fixed(timed(1.0), np.random.default_rng(0))
        cheap = Fixed(timed(0.1), np.random.default_rng(0))
        for stop in (*stops, None):
            plan = SearchPlan(trials=len(ALL))
            screens = Screening(cheap, "--iterations 10", trial_store, plan)
            if stop is not None:
                ended = cheap.run

                def run(*words, stop=stop, ended=ended, **more):  # type: ignore[no-untyped-def]
                    if len(cheap.history.entries) >= stop:
                        raise KeyboardInterrupt
                    return ended(*words, **more)

                cheap.run = run  # type: ignore[method-assign]
            try:
                run_procedure(
                    full,
                    trial_store,
                    InOrder(shuffled()),
                    space,
                    plan,
                    1,
                    screening=screens,  # type: ignore[arg-type]
                )
            except KeyboardInterrupt:
                cheap.__dict__.pop("run")
        return names(trial_store.trials)

    assert go((9, 20, 31)) == go(())


def test_cheap_runs_spend_the_budget_by_their_time(space: Space) -> None:
    plan = SearchPlan(trials=None, max_runs=60)
    answer, _, screens = study(space, timed(1.0), timed(0.1), shuffled(), plan)
    budget = answer.budget
    cheap = screens.evaluator.history
    assert budget.cheap is cheap
    share = cheap.launched_s / budget.cost_s(1)
    assert 0 < share < len(cheap.entries)
    assert budget.spent_runs == pytest.approx(len(budget.history.entries) + share)
    assert budget.spent_runs <= 61
    assert budget.spent_s == pytest.approx(budget.history.launched_s + cheap.launched_s)
    with pytest.raises(BudgetSpent):
        Budget(budget.history, None, math.floor(budget.spent_runs), cheap).require()


def test_the_summary_counts_what_was_run(space: Space, snapshot: SnapshotAssertion) -> None:
    answer, trial_store, screens = study(space, timed(1.0), timed(0.1), shuffled())
    cheap, full = screens.evaluator.history, answer.budget.history
    seen = summary("--iterations 10", "0" * 64, cheap, full, trial_store.trials, None)
    out = sum(t.state == PRUNED for t in trial_store.trials)
    assert seen["runs"] == len(cheap.entries)
    assert seen["screened_out"] == out
    assert seen["saved_s"] == pytest.approx(seen["spared_s"] - cheap.launched_s, abs=0.01)
    assert seen["spared_s"] == pytest.approx(out * answer.budget.cost_s(1), abs=0.01)
    off = {"correlation": -0.31, "settings": 9, "needed": 0.6, "missed_gain": None}
    ended = summary("--iterations 10", "0" * 64, cheap, full, trial_store.trials, off)
    assert (ended["correlation"], ended["both"]) == (-0.31, 9)
    assert (seen["off"], ended["off"]) == (None, why_off(off))
    figures = {"runs": 9, "machine_s": 12.0, "correlation": 0.8, "both": 5}
    figures |= {"screened_out": 3, "spared_s": 30.0, "saved_s": 18.0}
    none = {"screened_out": 0, "spared_s": 0.0, "saved_s": -12.0}
    switched_off = {"off": ended["off"], "correlation": -0.31, "both": 9}
    assert [
        screening_words(seen | figures | other) for other in ({}, none, switched_off)
    ] == snapshot
    assert DEFAULT.key not in {t.setting.key for t in trial_store.trials}


@pytest.mark.parametrize("damage", [{"study": "0" * 64}, {}, {"study": 3, "form": None}])
def test_a_damaged_link_is_one_message(tmp_path: Path, damage: dict[str, object]) -> None:
    with Store.open(tmp_path / "r.db") as store:
        study = store.study(key())
        assert stored_summary(store, study) is None
        store.store_document(study.id, LINK, damage)
        with pytest.raises(AutotuneError):
            stored_summary(store, study)
