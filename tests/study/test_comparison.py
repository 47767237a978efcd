"""What is told of a comparison."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from autotune.space import Setting
from autotune.stats import LookPlan
from autotune.study.budget import Budget
from autotune.study.comparison import outcome_of
from autotune.study.confirmation import Blocks, confirm_blocks
from tests.study.conftest import evaluator

FASTER = Setting({"eager": 8})


def asked() -> Any:
    return SimpleNamespace(
        candidate=FASTER,
        other=None,
        libraries=None,
        guard=True,
        plan=LookPlan.fixed(8),
        budget_s=None,
        max_runs=None,
    )


def test_every_figure_rests_on_the_pairs_that_decided() -> None:
    simulated = evaluator(lambda setting, rng: 1.0)
    blocks = Blocks(simulated, "compare:0", [FASTER], 1, None)
    proof = confirm_blocks(blocks, LookPlan.fixed(8), Budget(simulated.history))
    for number in range(8, 13):  # A budget that ends between two looks leaves such blocks.
        blocks.ensure_block(number, [FASTER])
    request: Any = asked()
    machine: Any = simulated
    seen = outcome_of(request, machine, blocks, proof, "study")
    assert seen.decision.comparison.n == len(seen.first_s) == len(seen.second_s) == 8
    assert seen.runs == 2 * 13  # What the machine was used for is told whole.


def test_what_never_runs_is_said_in_its_own_words() -> None:
    def fails(setting: Setting, rng: Any) -> float | str:
        return "failed" if setting == FASTER else 1.0

    simulated = evaluator(fails)
    blocks = Blocks(simulated, "compare:0", [FASTER], 1, None)
    proof = confirm_blocks(blocks, LookPlan.fixed(8), Budget(simulated.history))
    request: Any = asked()
    seen = outcome_of(request, simulated, blocks, proof, "study")
    assert seen.failed.startswith("B does not start: failed: failed (in all its 8 runs")
    assert seen.to_json()["outcome"] == "failed"


def test_what_ran_once_is_compared() -> None:
    first = [True]

    def once(setting: Setting, rng: Any) -> float | str:
        if setting == FASTER and not first[0]:
            return "failed"
        first[0] = first[0] and setting != FASTER
        return 1.0

    simulated = evaluator(once)
    blocks = Blocks(simulated, "compare:0", [FASTER], 1, None)
    proof = confirm_blocks(blocks, LookPlan.fixed(8), Budget(simulated.history))
    request: Any = asked()
    assert outcome_of(request, simulated, blocks, proof, "study").failed == ""
