"""Settings: text and back, equality, and what is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.errors import UsageError
from autotune.space import DEFAULT, Setting
from autotune.wording import key_parts
from tests.case_table import case_table
from tests.refusals import refused

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.\-]{0,8}", fullmatch=True)
values = st.one_of(
    st.integers(),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=12),
    st.sampled_from(["64k", "true", "1e5", "default", "^cma", "a,b=c", '"', "\\", " x ", "", "-1"]),
)
given_values = st.dictionaries(names, values, max_size=5)


@given(given_values)
def test_the_key_reads_back(values: dict[str, object]) -> None:
    setting = Setting(values)
    assert Setting.parse(setting.key) == setting
    assert Setting.parse(setting.key).key == setting.key


@given(given_values)
def test_a_key_is_cut_between_parameters_only(values: dict[str, object]) -> None:
    setting = Setting(values)
    parts = key_parts(setting.key)
    assert ",".join(parts) == setting.key
    assert len(parts) == max(len(setting), 1)


@given(given_values)
def test_json_reads_back(values: dict[str, object]) -> None:
    setting = Setting(values)
    assert Setting(json.loads(json.dumps(setting.to_json()))) == setting


@given(given_values, st.randoms())
def test_order_does_not_matter(values: dict[str, object], random: object) -> None:
    turned = dict(reversed(list(values.items())))
    assert Setting(values) == Setting(turned)
    assert hash(Setting(values)) == hash(Setting(turned))


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        setting = Setting.parse(text)
    except UsageError as error:
        told = str(error)
        setting = Setting()
    else:
        told = ""
    assert Setting.parse(setting.key) == setting
    assert not told or "expected" in told or "twice" in told


@case_table(
    ("text", "expected"),
    [
        ("default", {}),
        (" default ", {}),
        ("a=1", {"a": 1}),
        (" b = x , a=1 ", {"a": 1, "b": "x"}),
        ("a=64k", {"a": 65536}),
        ("a=2M", {"a": 2 * 1024 * 1024}),
        ("a=true,b=False", {"a": 1, "b": 0}),
        ("a=1.5", {"a": 1.5}),
        ("a=1.0", {"a": 1}),
        ("a=^cma", {"a": "^cma"}),
        ('a="self,sm",b=2', {"a": "self,sm", "b": 2}),
        ('a="64k"', {"a": "64k"}),
        ("a=slot:PE=2", {"a": "slot:PE=2"}),
        ("a==2", None),
        ('a="slot:PE=2"', {"a": "slot:PE=2"}),
        ("a=ppr:2:node", {"a": "ppr:2:node"}),
        ("--grid=5", None),
        ("grid-size=5", {"grid-size": 5}),
    ],
)
def test_what_a_person_writes(text: str, expected: dict[str, object] | None) -> None:
    if expected is None:
        with pytest.raises(UsageError):
            Setting.parse(text)
    else:
        assert Setting.parse(text).to_json() == expected


@case_table(
    ("text", "column"),
    [("a", 1), ("a=1,b", 5), ("a=1,,b=2", 5), ("=1", 1), ("a=", 1), ("a=1,", 5), ("", 1)],
)
def test_the_place_of_a_mistake_is_told(text: str, column: int) -> None:
    with pytest.raises(UsageError, match=f"column {column}:"):
        Setting.parse(text)


def test_a_name_given_twice_is_refused() -> None:
    with refused(UsageError, "setting.conflict"):
        Setting.parse("a=1,a=2")


@case_table("value", [None, float("nan"), float("inf"), [1], {"x": 1}])
def test_what_is_no_value_is_refused(value: object) -> None:
    with refused(UsageError, "parameter.value"):
        Setting({"a": value})


def test_it_is_a_mapping_that_cannot_change() -> None:
    setting = Setting({"b": "x", "a": 1})
    assert list(setting) == ["a", "b"]
    assert dict(setting) == {"a": 1, "b": "x"}
    assert setting.with_values({"a": 2}).key == "a=2,b=x"
    assert setting.without("b", "c").key == "a=1"
    assert setting.key == "a=1,b=x"
    assert len({setting, Setting({"a": True, "b": "x"}), DEFAULT}) == 2
    assert DEFAULT.key == "default"
    assert not DEFAULT
