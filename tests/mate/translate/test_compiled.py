"""Which regions become functions that can be compiled, and what is said of the others."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest

from autotune.cli import main
from runner.mate.translate import translation
from tests.mate.translate.test_translate import JACOBI, program

HEAD = """
import math
import numpy as np
from numba import njit
from elsewhere import *
FACTOR = 2.0
TABLE = [1, 2]

@njit(nogil=True)
def scale(a, n):
    a[n] = FACTOR * a.sum()

def flux(x, *rest):
    return x

def twice(x):
    return {x: 2}

def main(steps, comm):
    a, b = np.zeros(4), np.zeros(4)
    n, others, lists = 3, [1, 2], [a, b]
    k = total = 0
    call, box = math.sin, np.random
    # pragma mate graph
    for i in range(steps):
        # pragma mate region(work) depends(other*)
        BODY
        # pragma mate region(other) depends(work)
        REST
    AFTER
"""


def forms(body: str, rest: str = "pass", after: str = "pass") -> tuple[str, list[str]]:
    """The translated program, and what is said of its regions."""
    text = HEAD
    for word, part, columns in (("BODY", body, 8), ("REST", rest, 8), ("AFTER", after, 4)):
        text = text.replace(word, textwrap.indent(part, " " * columns).strip())
    made = translation(program(text), "app.py")
    compile(made.text, "app_mate.py", "exec")
    return made.text, [str(region) for region in made.regions]


SEED = program(
    HEAD.replace("BODY", "r = [comm.Isend(x, n) for x, n in zip(lists, others)]")
    .replace("REST", "MPI.Request.Waitall(r)\n        a[i % 4] = flux(b[i - 1]) + b[0] * n")
    .replace("AFTER", "print(k, total)")
)
"""A program for the tests with damaged ones."""
LINE = program(HEAD).splitlines().index("        BODY") + 1
COMPILED = {
    "scale(a, n)": "scale(state.a, state.n)",
    "a[i % 4] = math.sqrt(FACTOR) + unknown(n)": "state.a[i % 4] = math.sqrt(FACTOR) + unknown(st",
    "for k in range(n):\n    for j in range(k):\n        a[k] = b[j]": "   state.a[k] = state.b[j]",
    "x, y = a[0], n\na[1] = x * y": "x, y = state.a[0], state.n",
    "if comm.rank > 0:\n    a[0] = comm.Get_size()": "if state._mate.rank > 0:",
    "r = [comm.Irecv(x, other) for x, other in zip(lists, others)]": (
        "for x, other in zip(state.lists, state.others):\n        state._mate.irecv(x, other)"
    ),
    "r = [comm.Isend(lists[n], n, tag=n) for n in range(2) if n > 0]": (
        "    for _mate_n in range(2):\n        if _mate_n > 0:\n"
        "            state._mate.isend(state.lists[_mate_n], _mate_n, tag=_mate_n)"
    ),
    "r = []\nfor k in range(n):\n    r.append(comm.Isend([lists[k], MPI.DOUBLE], dest=k))": (
        "    for k in range(state.n):\n        state._mate.isend(state.lists[k], dest=k)"
    ),
    "r = [comm.Isend(a, 1), comm.Irecv(buf=b, source=1)]": (
        "state._mate.isend(state.a, 1)\n    state._mate.irecv(buffer=state.b, source=1)"
    ),
}


@pytest.mark.parametrize("body", COMPILED)
def test_regions_that_can_be_compiled(body: str) -> None:
    wait = "MPI.Request.Waitall(r)" if body.startswith("r") else "pass"
    text, said = forms(body, wait)
    assert said == [
        f"app.py:{LINE}: region work is compiled",
        f"app.py:{LINE + body.count(chr(10)) + 2}: region other is compiled",
    ]
    assert "def _mate_1_work(state, i):\n" in text
    assert COMPILED[body] in text
    assert "run_graph(_mate_graph_1, range(steps), names=locals())" in text
    functions = [f.name for f in ast.parse(text).body if isinstance(f, ast.FunctionDef)]
    assert functions[:2] == ["_mate_1_work", "_mate_1_other"]


ELSEWHERE = "it binds total, which is read elsewhere or the next time: use an array of one element"
REQUESTS = "the requests r are used by other code than a wait of a region"
PYTHON = {
    "a[:] = a[1:] + b[:3]": (0, "an operation of whole arrays makes a new array"),
    "a.copy()": (0, ".copy() makes a new array"),
    "pass\nx = [q for q in others]": (1, "a comprehension cannot be compiled"),
    "a[0] = 1\nprint(a)": (1, "print cannot be compiled"),
    "a[0] = box.n": (0, "box.n belongs to an object: bind what the region needs of it to a name"),
    "a[0] = call(3)": (0, "it calls call, a variable: only functions of a module can be compiled"),
    "a[0] = lists[0](3)": (0, "a call of what an expression gives cannot be compiled"),
    "a[0] = a.mean()": (0, ".mean adds in another order than numpy"),
    "a[0] = TABLE[1]": (0, "TABLE is a list from outside of the function"),
    "a[0] = flux(3)": (None, "function flux: only plain parameters can be compiled"),
    "a[0] = twice(3)": (None, "function twice: a dictionary cannot be compiled"),
    "total += a[0]": (0, ELSEWHERE),
    "comm.Barrier()": (0, "it waits for messages itself"),
    "a[0] = k": (0, "k is bound by region other while the graph runs"),
    "with open('f') as f:\n    pass": (0, "with cannot be compiled"),
    "for x in sorted(others):\n    a[x] = 1": (0, "sorted cannot be compiled"),
}


@pytest.mark.parametrize("body", PYTHON)
def test_regions_that_stay_python_and_why(body: str) -> None:
    rest = "for k in range(n):\n    b[k] = k" if body != "a[0] = k" else "k = 3"
    text, said = forms(body, rest, "print(total)")
    offset, words = PYTHON[body]
    lines = program(HEAD).splitlines()
    if offset is None:
        line = next(n for n, text in enumerate(lines, 1) if f"def {body[7:11]}" in text)
        line += "twice" in body
    else:
        line = LINE + offset
    assert said[0].startswith(f"app.py:{line}: region work stays Python: {words}"), said[0]
    assert "    def _mate_work(i):\n" in text or "    async def _mate_work(i):\n" in text
    assert "def _mate_1_work" not in text


@pytest.mark.parametrize(
    ("rest", "after"),
    [
        ("pass", "MPI.Request.Waitall(r)"),
        ("if n:\n    MPI.Request.Waitall(r)", "pass"),
        ("q = len(r)\nMPI.Request.Waitall(r)", "pass"),
    ],
)
def test_requests_that_others_use(rest: str, after: str) -> None:
    _, said = forms("r = [comm.Isend(a, 1)]", rest, after)
    assert said[0] == f"app.py:{LINE}: region work stays Python: {REQUESTS}"


@pytest.mark.parametrize(
    ("body", "rest", "after", "reads"),
    [
        ("k = i\na[0] = k", "pass", "pass", False),
        ("k = i\na[0] = k", "pass", "k = 4", False),
        ("k = i\na[0] = k", "pass", "print(k)", True),
        ("k = i\na[0] = k", "b[0] = k", "pass", True),
        ("k = i\na[0] = k", "if n:\n    k = 3\nb[0] = k", "pass", True),
        ("k = i\na[0] = k", "for k in range(n):\n    b[k] = k", "pass", False),
        ("for k in range(n):\n    b[k] = k\na[0] = k", "pass", "pass", True),
        ("if n:\n    k = 1\nelse:\n    k = 2\na[0] = k", "pass", "pass", False),
        ("k = i\na[0] = k", "pass", "f = lambda: k", True),
        ("k = i\na[0] = k", "pass", "print([k for k in others])", False),
        ("k = i\na[0] = k", "pass", "while n:\n    k = 3\nprint(k)", True),
    ],
)
def test_a_variable_of_a_region_alone(body: str, rest: str, after: str, reads: bool) -> None:
    _, said = forms(body, rest, after)
    assert ("stays Python: it binds k" in said[0]) is reads


def test_a_list_that_another_region_changes() -> None:
    _, said = forms("a[0] = others[0]", "others.append(i)")
    assert said[0].endswith(
        "region work stays Python: region other changes the list others while the graph runs: use "
        "an array"
    )


def test_a_loop_around_a_graph_reads_what_is_before_it() -> None:
    text = """
    def main(a):
        k = 0
        for step in range(3):
            a[0] = k
            # pragma mate graph
            for i in range(3):
                # pragma mate region(work)
                k = i
    """
    regions = translation(program(text), "app.py").regions
    assert regions[0].reason.startswith("it binds k, which is read elsewhere")
    regions = translation(program(text.replace("= k", "= 3")), "app.py").regions
    assert not regions[0].reason


def test_names_of_functions_around() -> None:
    text = """
    def outer(a):
        m = 3
        def main(b):
            # pragma mate graph
            for i in range(3):
                # pragma mate region(work)
                b[0] = m
        main(a)

    def main(a):
        m = 3
        def changes():
            nonlocal m
            m = 4
        # pragma mate graph
        for i in range(3):
            # pragma mate region(work)
            a[0] = m
    """
    regions = translation(program(text), "app.py").regions
    assert regions[0].reason == "m belongs to a function around the graph's one"
    assert regions[1].reason == "m is bound anew by another function (nonlocal)"


def test_translation_runs_nothing_of_the_program(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    text = f"""
    def mark(*_):
        open({str(mark)!r}, "w")

    @mark
    def first(a: mark() = mark()) -> mark():
        a[0] = 1

    class Box:
        mark()

    VALUE = mark()

    def main(a):
        # pragma mate graph
        for i in range(3):
            # pragma mate region(work)
            a[0] = VALUE + first(a)
    """
    translation(program(text), "app.py")
    assert not mark.exists()


def test_the_command_says_which_regions_stay_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = JACOBI.read_text().replace("        sweep(", "        print(i)\n        sweep(")
    line = text[: text.index("        print(i)")].count("\n") + 1
    Path("app.py").write_text(text)
    assert main(["mate", "translate", "app.py", "-o", "app_mate.py"]) == 0
    captured = capfd.readouterr()
    assert captured.err.startswith(
        f"app.py:{line}: region compute stays Python: print cannot be compiled"
    )
    assert captured.err.count("\n") == 1
    assert captured.out.endswith("4 of 5 regions can be compiled\n")
