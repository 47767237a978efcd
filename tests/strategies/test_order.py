"""The seeded order of all settings, and the search that walks it."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.space import Parameter, Setting, Space, parse_expression
from autotune.space.space import Constraint
from autotune.strategies import Strategy, create
from autotune.strategies import candidates as order
from autotune.strategies.codec import Codec
from autotune.testing.landscapes import MANY, RULES, drive, fine, keys

HUGE = Space("huge", tuple(Parameter(f"p{i}", tuple(range(9))) for i in range(30)))


@settings(max_examples=40, deadline=None)
@given(size=st.integers(1, 3000), seed=st.integers(0, 2**64 - 1))
def test_the_permutation_meets_every_number_once(size: int, seed: int) -> None:
    walk = order.Permutation(size, seed)
    assert sorted(walk(i) for i in range(size)) == list(range(size))


def test_the_permutation_is_not_the_identity_and_depends_on_the_seed() -> None:
    walks = [[order.Permutation(10**30, seed)(i) for i in range(20)] for seed in (1, 2)]
    assert walks[0] != walks[1]
    assert sum(a < b for a, b in zip(walks[0], walks[0][1:], strict=False)) < 18


@pytest.mark.parametrize("listed", [0, 10**6])
def test_every_setting_comes_once_listed_or_walked(
    listed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(order, "_SHUFFLE_LIMIT", listed)
    found = [s.key for s in order.seeded_order(RULES, Codec(RULES), 3)]
    assert sorted(found) == sorted(s.key for s in RULES.enumerate())
    assert found != [s.key for s in RULES.enumerate()]


def test_where_valid_settings_are_rare_the_walk_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = tuple(Constraint(parse_expression(f"p{i} == 0")) for i in range(30))
    space = Space("rare", HUGE.parameters, rules[:29])
    monkeypatch.setattr(order, "_MISSES", 50)
    few = list(islice(order.seeded_order(space, Codec(space), 0), 3))
    assert len(few) == 3
    assert all(space.is_valid(s) for s in few)


def exhaustive(space: Space, how: str) -> Strategy:
    return create("exhaustive", space, seed=4, options={"order": how})


def test_grid_order_is_that_of_the_space() -> None:
    expected = [s.key for s in RULES.enumerate() if s != Setting()]
    assert keys(drive(exhaustive(RULES, "grid"), 100, fine)) == expected
    shuffled = keys(drive(exhaustive(RULES, "random"), 100, fine))
    assert shuffled != expected
    assert sorted(shuffled) == sorted(expected)


def test_a_huge_space_is_not_listed() -> None:
    told = drive(exhaustive(HUGE, "random"), 30, fine)
    assert len(set(keys(told))) == 30
    # Spread over the whole space: the first parameter varies as much as the last.
    assert len({o.setting.get("p0") for o in told}) > 5
    assert len({o.setting.get("p29") for o in told}) > 5


def test_random_search_is_uniform_over_the_choices() -> None:
    told = drive(create("random", MANY, seed=0), 400, fine)
    share = sum("flag" in o.setting for o in told) / 400
    assert 0.4 < share < 0.6


def test_random_search_finds_what_sampling_cannot() -> None:
    rules = tuple(Constraint(parse_expression(f"p{i} == 0")) for i in range(30))
    space = Space(
        "rare", tuple(Parameter(f"p{i}", (1, 2, 0), unset=False) for i in range(9)), rules[:9]
    )
    assert keys(drive(create("random", space, seed=0), 5, fine)) == [
        ",".join(f"p{i}=0" for i in range(9))
    ]
