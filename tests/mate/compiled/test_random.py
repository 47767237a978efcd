"""Random programs give the same bits compiled and in Python; any other is refused in words."""

from __future__ import annotations

import importlib
import itertools
import re
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runner.runtimes import mate
from runner.runtimes.mate.compiled.index import with_index
from runner.runtimes.mate.compiled.names import resolve
from runner.runtimes.mate.compiled.source import RegionSource, read
from runner.runtimes.mate.compiled.uses import Uses, check_calls
from tests.mate.compiled.running import run_both, state

pytestmark = pytest.mark.usefixtures("cache")

_REACH = 2
_CELLS = 11
"""Cells of an array; a program works on those that are ``_REACH`` away from its ends."""
_numbers = itertools.count()
_offsets = st.integers(-_REACH, _REACH)


def _at(array: str, offset: int) -> str:
    return f"{array}[k {'-' if offset < 0 else '+'} {abs(offset)}]"


def _leaves(kind: str) -> st.SearchStrategy[str]:
    elements = st.builds(_at, st.sampled_from([f"{kind}0", f"{kind}1"]), _offsets)
    planes = st.builds(lambda c: f"part.{kind}_plane[k, {c}]", st.integers(0, 2))
    listed = st.builds(lambda c: f"part.{kind}_few[(i + {c}) % 3]", st.integers(0, 2))
    number = st.sampled_from([f"part.{kind}_number", f"{kind}_local", "i", "k"])
    if kind == "f":
        constant = st.floats(-2, 2, allow_subnormal=False).map(repr)
    else:
        constant = st.integers(-9, 9).map(str)
    return st.one_of(elements, planes, listed, number, constant)


def _grown(kind: str) -> Any:
    def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        two = st.builds(
            lambda a, b, sign: f"({a} {sign} {b})", inner, inner, st.sampled_from(["+", "-", "*"])
        )
        rest = st.builds(
            lambda a, b, sign: f"({a} {sign} {b})",
            inner,
            st.sampled_from(["3", "-4", "7"]),
            st.sampled_from(["//", "%"]),
        )
        chosen = st.builds(
            lambda a, b, c, sign: f"({a} if {b} {sign} {c} else {c})",
            inner,
            inner,
            inner,
            st.sampled_from(["<", "==", ">="]),
        )
        called = st.builds(
            lambda name, a, b: f"{name}({a}, {b})",
            st.sampled_from(["min", "max", "helper"]),
            inner,
            inner,
        )
        return st.one_of(two, rest, chosen, called, inner.map(lambda a: f"abs({a})"))

    return st.recursive(_leaves(kind), grow, max_leaves=6).map(
        lambda text: f"float({text})" if kind == "f" else f"int({text})"
    )


def _statement(kind: str) -> st.SearchStrategy[str]:
    value = _grown(kind)
    return st.one_of(
        st.builds(lambda o, v: f"{_at(f'{kind}1', o)} = {v}", _offsets, value),
        st.builds(lambda o, v: f"{_at(f'{kind}0', o)} += {v}", _offsets, value),
        st.builds(lambda v: f"{kind}_local = {v}", value),
        st.builds(lambda c, v: f"part.{kind}_plane[k, {c}] = {v}", st.integers(0, 2), value),
        st.builds(lambda v: f"if {kind}0[k] > {kind}1[k]: {kind}1[k] = {v}", value),
    )


PROGRAM = """
def helper(a, b):
    return a - b if a > b else b - a

@graph.region(compiled=True)
def work(part, i):
    f0, f1 = part.f[i % 2], part.f[(i + 1) % 2]
    w0, w1 = part.w[i % 2], part.w[(i + 1) % 2]
    f_local, w_local = 0.5, 2
    for k in range(part.lo, part.hi):
"""


_SETTINGS: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.function_scoped_fixture],
}
_LINES = st.lists(st.one_of(_statement("f"), _statement("w")), min_size=1, max_size=5)


def check(program: Any, lines: list[str], seed: int) -> None:
    """Run a program of these lines compiled and in Python."""
    made = program(PROGRAM + "".join(f"        {line}\n" for line in lines))
    random = np.random.default_rng(seed)
    part = state(
        f=list(random.normal(size=(2, _CELLS))),
        w=list(random.integers(-50, 50, (2, _CELLS))),
        f_plane=random.normal(size=(3, _CELLS)).T,
        w_plane=random.integers(-50, 50, (_CELLS, 6))[:, ::2],
        f_few=[0.25, -1.5, 2.0],
        w_few=(3, -7, 1),
        f_number=0.75,
        w_number=-3,
        lo=_REACH,
        hi=_CELLS - _REACH,
    )
    run_both(made.graph, part, 2)


@settings(max_examples=4, **_SETTINGS)
@given(lines=_LINES, seed=st.integers(0, 1000))
def test_random_programs(program: Any, lines: list[str], seed: int) -> None:
    check(program, lines, seed)


@pytest.mark.slow
@settings(max_examples=300, **_SETTINGS)
@given(lines=_LINES, seed=st.integers(0, 1000))
def test_many_random_programs(program: Any, lines: list[str], seed: int) -> None:
    check(program, lines, seed)


def _functions(module: Any) -> Iterator[FunctionType]:
    for value in list(vars(module).values()):
        members = vars(value).values() if isinstance(value, type) else [value]
        yield from (m for m in list(members) if isinstance(m, FunctionType))


@pytest.mark.parametrize("name", ["argparse", "ast", "fractions", "json.decoder", "numpy.ma.core"])
def test_any_function_is_taken_or_refused_in_words(name: str) -> None:
    refused = []
    for function in _functions(importlib.import_module(name)):
        known: dict[Any, RegionSource] = {}
        try:
            source = read(function, "any")
            resolve(source, known)
            check_calls(source)
            Uses([source])
            with_index(source, lambda index: index, dict.fromkeys(known.values(), print))
        except mate.GraphError as error:
            refused.append(str(error))
    assert len(refused) > 5
    said = re.compile(r"\S+:\d+: function \S+:? \S|function any has no source")
    assert [text for text in refused if not said.match(text) or len(text) > 400] == []
