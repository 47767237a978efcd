"""Expressions: agreement with Python on what Python knows, three values beyond that, errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from autotune.space import ExpressionError, Value, parse_expression
from autotune.space.expression import rename_names
from tests.case_table import case_table
from tests.refusals import refused

NUMBERS = {"a": 0, "b": 3, "c": 7, "d": -2}
WORDS = {"policy": "core", "other": "none"}


@dataclass(frozen=True)
class Known:
    """A scope in which a name is known if it is given, and set if it is in ``own``."""

    values: Mapping[str, Value]
    own: frozenset[str] = frozenset()

    def value(self, name: str) -> Value | None:
        return self.values.get(name)

    def is_set(self, name: str) -> bool:
        return name in self.own


numbers = st.sampled_from([*NUMBERS, "0", "1", "2", "2.5", "0.5", "10"])
texts = st.sampled_from([*WORDS, "'core'", '"none"', "'x'"])


def _arithmetic(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    joined = st.tuples(inner, st.sampled_from("+-*/%"), inner).map(" ".join)
    return joined | inner.map(lambda text: f"({text})") | inner.map(lambda text: f"-{text}")


def _logic(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    joined = st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(" ".join)
    return joined | inner.map(lambda text: f"({text})") | inner.map(lambda text: f"not {text}")


sums = st.recursive(numbers, _arithmetic, max_leaves=4)
signs = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
tests = st.one_of(
    st.tuples(sums, signs, sums).map(" ".join),
    st.tuples(sums, signs, sums, signs, sums).map(" ".join),
    st.tuples(texts, st.sampled_from(["==", "!="]), texts).map(" ".join),
    st.tuples(sums, st.sampled_from(["in", "not in"]), sums, sums).map(
        lambda p: f"{p[0]} {p[1]} ({p[2]}, {p[3]})"
    ),
    st.sampled_from([*NUMBERS, *WORDS]).map(lambda name: f"set({name})"),
    sums,
)
expressions = st.recursive(tests, _logic, max_leaves=6)
OWN = frozenset({"a", "c", "policy"})


def _in_python(text: str) -> bool:
    """The same text under Python's rules, with ``set(NAME)`` turned into a look-up."""
    for name in [*NUMBERS, *WORDS]:
        text = text.replace(f"set({name})", str(name in OWN))
    return bool(eval(text, {"__builtins__": {}}, {**NUMBERS, **WORDS}))


@settings(max_examples=120)
@given(expressions)
def test_python_agrees(text: str) -> None:
    try:
        expected = _in_python(text)
    except ZeroDivisionError:
        assume(False)
    scope = Known({**NUMBERS, **WORDS}, OWN)
    assert parse_expression(text).truth(scope) is expected


@settings(max_examples=80)
@given(expressions)
def test_the_written_form_reads_back(text: str) -> None:
    expr = parse_expression(text)
    assert parse_expression(str(expr)) == expr


@settings(max_examples=120)
@given(expressions, st.sets(st.sampled_from([*NUMBERS, *WORDS])), st.data())
def test_what_is_known_in_part_holds_for_every_completion(
    text: str, hidden: set[str], data: st.DataObject
) -> None:
    everything: dict[str, Value] = {**NUMBERS, **WORDS}
    part = {name: value for name, value in everything.items() if name not in hidden}
    expr = parse_expression(text)
    known = expr.truth(Known(part, OWN))
    for name in sorted(hidden):
        choices: list[Value] = [0, 1, 3, -2] if name in NUMBERS else ["core", "none", "x"]
        part[name] = data.draw(st.sampled_from(choices))
    completed = expr.truth(Known(part, OWN))
    if known is not None and completed is not None:
        assert completed is known


@case_table(
    ("text", "truth"),
    [
        ("missing > 1", None),
        ("missing > 1 or b == 3", True),
        ("missing > 1 and b == 4", False),
        ("not missing", None),
        ("b / a > 1", None),
        ("b % a == 0", None),
        ("policy == 3", False),
        ("policy != 3", True),
        ("policy < 3", None),
        ("policy + 1 == 2", None),
        ("b <= 4k", True),
        ("4k == 4096 and 1M == 1024 * 1024", True),
        ("1 < b < 5", True),
        ("1 < b < 2", False),
        ("policy in ('core', 'numa')", True),
        ("policy not in ('core', 'numa')", False),
        ("set(b)", False),
        ("set(policy) and not set(b)", True),
        ("true and not false", True),
        ("2 + 3 * 4 == 14 and (2 + 3) * 4 == 20 and 10 - 3 - 2 == 5", True),
    ],
)
def test_truth(text: str, truth: bool | None) -> None:
    scope = Known({**NUMBERS, **WORDS}, frozenset({"policy"}))
    assert parse_expression(text).truth(scope) is truth


@case_table(
    ("text", "column"),
    [
        ("", 1),
        ("a <", 4),
        ("a b", 3),
        ("(a", 3),
        ("a = 1", 3),
        ("a ** 2", 4),
        ("f(1)", 2),
        ("set(1)", 5),
        ("set a", 5),
        ("a.b", 2),
        ("a[0]", 2),
        ("'open", 1),
        ("a and", 6),
        ("1 in 2", 6),
        ("and", 1),
        ("lambda: 1", 7),
        ("__import__('os')", 11),
        ("a; b", 2),
        ("12abc", 1),
        ("1e999 > a", 1),
        ("a not b", 7),
        ("é > 1", 1),
    ],
)
def test_the_column_of_a_mistake_is_told(text: str, column: int) -> None:
    with pytest.raises(ExpressionError, match=f"column {column}:"):
        parse_expression(text)


@given(st.text(alphabet="ab1 .()<>=!+-*/%'\"andorti,k", max_size=25))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        expr = parse_expression(text)
    except ExpressionError:
        return
    expr.truth(Known({**NUMBERS, **WORDS}))
    assert parse_expression(str(expr)) == expr


@case_table(
    ("text", "code"),
    [
        ("(" * 150 + "1" + ")" * 150, "expression.syntax"),
        ("(" * 5000 + "1" + ")" * 5000, "expression.too_long"),
        ("not " * 5001 + "0", "expression.too_long"),
        ("1" + " + 1" * 5000, "expression.too_long"),
        ("1 == 1" + " and 1 == 1" * 500, "expression.too_long"),
    ],
)
def test_what_is_too_large_is_refused_without_a_crash(text: str, code: str) -> None:
    with refused(ExpressionError, code):
        parse_expression(text)


def test_as_large_as_allowed_is_evaluated() -> None:
    assert parse_expression("1" + " + 1" * 198 + " == 199").truth(Known({})) is True
    assert parse_expression("-" * 300 + "1 == 1").truth(Known({})) is True
    assert parse_expression("not " * 301 + "0").truth(Known({})) is True
    long = parse_expression("-" * 300 + "a")
    assert rename_names(long, {"a": "b"}).names == {"b"}


def test_names_and_renaming() -> None:
    expr = parse_expression("a + set(b) > c or d in (1, e)")
    assert expr.names == {"a", "b", "c", "d", "e"}
    other = rename_names(expr, {"a": "x", "b": "y"})
    assert other == parse_expression("x + set(y) > c or d in (1, e)")
