"""The state of compiled regions at the entry and the exit of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from runner import mate
from runner.mate.compiled import compiled_graph
from tests.mate.compiled.running import run, state

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
