"""Which smaller settings a pruning may measure, and when it has measured enough."""

from __future__ import annotations

import numpy as np
import pytest

from autotune.measurement.bench import Bench
from autotune.measurement.budget import Budget, SearchPlan
from autotune.space import DEFAULT, InactiveParameters, Parameter, Setting, Space, parse_expression
from autotune.space.space import Constraint
from autotune.study.proof import Pairs, matters
from autotune.study.pruning import SURE_BLOCKS, Pruner, certain, groups, without, without_all
from autotune.study.simulation import SimulatedEvaluator
from tests.study.conftest import evaluator

CONDITION = parse_expression("algorithm == 2")
SPACE = Space(
    "s",
    (
        Parameter("algorithm", (1, 2), default=1),
        Parameter("segment", (1024, 4096), when=CONDITION),
        Parameter("low", (1, 8), default=1),
        Parameter("high", (2, 16), default=2),
    ),
    (Constraint(parse_expression("low <= high"), "the low limit lies below the high one"),),
)
OTHER = Space("other", tuple(Parameter(p.name, p.levels) for p in SPACE))
WHOLE = Setting({"algorithm": 2, "segment": 4096, "low": 8, "high": 16})


def test_what_means_nothing_without_it_goes_with_it() -> None:
    assert without(WHOLE, ("algorithm",), [SPACE]) == Setting({"low": 8, "high": 16})


def test_a_setting_that_breaks_a_rule_is_not_launched() -> None:
    assert without(WHOLE, ("high",), [SPACE]) is None
    assert without(WHOLE, ("high", "low"), [SPACE]) == Setting({"algorithm": 2, "segment": 4096})
    assert without_all(WHOLE, {("high",): 0.9}, SPACE) == WHOLE


def test_the_rules_of_every_program_hold_and_what_one_needs_stays() -> None:
    assert without(WHOLE, ("high",), [OTHER, SPACE]) is None
    assert without(WHOLE, ("algorithm",), [OTHER, SPACE]) == WHOLE.without("algorithm")
    assert without(WHOLE, ("high",), [OTHER]) == WHOLE.without("high")


def test_never_everything_the_worst_to_miss_stays() -> None:
    both = Setting({"algorithm": 2, "high": 16})
    assert without(both, ("algorithm", "high"), [SPACE]) is None
    assert without(both, ("segment",), [SPACE]) is None
    idle = {("high",): 1.001, ("algorithm",): 0.99}
    assert without_all(both, idle, SPACE) == Setting({"high": 16})


@pytest.mark.parametrize(("count", "pieces", "sizes"), [(4, 1, [1] * 4), (9, 1, [3] * 3)])
def test_groups_of_many_and_singles_of_few(count: int, pieces: int, sizes: list[int]) -> None:
    names = tuple(f"p{n}" for n in range(count))
    found = groups(names, pieces, 4)
    assert [len(group) for group in found] == sizes
    assert tuple(name for group in found for name in group) == names


def pairs(*ratios: float) -> Pairs:
    return Pairs([1.0] * len(ratios), list(ratios), [False] * len(ratios))


def test_a_rival_is_not_run_on_once_no_further_block_can_change_the_outcome() -> None:
    # 7 of 8 blocks must be slower: two that are not decide.
    assert not certain(pairs(1.1, 1.1, 0.99), 8, 0.02)
    assert certain(pairs(1.1, 1.1, 0.99, 0.98), 8, 0.02)
    assert not certain(pairs(*[1.1] * (SURE_BLOCKS - 1)), 8, 0.02)
    assert certain(pairs(*[1.1] * SURE_BLOCKS), 8, 0.02)
    # All slower, but by less than is worth a parameter.
    assert not certain(pairs(*[1.001] * SURE_BLOCKS), 8, 0.02)


def test_what_is_certain_is_what_all_blocks_would_have_said() -> None:
    rng = np.random.default_rng(2)
    for _ in range(300):
        ratios = [float(r) for r in rng.lognormal(0.02, 0.05, 8)]
        seen = next(n for n in range(9) if n == 8 or certain(pairs(*ratios[:n]), 8, 0.02))
        early, whole = pairs(*ratios[:seen]), pairs(*ratios)
        if early.slower_share() < 1:
            assert matters(early, 0.02) == matters(whole, 0.02)


def test_an_ablation_stops_early_and_runs_no_default() -> None:
    """Two of four parameters act; the idle ones are left out after few blocks."""

    def acting(setting: Setting, rng: np.random.Generator) -> float:
        factor = (0.8 if "a" in setting else 1.0) * (0.8 if "b" in setting else 1.0)
        return float(factor * rng.lognormal(0, 0.02))

    simulated = evaluator(acting)
    pruner = pruner_on(simulated)
    before = len(simulated.history.entries)
    whole = Setting({"a": 1, "b": 1, "c": 1, "d": 1})
    found = pruner.prune(whole, "prune:r1:0", 8, reserve=0)
    assert found.setting == Setting({"a": 1, "b": 1})
    assert found.complete
    runs = simulated.history.entries[before:]
    assert DEFAULT.key not in {entry.key for entry in runs}
    assert len(runs) < 8 * 5


@pytest.mark.parametrize("outcome", ["failed", 100.0])
def test_a_setting_that_fails_or_hangs_in_the_ablation_is_left_as_it_is(
    outcome: float | str,
) -> None:
    def failing(setting: Setting, rng: np.random.Generator) -> float | str:
        return outcome if len(setting) == 2 else 1.0

    pruner = pruner_on(evaluator(failing))
    whole = Setting({"a": 1, "b": 1})
    found = pruner.prune(whole, "prune:r1:0", 8, reserve=0)
    assert found.setting == whole
    assert not found.complete
    assert "failed" in found.why


def pruner_on(simulated: SimulatedEvaluator) -> Pruner:
    space = Space("four", tuple(Parameter(name, (1, 2)) for name in "abcd"))
    bench = Bench(simulated, SearchPlan(), Budget(simulated.history))
    bench.ensure_defaults()
    return Pruner(bench, InactiveParameters(space), 1.0, 1)
