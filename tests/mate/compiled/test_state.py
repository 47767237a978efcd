"""The state of compiled regions at the entry and the exit of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from runner.runtimes import mate
from runner.runtimes.mate.compiled import compiled_graph
from runner.runtimes.mate.compiled.state import state_type
from runner.runtimes.mate.compiled.uses import merge
from tests.mate.compiled.running import run, state
from tests.refusals import refused

pytestmark = pytest.mark.usefixtures("cache")


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
    part.several = (np.array([300.0, 400.0])[::-1],)
    assert run(made.graph, part) is not first
    assert part.a[0] == 422
    part.a = np.zeros(1, np.float32)
    assert run(made.graph, part) is not first
    assert part.a.dtype == np.float32
    assert part.a[0] == 422


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("n", 2**63, r"Part\.n is 9223372036854775808,"),
        ("few", [1, -(2**70)], r"Part\.few "),
    ],
)
def test_numbers_beyond_64_bits_are_refused(
    program: Any, name: str, value: Any, words: str
) -> None:
    made = program("""
@graph.region(compiled=True)
def work(part, i):
    part.a[0] = part.n + part.few[0]
""")
    part = state(a=np.zeros(1), n=-(2**63), few=[2**63 - 1])
    run(made.graph, part)
    assert part.a[0] == -1
    setattr(part, name, value)
    with pytest.raises(mate.MateError, match=words):
        run(made.graph, part)


def test_arrays_that_messages_may_use_live_until_the_next_entry(program: Any) -> None:
    made = program("""
import gc
import weakref

@graph.region(compiled=True)
def work(part, i):
    part.a[0] = 1

class Part:
    pass

async def main(ctx):
    part, references, alive = Part(), [], []
    for kind in (float, float, np.float32, np.float32, np.float32):
        part.a = np.zeros(1, kind)
        references.append(weakref.ref(part.a))
        await ctx.execute(graph, state=part, lazy=True)
        gc.collect()
        alive.append([reference() is not None for reference in references])
    return alive
""")
    [alive] = mate.run(made.main, mate.Config(core="native")).results
    assert [[n for n, kept in enumerate(row) if kept] for row in alive] == [
        [0],
        [0, 1],
        [0, 1, 2],
        [2, 3],
        [3, 4],
    ]


def test_lists_of_several_layouts(program: Any) -> None:
    """Code for a list takes what all its arrays have in common."""
    made = program("""
@graph.region(compiled=True)
def work(part, i):
    part.arrays[0][0, 0] = 1
""")
    wide = np.zeros((4, 6))
    frozen = np.zeros((2, 2))
    frozen.flags.writeable = False
    uses = merge(compiled_graph(made.graph)._uses.values())
    for arrays, wanted in (
        ([wide, wide[:2]], "float64[2C]"),
        ([wide, wide.T], "float64[2A]"),
        ([wide.T, wide.T[:, :2]], "float64[2F]"),
        ([wide[::2], wide], "float64[2A]"),
        ([wide, frozen], "float64[2Cr]"),
    ):
        assert str(state_type(state(arrays=arrays), uses)) == f"arrays:list({wanted})"  # data


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
    with refused(mate.MateError, "mate.compiled_run"):
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


ROWS = """
@graph.region(compiled=True)
def work(part, i):
    for buffer, rank, weight in part.rows:
        buffer[0, i] += rank * weight
        part.a[0] += len(part.rows)
    for k in range(len(part.rows)):
        x, y, z = part.rows[k]
        x[1, 0] = y
"""


def test_lists_of_tuples(program: Any) -> None:
    made = program(ROWS)
    arrays = [np.zeros((2, 3)), np.zeros((3, 2)), np.zeros((2, 2))]
    part = state(a=np.zeros(1), rows=[(a, n + 1, 0.5) for n, a in enumerate(arrays)])
    first = run(made.graph, part)
    assert [a[0, 0] for a in arrays] == [0.5, 1.0, 1.5]
    assert [a[1, 0] for a in arrays] == [1, 2, 3]
    assert part.a[0] == 9
    part.rows[2] = (arrays[0], 10, 1.0)
    assert run(made.graph, part) is first
    assert arrays[0][0, 0] == 0.5 + 0.5 + 10.0
    part.rows = ()
    assert run(made.graph, part) is first
    part.rows = [(arrays[0].T, 1, 1.0), (arrays[1], 1, 1.0)]
    assert run(made.graph, part) is not first
    for wrong in ([(arrays[0], 1)], [(arrays[0], 1, "x")], [(arrays[0], 1, 2)] * 2 + [3]):
        part.rows = wrong
        with pytest.raises(mate.MateError):
            run(made.graph, part)


def test_an_empty_list_of_tuples_is_known_by_its_use(program: Any) -> None:
    made = program(ROWS)
    run(made.graph, state(a=np.zeros(1), rows=[]))
    part = state(a=np.zeros(1), rows=[(np.zeros((2, 2)), 1, 1.0)])
    run(made.graph, part)
    assert part.a[0] == 1


def test_a_row_that_changes_while_the_graph_runs_is_an_error(program: Any) -> None:
    made = program(ROWS)
    part = state(a=np.zeros(1), rows=[(np.zeros((2, 2)), 1, 1.0)])
    block = run(made.graph, part)
    part.rows[0] = (part.rows[0][0], 2, 1.0)
    with refused(mate.MateError, "mate.compiled_run"):
        block.check()
