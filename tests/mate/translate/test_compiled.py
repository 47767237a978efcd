"""Which regions become functions that can be compiled, and what is said of the others."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from autotune.cli import main
from runner.runtimes.mate.translate import translation
from runner.runtimes.mate.translate.rewrite import RegionForm
from tests.mate.translate.test_translate import JACOBI, program
from tests.snapshot_ids import word_id

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


def forms(body: str, rest: str = "pass", after: str = "pass") -> tuple[str, Sequence[RegionForm]]:
    """The translated program, and what became of its regions."""
    text = HEAD
    for word, part, columns in (("BODY", body, 8), ("REST", rest, 8), ("AFTER", after, 4)):
        text = text.replace(word, textwrap.indent(part, " " * columns).strip())
    made = translation(program(text), "app.py")
    compile(made.text, "app_mate.py", "exec")
    return made.text, made.regions


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
    text, regions = forms(body, wait)
    assert [(region.place, region.name, region.reason) for region in regions] == [
        (f"app.py:{LINE}", "work", ""),
        (f"app.py:{LINE + body.count(chr(10)) + 2}", "other", ""),
    ]
    assert "def _mate_1_work(state, i):\n" in text
    assert COMPILED[body] in text
    assert "run_graph(_mate_graph_1, range(steps), names=locals())" in text
    functions = [f.name for f in ast.parse(text).body if isinstance(f, ast.FunctionDef)]
    assert functions[:2] == ["_mate_1_work", "_mate_1_other"]


PYTHON: dict[str, int | None] = {
    "a[:] = a[1:] + b[:3]": 0,
    "a.copy()": 0,
    "pass\nx = [q for q in others]": 1,
    "a[0] = 1\nprint(a)": 1,
    "a[0] = box.n": 0,
    "a[0] = call(3)": 0,
    "a[0] = lists[0](3)": 0,
    "a[0] = a.mean()": 0,
    "a[0] = TABLE[1]": 0,
    "a[0] = flux(3)": None,
    "a[0] = twice(3)": None,
    "total += a[0]": 0,
    "comm.Barrier()": 0,
    "a[0] = k": 0,
    "with open('f') as f:\n    pass": 0,
    "for x in sorted(others):\n    a[x] = 1": 0,
}
"""Bodies, each with its line that cannot be compiled; None: it is in a function."""


@pytest.mark.parametrize("body", PYTHON, ids=word_id)
def test_regions_that_stay_python_and_why(body: str, snapshot: SnapshotAssertion) -> None:
    rest = "for k in range(n):\n    b[k] = k" if body != "a[0] = k" else "k = 3"
    text, regions = forms(body, rest, "print(total)")
    offset = PYTHON[body]
    lines = program(HEAD).splitlines()
    if offset is None:
        line = next(n for n, text in enumerate(lines, 1) if f"def {body[7:11]}" in text)
        line += "twice" in body
    else:
        line = LINE + offset
    assert (regions[0].place, regions[0].name) == (f"app.py:{line}", "work")
    assert regions[0].reason == snapshot
    assert "    def _mate_work(i):\n" in text or "    async def _mate_work(i):\n" in text  # data
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
    _, regions = forms("r = [comm.Isend(a, 1)]", rest, after)
    assert (regions[0].place, regions[0].name) == (f"app.py:{LINE}", "work")
    assert re.search(r"\br\b", regions[0].reason)


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
    _, regions = forms(body, rest, after)
    assert bool(re.search(r"\bk\b", regions[0].reason)) is reads


def test_a_list_that_another_region_changes() -> None:
    _, regions = forms("a[0] = others[0]", "others.append(i)")
    assert regions[0].name == "work"
    assert {"other", "others"} <= set(regions[0].reason.split())


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
    assert re.search(r"\bk\b", regions[0].reason)
    regions = translation(program(text.replace("= k", "= 3")), "app.py").regions
    assert not regions[0].reason


def test_names_of_functions_around(snapshot: SnapshotAssertion) -> None:
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
    assert [region.reason for region in regions] == snapshot


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
    assert captured.err.startswith(f"app.py:{line}: ")
    assert "compute" in captured.err
    assert "print" in captured.err
    assert captured.err.count("\n") == 1
    assert re.findall("[0-9]+", captured.out.splitlines()[-1]) == ["4", "5"]
