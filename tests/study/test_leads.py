"""Leads: runs of which the time is not used, so that the compared runs follow the same."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.measurement.budget import Budget
from autotune.measurement.run_history import LEAD, HistoryEntry, RunHistory
from autotune.space import DEFAULT, Setting
from autotune.study.proof import Blocks, ReferenceFailure, order_seed
from tests.case_table import case_table
from tests.study.conftest import ensure, evaluator

FAST, OTHER = Setting({"eager": 8}), Setting({"links": 3})
few = settings(max_examples=40)


def measured(leads: bool, count: int = 12, seed: int = 1, *more: Setting) -> list[HistoryEntry]:
    simulated = evaluator(lambda setting, rng: 1.0)
    simulated.run(DEFAULT, "warmup")
    ensure(Blocks(simulated, "confirm:r1", [FAST, *more], seed, None, leads=leads), count)
    return simulated.history.entries


def is_lead(entry: HistoryEntry) -> bool:
    return entry.phase.endswith(f":{LEAD}")


@few
@given(st.integers(0, 10**6), st.booleans())
def test_with_leads_every_run_follows_one_of_its_own(seed: int, three: bool) -> None:
    for before, entry in pairwise(measured(True, 6, seed, *([OTHER] if three else []))):
        if not is_lead(entry):
            assert before.key == entry.key


def test_without_leads_no_run_is_added() -> None:
    assert not any(map(is_lead, measured(False)))


@pytest.mark.parametrize("leads", [False, True])
def test_the_number_of_runs_is_what_is_planned(leads: bool) -> None:
    simulated = evaluator(lambda setting, rng: 1.0)
    blocks = Blocks(simulated, "confirm:r1", [FAST], 3, None, leads=leads)
    ensure(blocks, 200)
    assert len(simulated.history.entries) == pytest.approx(blocks.runs(200, 1), rel=0.06)


@case_table("cut", range(1, 12))
def test_an_interrupted_block_goes_on_behind_the_run_that_it_followed(cut: int) -> None:
    simulated = evaluator(lambda setting, rng: 1.0)
    ensure(Blocks(simulated, "confirm:r1", [FAST], 5, None, leads=True), 4)
    simulated.history = RunHistory.of(simulated.history.entries[:cut])
    before = list(simulated.history.entries)
    ensure(Blocks(simulated, "confirm:r1", [FAST], 5, None, leads=True), 4)
    entries = simulated.history.entries
    assert entries[:cut] == before
    timed = [entry for entry in entries if not is_lead(entry)]
    assert len({(entry.block, entry.key) for entry in timed}) == len(timed) == 8
    for last, entry in pairwise(entries[cut:]):
        if not is_lead(entry):
            assert last.key == entry.key


def test_a_setting_that_slows_the_next_run_wins_nothing() -> None:
    """Behind a run of the setting any run takes 10 % more; without leads the default has most."""

    def ratio(leads: bool) -> float:
        def model(setting: Setting, rng: np.random.Generator) -> float:
            hot = simulated.history.previous == FAST.key
            return float(rng.lognormal(0, 0.02)) * (1.1 if hot else 1.0)

        simulated = evaluator(model, 4)
        blocks = Blocks(simulated, "confirm:r1", [FAST], 2, None, leads=leads)
        ensure(blocks, 300)
        return float(np.exp(np.mean(np.log(blocks.pairs(FAST).ratios))))

    assert ratio(False) < 0.97
    assert ratio(True) == pytest.approx(1.1, abs=0.01)


def test_orders_differ_from_study_to_study() -> None:
    def order(seed: int) -> list[str]:
        return [entry.key for entry in measured(False, 12, seed)]

    seeds = [order_seed(study, 0) for study in ("a" * 64, "b" * 64)]
    assert order(seeds[0]) == order(seeds[0]) != order(seeds[1])


def test_the_budget_counts_leads() -> None:
    simulated = evaluator(lambda setting, rng: 1.0)
    blocks = Blocks(simulated, "confirm:r1", [FAST], 3, None, leads=True)
    budget = Budget(simulated.history, None, 40)
    assert not budget.affords(blocks.runs(12, 1), None)
    assert budget.affords(blocks.runs(11, 1), None)


def failing(share: float, which: Setting = DEFAULT) -> Any:
    def model(setting: Setting, rng: np.random.Generator) -> float | str:
        return "failed" if setting == which and rng.random() < share else 1.0

    return model


@pytest.mark.parametrize("share", [0.1, 0.2])
def test_a_reference_that_fails_now_and_then_ends_no_comparison(share: float) -> None:
    for seed in range(60):
        simulated = evaluator(failing(share), seed)
        simulated.run(DEFAULT, "warmup")
        blocks = Blocks(simulated, "compare:0", [FAST], seed, None)
        ensure(blocks, 27)
        assert len(blocks.pairs(FAST).ratios) == 27


@pytest.mark.parametrize("symmetric", [False, True])
def test_failures_of_both_sides_are_repeated_where_libraries_are_compared(symmetric: bool) -> None:
    simulated = evaluator(failing(0.2, FAST), 7)
    blocks = Blocks(simulated, "compare:0", [FAST], 7, None, symmetric=symmetric)
    ensure(blocks, 40)
    failed, launches = blocks.failures(FAST)
    censored = sum(blocks.pairs(FAST).censored)
    assert failed > 0
    assert (launches, censored) == ((40 + failed, 0) if symmetric else (40, failed))


def test_a_reference_that_hangs_is_given_up_after_five_attempts() -> None:
    simulated = evaluator(lambda setting, rng: 9.0 if setting == DEFAULT else 1.0)
    blocks = Blocks(simulated, "compare:0", [FAST], 7, 3.0, reference_limit_s=3.0)
    with pytest.raises(ReferenceFailure):
        ensure(blocks, 1)
    assert sum(entry.key == DEFAULT.key for entry in simulated.history.entries) == 5


@case_table("cut", range(1, 8))
def test_an_interruption_takes_no_attempt_from_a_symmetric_comparison(cut: int) -> None:
    """The setting runs once and then fails: it has five attempts, however often it is killed."""
    simulated = evaluator(lambda setting, rng: "failed" if ran and setting == FAST else 1.0, 7)
    ran = False
    simulated.run(FAST, "warmup")
    ran = True
    ensure(Blocks(simulated, "compare:0", [FAST], 7, None, symmetric=True), 1)
    simulated.history = RunHistory.of(simulated.history.entries[: cut + 1])
    blocks = Blocks(simulated, "compare:0", [FAST], 7, None, symmetric=True)
    ensure(blocks, 1)
    assert blocks.failures(FAST) == (5, 5)


def test_a_setting_that_never_ran_is_not_tried_again() -> None:
    simulated = evaluator(failing(1.0, FAST), 7)
    blocks = Blocks(simulated, "compare:0", [FAST], 7, None, symmetric=True)
    ensure(blocks, 1)
    assert blocks.failures(FAST) == (1, 1)
