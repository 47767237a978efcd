"""Regions that are compiled if possible: they give what Python gives, compiled or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from runner.runtimes import mate
from runner.runtimes.mate.compiled import compiled_graph
from runner.types import COMPILING
from tests.mate.compiled.running import HEAD, Recorder, in_rank, no_messages, run, state
from tests.refusals import refused
from tests.snapshot_ids import word_id

pytestmark = pytest.mark.usefixtures("cache")

REGION = '@graph.region(compiled="if possible")\ndef work(part, i):\n    '
PYTHON = [
    "part.box.n += 1",
    "part.a[0] = part.call(3)",
    "part.a[0] = part.ragged[0][0]",
    "part.a[0] = part.large % 7",
    "part.a[:] = part.a[::-1] + part.a",
    "part.a[:] = part.b + part.b",
    "x = [k for k in range(3)]\n    part.a[0] = sum(x)",
    "part.a[0] = part.a.sum()",
    "part.a[0] = doubled(part.a)[0]",
    "part.narrow[0] = 0.1 * part.narrow[1]",
    "part.small[0] = part.small[1] + part.small[1]",
    "part.a[0] = halved(part.narrow[1])",
]
HELPERS = """
def doubled(a):
    return a.astype(int)
def halved(x):
    return x / 2
"""


def made_state() -> Any:
    return state(
        **{"n": 3, "a": np.linspace(1, 2, 4), "b": np.ones(4), "box": state(n=1), "call": float},
        **{"ragged": [np.ones(2), np.ones(2, int)], "large": 2**63, "lists": [np.ones(2)] * 2},
        **{"narrow": np.full(2, 0.3, np.float32), "small": np.full(2, 2**30, np.int32)},
    )


def reason_for_python(
    program: Any, body: str, blank: int, capfd: pytest.CaptureFixture[str]
) -> str:
    """The reason why a region with this body runs in Python, behind its place.

    ``blank`` lines stand before the region.
    """
    text = "\n" * blank + HELPERS + REGION + body + "\n"
    text += '@graph.region(compiled="if possible")\ndef other(part, i):\n    part.b[0] = i\n'
    made = program(text)
    part = made_state()
    block = compiled_graph(made.graph).bind(part, no_messages)
    assert block.entry(0) == 0
    assert block.entry(1) != 0
    assert made.graph.machine_code == {"other"}
    said = made.graph.fallbacks["work"]
    told = capfd.readouterr().err.splitlines()
    (note,) = (line for line in told if not line.startswith(COMPILING))
    assert note.endswith(f" test: {said}")
    place, _, words = said.partition(": ")
    file, _, line = place.rpartition(":")
    assert file == made.__file__
    lines = (HEAD + text).splitlines()
    helper = next((name for name in ("doubled", "halved") if name in body), None)
    first = next(n for n, line in enumerate(lines) if line.startswith(f"def {helper or 'work'}"))
    assert int(line) == first + 2
    return words


@pytest.mark.parametrize("body", PYTHON, ids=word_id)
def test_what_cannot_be_compiled_runs_in_python_and_says_why(
    program: Any, body: str, capfd: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    assert reason_for_python(program, body, 0, capfd) == snapshot


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(body, marks=pytest.mark.slow if number % 3 else ())
        for number, body in enumerate(PYTHON)
    ],
    ids=word_id,
)
def test_the_reason_is_the_same_from_stored_code(
    program: Any, body: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """With the lines of another file."""
    first = reason_for_python(program, body, 0, capfd)
    assert reason_for_python(program, body, 5, capfd) == first


def test_indices_have_the_meaning_of_python(program: Any) -> None:
    made = program(f"""
def last(a, n):
    return a[n - 1]
{REGION}part.a[i - 1] = last(part.b, 0) + part.lists[i - 1][0]
    part.a[i + 1 : 9] = 7.0
""")
    part = made_state()
    part.b[3], part.lists[1] = 5.0, np.array([0.5])
    run(made.graph, part)
    assert made.graph.machine_code == {"work"}
    assert part.a.tolist() == [1.0, 7.0, 7.0, 7.0]


@pytest.mark.parametrize("index", ["i + 4", "-5 - i"])
@pytest.mark.parametrize("array", ["a", "lists"])
def test_an_index_outside_ends_the_region(program: Any, array: str, index: str) -> None:
    made = program(REGION + f"x = part.{array}[{index}]\n    part.b[0] = 7\n")
    part = made_state()
    with refused(mate.MateError, "mate.compiled_run"):
        run(made.graph, part)
    assert part.b[0] == 1


def test_a_state_that_changes_its_type_changes_how_it_runs(program: Any) -> None:
    made = program(REGION + "part.a[0] = part.n\n")
    part = made_state()
    for value, fast in ((1, True), (2**70, False), (2, True), ("text", False), (3.5, True)):
        part.n = value
        block = compiled_graph(made.graph).bind(part, no_messages)
        assert bool(block.entry(0)) is fast
    assert list(made.graph.fallbacks) == ["work"]


def test_compiled_regions_beside_keep_their_errors(program: Any) -> None:
    other = "@graph.region(compiled=True)\ndef other(part, i):\n    part.b[0] = part.n\n"
    made = program(REGION + "part.a[0] = part.n\n" + other)
    part = made_state()
    run(made.graph, part)
    assert (part.a[0], part.b[0]) == (3, 3)
    part.n = 2**64
    with pytest.raises(mate.MateError, match=r"Part.n is 18446744073709551616"):
        run(made.graph, part)


def test_attributes_of_the_state_may_have_names_of_methods(program: Any) -> None:
    made = program(REGION + "part.copy[0] = part.sum + part.mean[0]\n")
    part = state(copy=np.zeros(1), sum=1, mean=np.ones(1))
    run(made.graph, part)
    assert made.graph.machine_code == {"work"}
    assert part.copy[0] == 2


def test_a_word_that_is_not_understood() -> None:
    with refused(mate.GraphError, "mate.graph"):
        mate.Graph("g").region(name="r", compiled="maybe")


JITTED = """
import numba

@numba.njit(nogil=True{options})
def shift(a, b, n):
    total = 0.0
    for k in numba.prange(n):
        b[k] = a[k - 1]
        total += b[k]
    return total + a.sum()

@graph.region(compiled={compiled})
def work(part, i):
    part.b[0] += shift(part.a, part.b, len(part.a))
"""


@pytest.mark.parametrize(
    "compiled", [pytest.param("True", marks=pytest.mark.slow), '"if possible"']
)
def test_functions_of_njit_keep_the_rules_of_numba(program: Any, compiled: str) -> None:
    made = program(JITTED.format(options="", compiled=compiled))
    part, plain = made_state(), made_state()
    run(made.graph, part)
    made.graph.regions[0].body(plain, 0)
    assert made.graph.machine_code == {"work"}
    assert part.b.tolist() == plain.b.tolist()
    assert part.b[1] == part.a[0]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (", parallel=True", " parallel"),
        (", error_model='python', boundscheck=True", ""),
        pytest.param(", fastmath=True", "", marks=pytest.mark.slow),
    ],
)
def test_options_of_njit(program: Any, options: str, reason: str) -> None:
    made = program(JITTED.format(options=options, compiled='"if possible"'))
    block = compiled_graph(made.graph).bind(made_state(), no_messages)
    assert bool(block.entry(0)) is not bool(reason)
    assert reason in made.graph.fallbacks.get("work", "")


def test_a_jitted_function_with_types_is_refused(program: Any) -> None:
    text = JITTED.format(options="", compiled="True")
    text = text.replace("njit(", "njit('float64(float64[:],float64[:],int64)', ")
    with refused(mate.GraphError, "mate.not_compilable"):
        run(program(text).graph, made_state())


def test_an_empty_list_is_taken_for_what_its_uses_suggest(program: Any) -> None:
    """Also if its first use says less than a later one, or one in another region."""
    made = program("""
@graph.region(compiled=True)
def first(part, i):
    for k in range(len(part.fields)):
        part.ctx.isend(part.fields[k], 1)

@graph.region(compiled=True)
def work(part, i):
    for k in range(len(part.fields)):
        for x in range(part.boxes[k][0], part.boxes[k][1]):
            part.fields[k][part.boxes[k][2] - x, x] = 1.0
""")

    def check(ctx: mate.Context) -> None:
        run(made.graph, state(ctx=ctx, fields=[], boxes=[]), messages=Recorder())

    in_rank(check)
    assert made.graph.machine_code == {"first", "work"}
