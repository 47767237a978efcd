"""Spaces: enumeration against brute force, canonical form, samples, violations, launches."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.errors import UsageError
from autotune.space import DEFAULT, Constraint, Parameter, Setting, Space, Value, parse_expression
from tests.case_table import case_table
from tests.refusals import refused

NAMES = ("a", "b", "c", "d")
LEVELS = (0, 1, 2, 5)


def _conditions(name: str) -> st.SearchStrategy[str | None]:
    others = [other for other in NAMES if other != name]
    return st.sampled_from(
        [
            None,
            None,
            f"{others[0]} > 1",
            f"set({others[1]})",
            f"not set({others[0]})",
            f"set({others[2]}) and {others[2]} != 5",
            f"{name} > {others[0]}",
            "ranks > 2",
        ]
    )


@st.composite
def _parameters(draw: st.DrawFn, name: str) -> Parameter:
    when = draw(_conditions(name))
    return Parameter(
        name,
        tuple(draw(st.lists(st.sampled_from(LEVELS), min_size=1, max_size=3, unique=True))),
        default=draw(st.sampled_from([None, 1, 2, 7])),
        unset=True if when else draw(st.sampled_from([True, True, False])),
        when=parse_expression(when) if when else None,
    )


RULES = ("a <= b", "a + c < 5", "not (set(a) and set(d))", "b != d or ranks == 3", "c % 2 == 0")


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    names = NAMES[: draw(st.integers(1, 4))]
    return Space(
        "drawn",
        tuple(draw(_parameters(name)) for name in names),
        tuple(
            Constraint(parse_expression(rule))
            for rule in draw(st.lists(st.sampled_from(RULES), max_size=2, unique=True))
        ),
        facts=draw(st.sampled_from([{}, {"ranks": 2}, {"ranks": 3}])),
    )


def _raw_settings(space: Space) -> list[Setting]:
    """Every combination of levels and, where allowed, nothing."""
    choices = [(*([None] if p.unset else []), *p.levels) for p in space]
    return [
        Setting({n: v for n, v in zip(space.names, values, strict=True) if v is not None})
        for values in itertools.product(*choices)
    ]


@settings(max_examples=100, deadline=None)
@given(spaces())
def test_enumerate_is_brute_force(space: Space) -> None:
    expected = {space.canonical(raw) for raw in _raw_settings(space) if space.is_valid(raw)}
    found = list(space.enumerate())
    assert len(found) == len(set(found))
    assert set(found) == expected
    assert len(found) <= space.combinations()
    if all(parameter.unset for parameter in space):
        assert found[0] == DEFAULT


@settings(max_examples=60, deadline=None)
@given(spaces())
def test_canonical_is_idempotent_and_keeps_validity(space: Space) -> None:
    for raw in _raw_settings(space)[:80]:
        once = space.canonical(raw)
        assert space.canonical(once) == once
        assert set(once.items()) <= set(raw.items())
        assert space.is_valid(once) == space.is_valid(raw)


@settings(max_examples=50, deadline=None)
@given(spaces(), st.integers(0, 2**32 - 1))
def test_samples_are_valid_canonical_and_repeatable(space: Space, seed: int) -> None:
    valid = set(space.enumerate())
    rng = np.random.default_rng(seed)
    if not valid:
        with refused(UsageError, "space.no_setting"):
            space.sample(rng)
        return
    found = [space.sample(rng) for _ in range(5)]
    assert set(found) <= valid
    again = np.random.default_rng(seed)
    assert found == [space.sample(again) for _ in range(5)]


def test_samples_reach_everything_evenly() -> None:
    space = Space("s", (Parameter("a", (1, 2, 3), default=2), Parameter("b", ("x", "y", "z"))))
    rng = np.random.default_rng(1)
    drawn = [space.sample(rng) for _ in range(2400)]
    assert set(drawn) == set(space.enumerate())
    for level in (None, 1, 3):  # 2 is the default: the same as None
        assert 700 < sum(setting.get("a") == level for setting in drawn) < 900


def test_a_rare_valid_setting_is_found_by_repair() -> None:
    parameters = tuple(Parameter(f"p{i}", tuple(range(50)), unset=False) for i in range(6))
    rules = tuple(Constraint(parse_expression(f"p{i} == {i}")) for i in range(6))
    setting = Space("rare", parameters, rules).sample(np.random.default_rng(0))
    assert setting.to_json() == {f"p{i}": i for i in range(6)}


def test_enumeration_is_lazy_and_a_dead_condition_costs_nothing() -> None:
    parent = Parameter("parent", (1,), default=0)
    children = tuple(
        Parameter(f"c{i:02}", tuple(range(9)), when=parse_expression("parent == 1"))
        for i in range(40)
    )
    space = Space("big", (*children, parent))
    first = list(itertools.islice(space.enumerate(), 3))
    assert [setting.key for setting in first] == ["default", "parent=1", "c39=0,parent=1"]
    assert space.combinations() == 2 * 10**40


@pytest.fixture
def space() -> Space:
    return Space(
        "demo",
        (
            Parameter("alg", (1, 2, 3), default=0, enum={0: "ignore", 1: "one", 2: "two", 3: "x"},
                      implies={"rules": 1}),
            Parameter("seg", (1024, 4096), when=parse_expression("alg == 2"),
                      implies={"rules": 1, "alg": 9}),
            Parameter("eager", (512, 4096, 8192), default=4096),
            Parameter("bind_to", ("none", "core"), target="placement"),
            Parameter("flag", (1,), default=0, implies={"map_by": "node"}),
        ),
        (Constraint(parse_expression("bind_to != 'core' or ranks <= cores"), "too many ranks"),),
        absent={"gone": "it was removed"},
        facts={"ranks": 4, "cores": 2},
        aliases={"btl_old": "eager"},
    )  # fmt: skip


def test_canonical(space: Space) -> None:
    def canonical(text: str) -> str:
        return space.canonical(Setting.parse(text)).key

    assert canonical("default") == "default"
    assert canonical("eager=4096") == "default"
    assert canonical("eager=4k,alg=two") == "alg=2"
    assert canonical("alg=1,seg=1024") == "alg=1"
    assert canonical("alg=2,seg=1024") == "alg=2,seg=1024"
    assert canonical("alg=ignore,seg=1024") == "default"
    assert canonical("stranger=1") == "stranger=1"


@case_table(
    ("text", "told"),
    [
        ("eagre=512", "eager"),
        ("gone=1", "gone"),
        ("btl_old=512", "eager"),
        ("eager=513", "(512, 4096, 8192)"),
        ("bind_to=core", "ranks <= cores"),
        ("bind_to=5", "bind_to=5"),
        ("alg=nine", "(1, 2, 3)"),
    ],
)
def test_violations_are_told(space: Space, text: str, told: str) -> None:
    found = space.violations(Setting.parse(text))
    assert len(found) == 1
    assert told in found[0]
    assert not space.is_valid(Setting.parse(text))


@case_table(
    ("text", "valid"),
    [
        ("eager=513", True),
        ("eager=much", False),
        ("bind_to=numa", True),
        ("bind_to=3", False),
        ("alg=0", True),
        ("alg=17", False),
        ("alg=x", True),
        ("bind_to=core", False),
    ],
)
def test_values_off_the_grid_are_allowed_on_request(space: Space, text: str, valid: bool) -> None:
    assert (not space.violations(Setting.parse(text), grid=False)) is valid


def test_a_value_equal_to_the_default_is_valid_though_off_the_grid(space: Space) -> None:
    assert space.is_valid(Setting.parse("alg=0"))


def test_launched(space: Space) -> None:
    assert space.launched(DEFAULT) == {}
    assert space.launched(Setting.parse("alg=two,eager=8k,bind_to=none")) == {
        "mca": {"alg": "2", "eager": "8192", "rules": "1"},
        "placement": {"bind_to": "none"},
    }
    # What the setting says itself is stronger than what another value implies.
    assert space.launched(Setting.parse("alg=2,seg=1024"))["mca"]["alg"] == "2"
    assert space.launched(Setting.parse("flag=1"))["placement"] == {"map_by": "node"}
    with refused(UsageError, "parameter.unknown"):
        space.launched(Setting.parse("nothing=1"))


def test_the_library_default_is_always_valid() -> None:
    rule = Constraint(parse_expression("a > 100"))
    space = Space("s", (Parameter("a", (1, 200), default=5),), (rule,))
    assert space.is_valid(DEFAULT)
    assert [setting.key for setting in space.enumerate()] == ["default", "a=200"]


def test_a_parameter_wins_over_the_fact_of_its_name() -> None:
    rule = Constraint(parse_expression("b == 0 or ranks > 4"))
    parameters = (Parameter("ranks", (2, 8), target="resource"), Parameter("b", (0, 1)))
    space = Space("s", parameters, (rule,), facts={"ranks": 6})
    assert space.is_valid({"b": 1})
    assert space.is_valid({"b": 1, "ranks": 8})
    assert not space.is_valid({"b": 1, "ranks": 2})


def test_a_forced_parameter_must_be_given() -> None:
    space = Space("s", (Parameter("n", (1, 2), unset=False, default=1), Parameter("a", (1,))))
    assert [words.split()[0] for words in space.violations(DEFAULT)] == ["n"]
    assert [setting.key for setting in space.enumerate()] == ["n=1", "a=1,n=1", "n=2", "a=1,n=2"]


def test_the_hash_covers_what_matters(space: Space) -> None:
    first = space.parameters[0]

    def changed(**changes: object) -> str:
        parameters = (replace(first, **changes), *space.parameters[1:])  # type: ignore[arg-type]
        return replace(space, parameters=parameters).hash

    assert len(space.hash) == 64
    same = {
        changed(help="other words"),
        replace(space, name="other", absent={}, aliases={}).hash,
        replace(space, parameters=space.parameters[::-1]).hash,
        replace(space, facts={**space.facts, "nodes": 9}).hash,
    }
    assert same == {space.hash}
    different = [
        changed(name="gla"),
        changed(levels=(1, 2)),
        changed(target="env"),
        changed(default=None),
        changed(unset=False),
        changed(when=parse_expression("eager > 512")),
        changed(implies={"rules": 2}),
        replace(space, constraints=()).hash,
        replace(space, facts={"ranks": 5, "cores": 2}).hash,
    ]
    assert len({space.hash, *different}) == len(different) + 1


def test_what_cannot_be_a_space_is_refused() -> None:
    one = Parameter("a", (1,))
    with refused(UsageError, "space.parameter_twice"):
        Space("s", (one, one))
    with refused(UsageError, "space.invalid"):
        Space("s", (Parameter("a", (1, 1)),))
    with refused(UsageError, "space.invalid"):
        Space("s", (Parameter("a", (1,), unset=False, when=parse_expression("b > 1")),))


def test_choices_put_unset_first_and_the_default_once() -> None:
    def choices(**more: object) -> tuple[Value | None, ...]:
        return Parameter("a", (1, 2, 4), **more).choices  # type: ignore[arg-type]

    assert choices() == (None, 1, 2, 4)
    assert choices(default=2) == (None, 1, 4)
    assert choices(default=3) == (None, 1, 2, 4)
    assert choices(default=2, unset=False) == (1, 2, 4)
