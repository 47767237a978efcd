"""What the names of a compiled function may mean."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runner.runtimes import mate
from runner.runtimes.mate.compiled import compiled_graph
from tests.case_table import case_table
from tests.mate.compiled.running import HEAD, no_messages, run, run_both, state
from tests.refusals import refused

pytestmark = pytest.mark.usefixtures("cache")


def test_constants_functions_and_modules(
    program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shared_numbers.py").write_text(
        "import math\nSCALE = 3\n\ndef scaled(x, by=SCALE):\n    return math.sqrt(x) * by\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    made = program("""
from math import floor
from numpy import exp
import shared_numbers
from shared_numbers import scaled

WHOLE, REAL, COMPLEX, TRUE, PAIR = 3, 0.5, 1 + 2j, True, (7, (1, 2.5))
SINGLE, SMALL = np.float32(0.1), np.int8(3)

def mean(a, b):
    return REAL * (a + b)

def of_mean(a, b: float = 2.0) -> float:
    \"\"\"A helper that calls a helper, with the types of its names.\"\"\"
    kept: float = mean(a, b)
    unused: int
    return kept

@graph.region(compiled=True)
def work(part, i):
    part.a[0] = WHOLE + REAL + COMPLEX.imag + TRUE + PAIR[1][1] + PAIR[0]
    part.a[1] = floor(part.a[0]) + math.pi + np.pi + exp(1.0) + np.sqrt(2.0)
    part.a[2] = scaled(4.0) + shared_numbers.scaled(9.0, 2) + shared_numbers.SCALE
    part.a[3] = of_mean(1.0) + of_mean(b=3.0, a=2.0)
    part.f[0] = SINGLE * part.f[1] + SMALL
""")
    run_both(made.graph, state(a=np.zeros(4), f=np.array([0, 0.3], np.float32)))


def test_names_of_an_enclosing_function(program: Any) -> None:
    made = program("""
def make(weight, function):
    graph = mate.Graph("inner")

    @graph.region(compiled=True)
    def work(part, i):
        part.a[0] = function(weight)

    return graph

def half(x):
    return x / 2

def twice(x):
    return x * 2
""")
    for weight, function, wanted in ((3.0, made.half, 1.5), (5.0, made.twice, 10.0)):
        part = state(a=np.zeros(1))
        run(made.make(weight, function), part)
        assert part.a[0] == wanted
    with refused(mate.GraphError, "mate.not_compilable"):
        run(made.make([1], made.half), state(a=np.zeros(1)))


def test_one_function_as_two_regions_and_as_a_helper(program: Any) -> None:
    made = program("""
def add(part, i):
    part.a[i] += 1

graph.region("first", compiled=True)(add)
graph.region("second", compiled=True)(add)

@graph.region(compiled=True)
def third(part, i):
    add(part, i)
    add(i=1, part=part)
""")
    part = state(a=np.zeros(2))
    run(made.graph, part)
    assert part.a.tolist() == [3, 1]


def test_python_regions_stay_python(program: Any) -> None:
    made = program("""
@graph.region()
def first(part, i):
    part.anything = [lambda: i]

@graph.region(compiled=True)
def second(part, i):
    part.a[0] = 1
""")
    block = compiled_graph(made.graph).bind(state(a=np.zeros(1)), no_messages)
    assert block.entry(1)
    with pytest.raises(KeyError, match="first"):
        block.entry(0)


def test_compiled_async_regions_are_refused(program: Any) -> None:
    with refused(mate.GraphError, "mate.graph"):
        program("""
@graph.region(compiled=True)
async def work(part, i): pass
""")


@case_table(
    ("text", "words"),
    {
        'graph.region("work", compiled=True)(lambda part, i: None)': (
            r"^{file}:5: region work is a lambda, which cannot be compiled: write it as a function"
        ),
        'graph.region("work", compiled=True)(len)': "^region work is a builtin_function_or_method",
        'exec("def f(part, i): pass")\ngraph.region("work", compiled=True)(f)': (
            r"^region work has no source \(<string>\).*put the function into a file"
        ),
        "async def f(x): pass\n@graph.region(compiled=True)\ndef work(part, i):\n    f(3)\n": (
            r"^{file}:5: function f is async"
        ),
        "@graph.region(compiled=True)\ndef work(part): pass": (
            r"^{file}:6: region work: a region has two parameters"
        ),
        "@graph.region(compiled=True)\ndef work(part, *i): pass": (
            r"^{file}:6: region work: only plain parameters"
        ),
        "def f(x): return [k for k in x]\n@graph.region(compiled=True)\n"
        "def work(part, i): f(i)": r"^{file}:5: function f: a comprehension cannot be compiled",
        "def f(x=[]): return x\n@graph.region(compiled=True)\ndef work(part, i): f()": (
            r"^{file}:5: function f: the default of x is a list: expected a number"
        ),
        "import functools\ndef d(f): return functools.wraps(f)(lambda *a: f(*a))\n"
        "@graph.region(compiled=True)\n@d\ndef work(part, i): pass": (
            r"^{file}:6: region work is a lambda"
        ),
        "import contextlib\n@contextlib.contextmanager\ndef f(): yield\n"
        "@graph.region(compiled=True)\ndef work(part, i):\n    f()": (
            r"contextlib.py:\d+: function f has a decorator, which cannot be compiled"
        ),
        "import sys\n@graph.region(compiled=True)\ndef work(part, i): sys.stdout.write(i)": (
            r"^{file}:7: region work: sys.stdout.write is a .* from outside"
        ),
        "import sys\n@graph.region(compiled=True)\ndef work(part, i): sys.nothing": (
            r"^{file}:7: region work: module 'sys' has no attribute 'nothing'"
        ),
    }.items(),
)
def test_refused_before_any_state_is_seen(program: Any, text: str, words: str) -> None:
    made = program(text + "\n")
    with pytest.raises(mate.GraphError, match=words.format(file=made.__file__)):
        compiled_graph(made.graph)


def test_a_file_that_has_changed(program: Any) -> None:
    made = program("""
@graph.region(compiled=True)
def work(part, i): pass
""")
    Path(made.__file__).write_text("\n\n" + HEAD)
    with refused(mate.GraphError, "mate.not_compilable"):
        compiled_graph(made.graph)


def test_a_program_without_a_file() -> None:
    text = HEAD + (
        "from runner.runtimes.mate.compiled import compiled_graph\n"
        "@graph.region(compiled=True)\n"
        "def work(part, i): pass\n"
        "compiled_graph(graph)\n"
    )
    for command, file in (
        ([sys.executable, "-c", text], "<string>"),
        ([sys.executable], "<stdin>"),
    ):
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)
        last = done.stderr.splitlines()[-1]
        assert "GraphError: " in last
        assert "work" in last
        assert f"({file})" in last
