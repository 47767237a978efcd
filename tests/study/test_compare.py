"""What is told of a comparison."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from autotune.space import Setting
from autotune.stats import Plan
from autotune.study.blocks import Blocks
from autotune.study.budget import Budget
from autotune.study.compare import outcome_of
from autotune.study.confirm import confirm_blocks
from tests.study.conftest import bench

FASTER = Setting({"eager": 8})


def test_every_figure_rests_on_the_pairs_that_decided() -> None:
    simulated = bench(lambda setting, rng: 1.0)
    blocks = Blocks(simulated, "compare:0", [FASTER], 1, None)
    proof = confirm_blocks(blocks, Plan.fixed(8), Budget(simulated.ledger))
    for number in range(8, 13):  # A budget that ends between two looks leaves such blocks.
        blocks.ensure_block(number, [FASTER])
    request: Any = SimpleNamespace(second=FASTER)
    machine: Any = simulated
    seen = outcome_of(request, machine, blocks, proof, "study")
    assert seen.decision.comparison.n == len(seen.first_s) == len(seen.second_s) == 8
    assert seen.runs == 2 * 13  # What the machine was used for is told whole.
