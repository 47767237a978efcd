"""Which smaller settings a pruning may measure."""

from __future__ import annotations

import pytest

from autotune.space import Parameter, Setting, Space, parse_expression
from autotune.space.space import Constraint
from autotune.study.ablation import Elimination, groups

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
    assert Elimination(WHOLE, [SPACE]).without(("algorithm",)) == Setting({"low": 8, "high": 16})


def test_a_setting_that_breaks_a_rule_is_not_launched() -> None:
    left = Elimination(WHOLE, [SPACE])
    assert left.without(("high",)) is None
    assert left.without(("high", "low")) == Setting({"algorithm": 2, "segment": 4096})
    left.take_out({("high",): 0.9})
    assert left.setting == WHOLE


def test_the_rules_of_every_program_hold_and_what_one_needs_stays() -> None:
    left = Elimination(WHOLE, [OTHER, SPACE])
    assert left.without(("high",)) is None
    assert left.without(("algorithm",)) == WHOLE.without("algorithm")
    assert Elimination(WHOLE, [OTHER]).without(("high",)) == WHOLE.without("high")


def test_never_everything_the_worst_to_miss_stays() -> None:
    left = Elimination(Setting({"algorithm": 2, "high": 16}), [SPACE])
    assert left.without(("algorithm", "high")) is None
    assert left.without(("segment",)) is None
    left.take_out({("high",): 1.001, ("algorithm",): 0.99})
    assert left.setting == Setting({"high": 16})


@pytest.mark.parametrize(("count", "pieces", "sizes"), [(4, 1, [1] * 4), (9, 1, [3] * 3)])
def test_groups_of_many_and_singles_of_few(count: int, pieces: int, sizes: list[int]) -> None:
    names = tuple(f"p{n}" for n in range(count))
    found = groups(names, pieces, 4)
    assert [len(group) for group in found] == sizes
    assert tuple(name for group in found for name in group) == names
