"""What cannot be compiled is refused with the user's line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from runner.runtimes import mate
from tests.case_table import case_table
from tests.mate.compiled.running import HEAD, Recorder, in_rank, run, state

pytestmark = pytest.mark.usefixtures("cache")

REFUSED = {
    "assert part.n": "assert cannot be compiled",
    "raise ValueError": "raise cannot be compiled: write a number into an array",
    "try:\n        pass\n    finally:\n        pass": "try cannot be compiled",
    "with part.lock:\n        pass": "with cannot be compiled, except with ctx.buffering",
    "with part.ctx.buffering() as x:\n        pass": "with cannot be compiled, except with",
    "with part.ctx.buffering():\n        return": None,
    "for k in range(3):\n        with part.ctx.buffering():\n            break": None,
    "with part.n.buffering():\n        pass": "buffering is a method of the context, not of int64",
    "part.ctx.buffering()": "buffering is used by itself: write with ctx.buffering",
    "x = [k for k in range(3)]": "a comprehension cannot be compiled",
    "x = lambda: 3": "lambda cannot be compiled",
    "x = [1, 2]": "a list cannot be compiled",
    "x = {1: 2}": "a dictionary cannot be compiled",
    "x = {1, 2}": "a set cannot be compiled",
    "x = f'{i}'": "text cannot be compiled",
    "x = 'text'": "str 'text' cannot be compiled",
    "yield 3": "yield cannot be compiled",
    "print(part.n)": "print cannot be compiled: remove it, or use --core python",
    "global TAG": "global cannot be compiled",
    "import os": "import cannot be compiled",
    "del part.n": "del cannot be compiled",
    "def inner(): pass": "a function in a function cannot be compiled: put it beside",
    "return 3": "a region returns nothing",
    "part.n = 3": r"part.n is assigned: .*array of one element \(part.n\[0\] = ...\)",
    "part.n += 3": "part.n is assigned",
    "part.a[:] = np.zeros(4)": "np.zeros makes a new array",
    "part.a[:] = part.a.copy()": r".copy\(\) makes a new array",
    "part.a[:] = part.a + part.a": "this makes a new array.*write a loop",
    "part.a[1:] = part.a[:-1]": "this makes a new array.*write a loop",
    "part.a[0] = np.max(part.a)": r"max\(array\(float64, 1-D\)\) cannot be compiled: write a loop",
    "part.a[0] = np.dot(part.a, part.a)": "np.dot calls a library",
    "part.a[0] = part.a @ part.a": "the operator @ cannot be compiled",
    "max(*part.n)": r"\* cannot be compiled",
    "part.a[0] = FIELD[0]": "FIELD is a ndarray from outside .*put it into the state",
    "part.a[0] = BOX.value": "BOX is a object from outside .*put what the function needs",
    "part.a[0] = missing": "missing is not defined",
    "part.a[0] = endless(3)": None,
    "part.a[0] = cached(3)": "cached is a _lru_cache_wrapper .*expected a plain function",
    "for k in range(0, 9, i):\n        pass": "range with a step that is no constant",
    "other = part": "the state is used by itself here: use part.NAME",
    "part.method(3)": "a method: .*write a function beside",
    "part.a[0] = part.text": "Part.text is a str, which compiled code cannot use: poss",
    "part.a[0] = part.nothing": "Part has no attribute nothing: set it before",
    "part.a[0] = part.mixed[0]": r"mixed holds arrays of several types \(float64 with 1 .*int64 wi",
    "part.a[0] = part.odd[0]": "odd is a list of int, str, which compiled code cannot use",
    "part.a[0] = part.half[0]": "half is a ndarray of float16, which compiled code cannot use",
    "part.a[0] = part.swapped[0]": "swapped is a ndarray of >f8",
    "part.few[0] = 3": "this cannot be changed: it is a read-only array or a list of numbers",
    "part.fixed[0] = 3": "this cannot be changed",
    "part.a[0] = part.a[1.5]": "Unsupported array index type float64",
    "part.a[0] = part.a[1, 1]": r"cannot index array\(float64, 1-D\) with 2 indices",
    "part.a[0] = part.a.wrong": r"array\(float64, 1-D\) has no wrong in compiled code",
    "part.a[0] = part.n + None": r"int64 \+ none cannot be compiled",
    "if i:\n        x = 1\n    else:\n        x = part.a\n    part.a[0] = x": None,
    "r = part.ctx.isend(part.a, 1)": "isend gives nothing in compiled code",
    "part.ctx.barrier()": "ctx.barrier cannot be used in compiled code; possible are isend, irecv",
    "ctx = part.ctx\n    part.a[0] = ctx.config": None,
    "part.ctx.isend(part.a[::2], 1)": "isend takes an array without gaps",
    "part.ctx.isend(part.n, 1)": "isend takes an array, not int64",
    "part.ctx.isend(part.a, 0.5)": "isend takes a rank as a whole number, not float64",
    "part.ctx.irecv(part.fixed, 1)": "irecv takes an array that can be written",
}
EARLY = "region work: this would leave the block of buffering early: end the block before it"
ELSEWHERE = {
    "with part.ctx.buffering():\n        return": (1, EARLY),
    "for k in range(3):\n        with part.ctx.buffering():\n            break": (2, EARLY),
    "part.a[0] = endless(3)": (-3, "function endless: endless calls itself"),
    "if i:\n        x = 1\n    else:\n        x = part.a\n    part.a[0] = x": (
        4,
        r"region work: x is int in one place and array\(float64, 1-D\) in another",
    ),
    "ctx = part.ctx\n    part.a[0] = ctx.config": (1, "region work: ctx.config cannot be used"),
}
SETTING = """
import functools
FIELD = np.zeros(3)
BOX = object()
@functools.cache
def cached(n): return n
def endless(n):
    return endless(n)
@graph.region(compiled=True)
def work(part, i):
    """


@case_table("body", REFUSED)
def test_refused_with_the_users_line(program: Any, body: str) -> None:
    made = program(SETTING + body + "\n")
    line = (HEAD + SETTING).count("\n") + 1
    offset, words = ELSEWHERE.get(body, (0, f"region work: .*{REFUSED[body]}"))
    fixed = np.zeros(3)
    fixed.flags.writeable = False

    def check(ctx: mate.Context) -> None:
        part = state(
            **{"ctx": ctx, "n": 3, "a": np.zeros(4), "few": [1, 2], "text": "text"},
            **{"mixed": [np.zeros(3), np.zeros(3, int)], "odd": [1, "a"], "fixed": fixed},
            **{"half": np.zeros(3, np.float16), "swapped": np.zeros(3, ">f8")},
            method=check.__get__(3),
        )
        with pytest.raises(mate.MateError) as caught:
            run(made.graph, part, messages=Recorder())
        assert "\n" not in str(caught.value)
        caught.match(rf"^{made.__file__}:{line + offset}: {words}")

    in_rank(check)
