"""Blocks that met a machine at another speed are measured again, and only these."""

from __future__ import annotations

import numpy as np
import pytest

from autotune.measurement.budget import Budget
from autotune.space import Setting
from autotune.stats import LookPlan
from autotune.study.proof import Blocks, Confirmation, confirm_blocks
from autotune.study.simulation import SimulatedEvaluator
from autotune.study.study_warnings import proof_warnings
from tests.study.conftest import evaluator

FAST = Setting({"eager": 8})
PLAN = LookPlan(looks=(12,), win_from=12)


def spell(first: int, until: int, effect: float = 1.0) -> SimulatedEvaluator:
    """A machine that takes twice as long in its runs ``first`` .. ``until`` - 1; 1 % noise."""
    simulated: SimulatedEvaluator

    def model(setting: Setting, rng: np.random.Generator) -> float:
        slow = 2.0 if first <= len(simulated.history.entries) < until else 1.0
        return float(slow * (effect if setting == FAST else 1.0) * rng.lognormal(0, 0.01))

    simulated = evaluator(model)
    return simulated


def proof(
    simulated: SimulatedEvaluator, plan: LookPlan = PLAN, runs: int | None = None
) -> Confirmation:
    blocks = Blocks(simulated, "confirm:1", [FAST], 0, None)
    return confirm_blocks(blocks, plan, Budget(simulated.history, runs=runs))


def test_a_slow_spell_is_measured_again_and_nothing_else() -> None:
    # Runs 10 .. 15 are blocks 5, 6 and 7.
    simulated = spell(10, 16)
    seen = proof(simulated)
    again = sorted({e.block for e in simulated.history.entries if e.phase == "confirm:1:again"})
    assert again == [5, 6, 7]
    assert seen.repeats == 3
    pairs = seen.blocks.pairs(FAST)
    assert pairs.reference == pytest.approx([1.0] * 12, rel=0.05)
    assert any(note.code == "machine.drift" for note in proof_warnings(seen))


def test_the_answer_is_the_same_when_it_is_asked_for_again() -> None:
    simulated = spell(10, 16, effect=0.8)
    first = proof(simulated)
    runs = len(simulated.history.entries)
    second = proof(simulated)
    assert len(simulated.history.entries) == runs
    assert second.decisions == first.decisions
    assert second.repeats == first.repeats == 3


def test_a_machine_that_moves_all_the_time_has_no_usual_speed() -> None:
    simulated = spell(4, 22)
    seen = proof(simulated)
    assert seen.repeats == 0
    assert len(simulated.history.entries) == 24
    steady = proof(spell(0, 0))
    assert (steady.repeats, steady.unsteady) == (0, 0)


def test_an_unfinished_repetition_does_not_count() -> None:
    simulated = spell(10, 16)
    blocks = proof(simulated).blocks
    whole = blocks.block(5)
    del simulated.history.blocks("confirm:1:again")[5][FAST.key]
    assert blocks.block(5) != whole
    assert blocks.block(5) == simulated.history.blocks("confirm:1")[5]


@pytest.mark.parametrize("studies", [60, pytest.param(300, marks=pytest.mark.slow)])
def test_repeating_makes_no_winners(studies: int) -> None:
    """Slow spells at random, a setting that does nothing: 5 % of the studies plus two errors."""
    false = 0
    for seed in range(studies):
        rng = np.random.default_rng([seed, 9])
        start = int(rng.integers(0, 40))
        simulated: SimulatedEvaluator

        def model(setting: Setting, draw: np.random.Generator, start: int = start) -> float:
            slow = 1.5 if start <= len(simulated.history.entries) < start + 8 else 1.0  # noqa: B023
            return float(slow * draw.lognormal(0, 0.05))

        simulated = evaluator(model, seed)
        seen = proof(simulated, LookPlan())
        false += bool(seen.winners)
    assert false <= studies * 0.05 + 2 * np.sqrt(studies * 0.05 * 0.95)


def test_a_budget_that_does_not_reach_the_next_look_is_not_begun_on() -> None:
    def model(setting: Setting, rng: np.random.Generator) -> float:
        return float((0.97 if setting == FAST else 1.0) * rng.lognormal(0, 0.05))

    simulated = evaluator(model)
    plan = LookPlan(looks=(8, 12, 40), futility=0.0)
    seen = proof(simulated, plan, runs=30)
    assert seen.cut_short
    assert len(simulated.history.entries) == 24
    more = proof(simulated, plan, runs=80)
    assert len(simulated.history.entries) > 24
    assert not more.cut_short
