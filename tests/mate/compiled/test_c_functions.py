"""C functions of the state: the same call from compiled regions and from Python."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from runner.runtimes import mate
from runner.runtimes.core.c_function import CFunction
from tests.mate.compiled.running import HEAD, run, state
from tests.refusals import refusal, refused
from tests.snapshot_ids import word_id

pytestmark = pytest.mark.usefixtures("cache")

LIBC, LIBM = ctypes.CDLL(None), ctypes.CDLL("libm.so.6")
HYPOT = CFunction(LIBM.hypot, "float64(float64, float64)")


def test_numbers_and_arrays_go_to_c(program: Any) -> None:
    """A float32 and whole numbers are widened or cut as the signature says."""
    made = program("""
@graph.region(compiled=True)
def work(part, i):
    part.a[0] = part.hypot(part.small, 4)
    part.a[1] = part.ldexp(0.75, len(part.a))
    part.fill(part.a[2:], part.a, 16)
    near(part, part.hypot, part.a)

def near(part, function, a):
    a[4] = function(5, 12.0)
""")
    part = state(
        a=np.zeros(5),
        small=np.float32(3),
        hypot=HYPOT,
        ldexp=CFunction(LIBM.ldexp, "float64(float64, int32)"),
        fill=CFunction(LIBC.memcpy, "void(float64*, float64*, int64)"),
    )
    run(made.graph, part)
    wanted = [5.0, math.ldexp(0.75, 5), 5.0, math.ldexp(0.75, 5), 13.0]
    assert part.a.tolist() == wanted
    part.a[:] = 0
    made.graph.regions[0].body(part, 0)
    assert part.a.tolist() == wanted


def test_another_function_is_taken_at_the_next_entry(program: Any) -> None:
    made = program("""
@graph.region(compiled=True)
def work(part, i):
    part.a[0] = part.f(part.a[0], 2.0)
""")
    part = state(a=np.full(1, 3.0), f=CFunction(LIBM.pow, "float64(float64, float64)"))
    first = run(made.graph, part)
    part.f = HYPOT
    assert run(made.graph, part) is first
    assert part.a[0] == math.hypot(9.0, 2.0)
    part.f = CFunction(LIBM.ldexp, "float64(float64, int32)")
    with refused(mate.GraphError, "mate.not_compilable"):
        run(made.graph, part)


REFUSED = [
    "part.a[0] = part.f(1.0)",
    "part.a[0] = part.f(1.0, y=2.0)",
    "part.a[0] = part.f(part.a, 1.0)",
    "part.move(part.a, part.a, 2.5)",
    "part.move(part.n, part.a, 8)",
    "part.move(1.0, part.a, 8)",
    "part.pointer(1.0)",
]


@pytest.mark.parametrize("line", REFUSED, ids=word_id)
def test_wrong_calls_are_refused_with_the_line(
    program: Any, line: str, snapshot: SnapshotAssertion
) -> None:
    made = program(f"@graph.region(compiled=True)\ndef work(part, i):\n    {line}\n")
    part = state(
        a=np.zeros(3),
        n=np.zeros(3, np.int32),
        f=HYPOT,
        move=CFunction(LIBC.memcpy, "void(float64*, float64*, int64)"),
        pointer=LIBM.sin,
    )
    text = refusal(mate.MateError, run, made.graph, part)
    place = f"{made.__file__}:{HEAD.count(chr(10)) + 3}: "
    assert place in text
    assert text.replace(place, "PLACE: ") == snapshot


def test_wrong_signatures_are_refused(snapshot: SnapshotAssertion) -> None:
    wrong = [
        (LIBM.sin, "float64(double)"),
        (LIBM.sin, "float64*(float64)"),
        (LIBM.sin, "float64"),
        (0, "void()"),
    ]
    assert [refusal(ValueError, CFunction, *one) for one in wrong] == snapshot


def test_python_checks_arrays_and_their_number() -> None:
    copy = CFunction(LIBC.memcpy, "void(float64*, float64*, int64)")
    a, b = np.arange(3.0), np.zeros(3)
    copy(b, a[1:], 16)
    assert b.tolist() == [1, 2, 0]
    with pytest.raises(TypeError, match=r"\b2\b.*\bfloat32\b"):
        copy(b, a.astype(np.float32), 8)
    with pytest.raises(TypeError, match=r"\b1\b.*\blist\b"):
        copy([1.0], a, 8)
    with pytest.raises(TypeError, match=r"\b2\b"):
        copy(b, a)
    assert CFunction(HYPOT.address, HYPOT.signature)(3, 4) == 5
