"""Levels as people write them."""

from __future__ import annotations

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from autotune.errors import UsageError
from autotune.space.parameter import parse_levels
from tests.case_table import case_table
from tests.refusals import refused


@case_table(
    ("spec", "levels"),
    [
        ([0, "4k", "64K"], (0, 4096, 65536)),
        ([True, False], (1, 0)),
        ([1, 1.0, True, 2], (1, 2)),
        ("bool", (0, 1)),
        ("2:5", (2, 3, 4, 5)),
        ("2:9:+3", (2, 5, 8)),
        ("512:4k:*2", (512, 1024, 2048, 4096)),
        ("1:10:*3", (1, 3, 9)),
        ("-2:1", (-2, -1, 0, 1)),
        ([0, "1k:4k:*2"], (0, 1024, 2048, 4096)),
        (["slot", "node"], ("slot", "node")),
        (["ppr:2:node", "slot:PE=2"], ("ppr:2:node", "slot:PE=2")),
        ([0.5, 2], (0.5, 2)),
    ],
)
def test_what_is_read(spec: object, levels: tuple[object, ...]) -> None:
    assert parse_levels(spec) == levels


@case_table(
    ("spec", "code", "named"),
    [
        ("5:2", "levels.range", "'5:2'"),
        ("0:8:*2", "levels.invalid", "0"),
        ("1:8:*1", "levels.invalid", "*2"),
        ("1:8:+0", "levels.invalid", "+1"),
        ("1:8:2", "levels.syntax", "'1:8:2'"),
        ("fast", "levels.syntax", "'fast'"),
        ("0:1M", "levels.range", "10000"),
        ([], "levels.syntax", "[]"),
        (5, "levels.syntax", "5"),
        ({"a": 1}, "levels.syntax", "{'a': 1}"),
        ([1, "slow"], "levels.invalid", "[1, 'slow']"),
        ([[1]], "parameter.value", "[1]"),
        (["9:1"], "levels.range", "'9:1'"),
    ],
)
def test_what_is_refused(spec: object, code: str, named: str) -> None:
    with refused(UsageError, code) as told:
        parse_levels(spec)
    assert named in str(told.value)


@given(st.integers(-50, 50), st.integers(0, 200), st.integers(1, 20))
def test_an_additive_range_is_pythons_own(low: int, length: int, step: int) -> None:
    assert parse_levels(f"{low}:{low + length}:+{step}") == tuple(
        range(low, low + length + 1, step)
    )


@given(st.integers(1, 1000), st.integers(0, 10**6), st.integers(2, 9))
def test_a_geometric_range_multiplies_up_to_the_end(low: int, more: int, factor: int) -> None:
    levels = parse_levels(f"{low}:{low + more}:*{factor}")
    assert levels[0] == low
    assert levels == tuple(low * factor**power for power in range(len(levels)))
    assert levels[-1] <= low + more < levels[-1] * factor  # type: ignore[operator]


@given(st.lists(st.one_of(st.integers(), st.booleans()), min_size=1))
def test_a_list_keeps_its_order_and_each_level_once(spec: list[int]) -> None:
    assert parse_levels(spec) == tuple(dict.fromkeys(int(item) for item in spec))


@given(st.text(max_size=20))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert parse_levels(text)
