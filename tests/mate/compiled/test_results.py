"""What compiled regions compute: the same bits as in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runner.runtimes import mate
from runner.runtimes.core.words import BUFFERING, COMPUTE, KINDS
from tests.mate.compiled.running import Recorder, in_rank, run, run_both, state
from tests.refusals import refused

pytestmark = pytest.mark.usefixtures("cache")

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


DISTINCT = """
from runner.runtimes.core.distinct import distinct

@distinct
def add_rows(a, b, first):
    for k in range(first, len(a)):
        b[k] += a[k]

@graph.region(compiled=True)
def compute(part, i):
    add_rows(part.rows[0], part.rows[1], i)
"""


def test_a_function_of_distinct_arrays_gives_the_bits_of_python(
    program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runner.runtimes.core import distinct

    seen = []
    options = distinct.options

    def recorded(function: Any) -> dict[str, Any]:
        if found := options(function):
            seen.append(function)
        return found

    monkeypatch.setattr(distinct, "options", recorded)
    made = program(DISTINCT)
    run_both(made.graph, state(rows=np.random.default_rng(1).random((2, 50))), 5)
    assert seen == [made.add_rows]


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


TURN = """
    n = part.a_{kind}.shape[0]
    for k in range(n):
        part.b_{kind}[n - 1 - k] = part.a_{kind}[k]
        part.c_{kind}[k] = part.a_{kind}[k] + part.a_{kind}[k]
"""


def test_every_type_of_element(program: Any) -> None:
    turns = "".join(TURN.format(kind=kind) for kind in KINDS)
    made = program(f"@graph.region(compiled=True)\ndef turn(part, i):{turns}")
    arrays = {kind: np.arange(5).astype(kind) for kind in KINDS}
    part = state(**{f"a_{kind}": array for kind, array in arrays.items()})
    for kind, array in arrays.items():
        setattr(part, f"b_{kind}", np.zeros_like(array))
        setattr(part, f"c_{kind}", np.zeros_like(array))
    run_both(made.graph, part)
    assert part.b_int64.tolist() == [4, 3, 2, 1, 0]


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


def test_division_by_zero_is_that_of_numpy(program: Any) -> None:
    made = program("""
@graph.region(compiled=True)
def work(part, i):
    for k in range(part.a.shape[0]):
        for n in range(part.b.shape[0]):
            part.real[k, n, 0] = part.a[k] / part.b[n]
            part.real[k, n, 1] = part.a[k] // part.b[n]
            part.real[k, n, 2] = part.a[k] % part.b[n]
            part.real[k, n, 3] = part.u[k] / part.v[n]
            part.whole[k, n, 0] = part.u[k] // part.v[n]
            part.whole[k, n, 1] = part.u[k] % part.v[n]
            part.whole[k, n, 2] = (part.u[k] << 3) ^ (part.v[n] & 5) | (part.u[k] >> 1)
""")
    run_both(
        made.graph,
        state(
            a=np.array([1.5, -2.0, 0.0, np.inf]),
            b=np.array([0.0, -0.75, 2.0]),
            u=np.array([7, -7, 0, 3]),
            v=np.array([0, -2, 3]),
            real=np.zeros((4, 3, 4)),
            whole=np.zeros((4, 3, 3), int),
        ),
    )


def test_unsigned_numbers_that_meet_signed_ones(program: Any) -> None:
    """What the README says of ``uint64``."""
    made = program("""
@graph.region(compiled=True)
def mix(part, i):
    u, s = part.large[0], part.signed[0]
    part.mixed[0] = u + s
    part.mixed[1] = u + 1
    part.mixed[2] = -u
    part.mixed[3] = u // 2
    part.alone[0] = u + part.large[1]
    part.alone[1] = u + np.uint64(1)
    part.alone[2] = u >> 1
    part.true[0] = u > s
    part.true[1] = u == s
""")
    top = 2**63 + 2**12
    given = state(
        large=np.array([top, 2**11], np.uint64),
        signed=np.array([-1]),
        mixed=np.zeros(4),
        alone=np.zeros(3, np.uint64),
        true=np.zeros(2, bool),
    )
    run(made.graph, given)
    wrapped = top - 2**64
    assert given.mixed.tolist() == [wrapped - 1.0, wrapped + 1.0, -wrapped, wrapped // 2]
    assert given.alone.tolist() == [top + 2**11, top + 1, top // 2]
    assert given.true.tolist() == [True, False]


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
    for buffer, other in zip(part.received, part.others):
        part.ctx.irecv(buffer, other)
    for n, (own, (ghost, plane)) in enumerate(zip(part.own, zip(part.ghosts, part.planes))):
        plane[ghost, own] = n
    for weight in part.weights:
        part.ran[0] += weight
    part.ran[0] = 1 + len(part.faces)
""")

    def check(ctx: mate.Context) -> None:
        empty = state(ctx=ctx, others=[], sent=(), tags=[], faces=[], ran=np.zeros(1))
        for name in ("received", "own", "ghosts", "planes", "weights"):
            setattr(empty, name, [])
        messages = Recorder()
        run(made.graph, empty, messages=messages)
        assert empty.ran.tolist() == [1]
        assert messages.calls == []

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
    with refused(mate.MateError, "mate.compiled_run"):
        run(made.graph, bad)
    assert bad.a.tolist() == [0, 0, 0]
    bad.n = 2
    run(made.graph, bad)


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
        messages = Recorder()
        part = state(
            ctx=ctx,
            others=(3, 9),
            sent=[np.zeros(4), np.zeros(5)],
            received=[np.zeros(3, np.complex64), np.zeros(3, np.complex64)],
            field=np.zeros((2, 3, 4), np.int8),
            where=np.zeros(2),
        )
        run(made.graph, part, messages=messages)
        (s0, s1), (r0, r1) = part.sent, part.received
        double, single, byte = map(KINDS.index, ("float64", "complex64", "int8"))
        record = 1000 + ctx.rank
        assert messages.calls == [
            (record, 0, s0.ctypes.data, 4, double, 3, 7),
            (record, 1, r0.ctypes.data + 8, 2, single, 3, 0),
            (record, 0, s1.ctypes.data, 5, double, 9, 7),
            (record, 1, r1.ctypes.data + 8, 2, single, 9, 1),
            (record, 0, part.field.ctypes.data + 12, 12, byte, ctx.rank, 0),
        ]
        assert part.where.tolist() == [ctx.rank * 1000 + ctx.local_rank * 100 + 33, 11]

    in_rank(check, ranks=3)


def test_buffering_is_counted_apart(program: Any) -> None:
    made = program("""
def inner(ctx, a):
    with ctx.buffering():
        a[0] += 1
        for k in range(4):
            if k == 2:
                break
            a[1] += k

@graph.region(compiled=True)
def work(part, i):
    part.ctx.isend(part.a, 0)
    with part.ctx.buffering():
        inner(part.ctx, part.a)
        part.ctx.irecv(part.a, 0)
    part.a[2] = 7
""")

    def check(ctx: mate.Context) -> None:
        part = state(ctx=ctx, a=np.zeros(3))
        messages = Recorder()
        run(made.graph, part, messages=messages)
        assert part.a.tolist() == [1, 1, 7]
        buffering, compute = (1000, BUFFERING), (1000, COMPUTE)
        assert [c if len(c) == 2 else c[1] for c in messages.calls] == [
            *(0, buffering, buffering, buffering, 1, compute),
        ]
        assert messages.kind == COMPUTE

    in_rank(check)


def test_the_clock_is_read_where_it_stands(program: Any) -> None:
    made = program("""
@graph.region(compiled=True)
def work(part, i):
    begin = part.ctx.seconds()
    part.ctx.isend(part.a, 0)
    part.a[0] += part.ctx.seconds() - begin
    part.a[1] = part.ctx.cpu_seconds()
""")

    def check(ctx: mate.Context) -> None:
        part = state(ctx=ctx, a=np.zeros(2))
        messages = Recorder()
        run(made.graph, part, messages=messages)
        assert [len(call) for call in messages.calls] == [1, 7, 1]
        assert part.a.tolist() == [1.0, 0.125]

    in_rank(check)


def test_a_state_may_be_used_by_one_job_after_another(program: Any) -> None:
    """Each job has records and functions of its own."""
    made = program("""
@graph.region(compiled=True)
def work(part, i):
    part.ctx.isend(part.a, 0)
""")
    part = state(a=np.zeros(1))

    def check(ctx: mate.Context) -> None:
        part.ctx = ctx
        messages = Recorder()
        run(made.graph, part, messages=messages)
        assert len(messages.calls) == 1

    in_rank(check)
    in_rank(check)


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
        block = run(made.graph, ctx, messages=(messages := Recorder()))
        assert block._words[1:11].tolist() == [*messages(ctx), ctx.rank]
        with refused(mate.GraphError, "mate.not_compilable"):
            run(other.graph, ctx, messages=messages)

    in_rank(check, ranks=2)
