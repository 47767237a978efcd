"""Compiled regions: what they compute, what they refuse, and what is stored."""

from __future__ import annotations

import copy
import ctypes
import importlib.util
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runner import mate
from runner.mate.compiled import Block, compiled_graph
from runner.mate.compiled.state import ELEMENTS
from tests.mate import recorder

ROOT = Path(__file__).parents[2]
HEAD = """\
import math
import numpy as np
from runner import mate
graph = mate.Graph("test")
"""
_numbers = itertools.count()


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty store of compiled code, and the recording message layer."""
    place = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_CACHE_DIR", str(place))
        patch.delenv("MATE_CHECK", raising=False)
        kept = sys.modules.get("runner.native.message")
        recorder.install()
        yield place / "autotune"
        del sys.modules["runner.native.message"]
        if kept:
            sys.modules["runner.native.message"] = kept


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], Any]:
    """Makes a module of program text after :data:`HEAD`, in a file of its own."""

    def load(text: str) -> Any:
        path = tmp_path / f"program{next(_numbers)}.py"
        path.write_text(HEAD + text)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def no_record(_context: mate.Context) -> int:
    raise AssertionError("no context here")


def run(graph: mate.Graph, state: Any, iterations: int = 1, record: Any = no_record) -> Block:
    """Run the compiled regions in their order, as a scheduler would for a chain."""
    block = compiled_graph(graph).bind(state, record)
    for i in range(iterations):
        for region in graph.regions:
            call = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_int64)
            call(block.entry(region.index))(block.address, i)
    block.check()
    return block


def run_both(graph: mate.Graph, state: Any, iterations: int = 1) -> None:
    """Run compiled and in Python, and compare every array of the state to the last bit."""
    plain = copy.deepcopy(state)
    run(graph, state, iterations)
    with np.errstate(all="ignore"):
        for i in range(iterations):
            for region in graph.regions:
                region.body(plain, i)
    for name, value in vars(state).items():
        kept = value if isinstance(value, list) else [value]
        wanted = getattr(plain, name)
        for a, b in zip(kept, wanted if isinstance(value, list) else [wanted], strict=True):
            assert np.array_equal(a, b, equal_nan=True), name


class Part:
    """A state with any attributes."""


def state(**attributes: Any) -> Any:
    part = Part()
    vars(part).update(attributes)
    return part


def in_rank(check: Callable[[mate.Context], None], ranks: int = 1) -> None:
    """Run a check in every rank of a process."""

    async def main(ctx: mate.Context) -> None:
        check(ctx)

    mate.run(main, mate.Config(ranks_per_process=ranks))


# What regions compute

STENCIL = """
SIDES = (0.25, 0.25)

def point(a, k, weight):
    return SIDES[0] * a[k - 1] + weight * a[k] + SIDES[1] * a[k + 1]

@graph.region(compiled=True)
def compute(part, i):
    \"\"\"One step.\"\"\"
    old, new = part.arrays[i % 2], part.arrays[(i + 1) % 2]
    for k in range(part.lo, part.hi):
        new[k] = point(old, k, part.weight)
"""


def test_a_stencil_gives_the_bits_of_python(program: Any) -> None:
    old, new = np.random.default_rng(1).random((2, 50))
    run_both(program(STENCIL).graph, state(arrays=[old, new], lo=1, hi=49, weight=0.5), 5)


def test_every_kind_of_attribute(program: Any) -> None:
    made = program("""
@graph.region(compiled=True)
def work(part, i):
    n = len(part.whole)
    for k in range(n):
        part.out[k] = part.whole[k] * part.factor + part.real[k]
    part.out[n] = part.last + part.true + part.small
    if part.true:
        part.out[n + 1] = part.single * np.float32(3)
    part.out[-1] = len(part.several)
    for k, each in enumerate(part.several):
        each[0, k] = part.several[-1][1, 1] + k
""")
    run_both(
        made.graph,
        state(
            whole=(3, 1, 2),
            real=[0.5, 1, 2],
            factor=0.1,
            last=np.int32(7),
            true=True,
            small=np.float64(1e-3),
            single=np.float32(0.1),
            several=[np.ones((2, 2)), np.ones((3, 4))],
            out=np.zeros(9),
        ),
    )


@pytest.mark.parametrize(
    "element",
    ELEMENTS,
)
def test_every_type_of_element(program: Any, element: str) -> None:
    made = program("""
@graph.region(compiled=True)
def turn(part, i):
    n = part.a.shape[0]
    for k in range(n):
        part.b[n - 1 - k] = part.a[k]
        part.c[k] = part.a[k] + part.a[k]
""")
    a = np.arange(5).astype(element)
    run_both(made.graph, state(a=a, b=np.zeros_like(a), c=np.zeros_like(a)))


def test_strides_and_three_dimensions(program: Any) -> None:
    made = program("""
@graph.region(compiled=True)
def face(part, i):
    plane = part.field[:, :, 1]
    for y in range(plane.shape[0]):
        for x in range(plane.shape[1]):
            part.strided[y, x] = plane[y, x] + part.turned[x, y] * part.field[y, x, -1]
    part.field[0, 1:, 0] = 7.0
    part.zero[()] = part.zero[()] + 1
""")
    field = np.random.default_rng(2).random((3, 4, 5))
    run_both(
        made.graph,
        state(
            field=field,
            strided=np.zeros((6, 8))[::2, 1::2],
            turned=np.asfortranarray(np.arange(12.0).reshape(4, 3)),
            zero=np.array(3),
        ),
    )


def test_a_copy_of_a_strided_array_is_strided_too(program: Any) -> None:
    """The arrays of a list may have several layouts; the code then takes any strides."""
    made = program("""
@graph.region(compiled=True)
def work(part, i):
    for a in part.several:
        for k in range(a.shape[0]):
            a[k] += k
""")
    base = np.zeros(8)
    several = [base[::2], np.zeros(3)]
    run(made.graph, state(several=several))
    assert base.tolist() == [0, 0, 1, 0, 2, 0, 3, 0]
    assert several[1].tolist() == [0, 1, 2]


def test_complex_arithmetic(program: Any) -> None:
    made = program("""
UNIT = 1j

@graph.region(compiled=True)
def work(part, i):
    for k in range(part.a.shape[0]):
        part.a[k] = part.a[k] * UNIT + part.a[k].real - abs(part.a[k].imag)
""")
    run_both(made.graph, state(a=np.array([1 + 2j, -3.5, 0.25j])))


def test_empty_lists_take_their_type_from_their_use(program: Any) -> None:
    made = program("""
def fill(face, value):
    for y in range(face.shape[0]):
        face[y, 0] = value

@graph.region(compiled=True)
def work(part, i):
    for n in range(len(part.others)):
        buffer = part.sent[n]
        buffer[0] = part.others[n]
        part.ctx.isend(buffer, part.others[n], part.tags[n])
        fill(part.faces[n], 3.0)
    part.ran[0] = 1 + len(part.faces)
""")

    def check(ctx: mate.Context) -> None:
        empty = state(ctx=ctx, others=[], sent=(), tags=[], faces=[], ran=np.zeros(1))
        words = recorder.record()
        run(made.graph, empty, record=lambda _: words.ctypes.data)
        assert empty.ran.tolist() == [1]
        assert recorder.calls(words) == []

    in_rank(check)


def test_empty_lists_hold_what_those_of_other_ranks_do(program: Any, cache: Path) -> None:
    made = program("""
@graph.region(compiled=True)
def work(part, i):
    for n in range(len(part.sent)):
        part.sent[n][0] = 1
""")
    before = len(list(cache.glob("*.bin")))
    run(made.graph, state(sent=[np.zeros(2, np.float32)]))
    run(made.graph, state(sent=[]))
    assert len(list(cache.glob("*.bin"))) == before + 1


def test_an_operation_that_would_raise_is_told_at_the_exit(program: Any) -> None:
    made = program("""
@graph.region(compiled=True)
def work(part, i):
    part.a[0], part.a[1] = part.b[: part.n]
    part.a[2] = 5
""")
    good = state(a=np.zeros(3), b=np.ones(4), n=2)
    run(made.graph, good)
    assert good.a.tolist() == [1, 1, 5]
    bad = state(a=np.zeros(3), b=np.ones(4), n=3)
    with pytest.raises(mate.MateError, match=r"region work ended early.*--core python"):
        run(made.graph, bad)
    assert bad.a.tolist() == [0, 0, 0]
    bad.n = 2
    run(made.graph, bad)


# The context and messages


def test_messages_and_places(program: Any) -> None:
    made = program("""
TAG = 7

@graph.region(compiled=True)
def work(part, i):
    ctx = part.ctx
    for n in range(len(part.others)):
        ctx.isend(part.sent[n], part.others[n], TAG)
        part.ctx.irecv(part.received[n][1:3], source=part.others[n], tag=n + i)
    part.ctx.isend(part.field[1], ctx.rank)
    part.where[0] = ctx.rank * 1000 + ctx.local_rank * 100 + ctx.size * 10 + ctx.local_count
    part.where[1] = ctx.process * 100 + ctx.process_count * 10 + ctx.workers
""")

    def check(ctx: mate.Context) -> None:
        words = recorder.record()
        part = state(
            ctx=ctx,
            others=(3, 9),
            sent=[np.zeros(4), np.zeros(5)],
            received=[np.zeros(3, np.complex64), np.zeros(3, np.complex64)],
            field=np.zeros((2, 3, 4), np.int8),
            where=np.zeros(2),
        )
        run(made.graph, part, record=lambda _: words.ctypes.data)
        (s0, s1), (r0, r1) = part.sent, part.received
        assert recorder.calls(words) == [
            [0, s0.ctypes.data, 4, 10, 3, 7],
            [1, r0.ctypes.data + 8, 2, 11, 3, 0],
            [0, s1.ctypes.data, 5, 10, 9, 7],
            [1, r1.ctypes.data + 8, 2, 11, 9, 1],
            [0, part.field.ctypes.data + 12, 12, 1, ctx.rank, 0],
        ]
        assert part.where.tolist() == [ctx.rank * 1000 + ctx.local_rank * 100 + 33, 11]

    in_rank(check, ranks=3)


def test_the_context_as_state(program: Any) -> None:
    """``execute`` without a state passes the context itself."""
    made = program("""
@graph.region(compiled=True)
def work(ctx, i):
    for k in range(ctx.size):
        if k != ctx.rank:
            skip(ctx)

def skip(ctx):
    return ctx.local_rank
""")
    other = program("""
@graph.region(compiled=True)
def work(ctx, i):
    ctx.config
""")

    def check(ctx: mate.Context) -> None:
        words = recorder.record()
        block = run(made.graph, ctx, record=lambda _: words.ctypes.data)
        assert block._words[1:4].tolist() == [words.ctypes.data, ctx.rank, ctx.local_rank]
        with pytest.raises(mate.GraphError, match=r"ctx.config cannot be used in compiled code"):
            run(other.graph, ctx, record=lambda _: words.ctypes.data)

    in_rank(check, ranks=2)


# The state at entry and exit


def test_numbers_and_arrays_are_read_at_every_entry(program: Any) -> None:
    made = program("""
@graph.region(compiled=True)
def work(part, i):
    part.a[0] = part.n + part.few[0] + part.several[0][0]
""")
    part = state(a=np.zeros(1), n=1, few=[10], several=[np.array([100.0])])
    first = run(made.graph, part)
    assert part.a[0] == 111
    part.n, part.few[0], part.several[0] = 2, 20, np.array([200.0])
    assert run(made.graph, part) is first
    assert part.a[0] == 222
    part.a = np.zeros(2)
    assert run(made.graph, part) is first
    assert part.a.tolist() == [222, 0]
    part.a = np.zeros(1, np.float32)
    assert run(made.graph, part) is not first
    assert part.a.dtype == np.float32
    assert part.a[0] == 222


@pytest.mark.parametrize(
    ("name", "value"), [("n", 2), ("a", np.zeros(1)), ("few", [3]), ("several", [np.zeros(1)])]
)
def test_a_change_while_the_graph_runs_is_told(program: Any, name: str, value: Any) -> None:
    made = program("""
@graph.region(compiled=True)
def work(part, i):
    part.a[0] = part.n + part.few[0] + part.several[0][0]
""")
    part = state(a=np.zeros(1), n=1, few=[10], several=[np.ones(1)])
    block = run(made.graph, part)
    setattr(part, name, value)
    with pytest.raises(mate.MateError, match=rf"Part\.{name} has changed while"):
        block.check()


def test_states_are_let_go(program: Any) -> None:
    made = program("""
@graph.region(compiled=True)
def work(part, i):
    part.a[0] = 1
""")
    compiled = compiled_graph(made.graph)
    for _ in range(5):
        run(made.graph, state(a=np.zeros(1)))
    assert not compiled._blocks


# What is refused

REFUSED = {
    "assert part.n": "assert cannot be compiled",
    "raise ValueError": "raise cannot be compiled: write a number into an array",
    "try:\n        pass\n    finally:\n        pass": "try cannot be compiled",
    "with part.ctx.buffering():\n        pass": "with cannot be compiled",
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
ELSEWHERE = {
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


@pytest.mark.parametrize("body", REFUSED)
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
            run(made.graph, part, record=lambda _: 0)
        assert "\n" not in str(caught.value)
        caught.match(rf"^{made.__file__}:{line + offset}: {words}")

    in_rank(check)
