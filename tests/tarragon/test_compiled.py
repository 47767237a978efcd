"""Compiled tasks in one process: any graph, under any schedule, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from runner.runtimes import tarragon
from runner.runtimes.tarragon import Config, Tarragon
from tests.refusals import refusal, refused
from tests.tarragon.mix import Edges, Mix, expected, graph_of


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, int, Edges]:
    """Tasks, steps, and edges that cannot wait for each other."""
    tasks = draw(st.integers(1, 6))
    edges: Edges = {}
    for source in range(tasks):
        for target in range(tasks):
            if source != target and draw(st.booleans()):
                edges[source, target] = draw(st.integers(0, 1)) if source < target else 1
    return tasks, draw(st.integers(0, 6)), edges


@settings(max_examples=40, deadline=None)
@given(
    graphs(),
    st.sampled_from(["shared", "private", "stealing"]),
    st.sampled_from(["none", "edges", "wavefront"]),
    st.sampled_from(["workers", "service"]),
    st.integers(1, 3),
    st.integers(0, 1000),
)
def test_any_graph_under_any_schedule(
    graph: tuple[int, int, Edges], queue: str, priority: str, threads: str, workers: int, seed: int
) -> None:
    config = Config(
        threads=threads,
        workers=workers,
        queue=queue,
        priority=priority,
        pinning="none",
        schedule_seed=seed,
    )
    runtime = Tarragon(None, config)
    made = graph_of(runtime, *graph)
    runtime.graph_init(made)
    runtime.graph_execute(made)
    assert [int(task.value[0]) for task in made] == expected(*graph)
    assert all(task.state == tarragon.DONE for task in made)


def test_a_message_within_the_process_is_its_senders_buffer() -> None:
    runtime = Tarragon()
    graph = graph_of(runtime, 2, 1, {(0, 1): 0})
    runtime.graph_init(graph)
    assert graph.task(1).inputs[0] is graph.task(0).outputs[0]
    runtime.graph_execute(graph)


def test_tasks_that_wait_for_each_other_are_named() -> None:
    runtime = Tarragon()
    graph = graph_of(runtime, 3, 4, {(0, 1): 0, (1, 0): 0})
    runtime.graph_init(graph)
    with pytest.raises(tarragon.Deadlock) as caught:
        runtime.graph_execute(graph)
    assert "task 0: step 0 of 4" in str(caught.value)
    assert "task 1: step 0 of 4" in str(caught.value)
    assert "task 2" not in str(caught.value)


class Unlike(Mix):
    """Has a step more than others, if its number is odd."""

    def __init__(self, number: int, steps: int, delays: dict[int, int]) -> None:
        super().__init__(number, steps + number % 2, delays)


def test_a_wrong_edge_is_refused(snapshot: SnapshotAssertion) -> None:
    def made(kind: Any, **attributes: int) -> None:
        runtime = Tarragon()
        graph = tarragon.VectorGraph(
            runtime, lambda number: kind(number, 2, {0: 0}), tarragon.IdentityMap(2)
        )
        graph.task(0).connect(1, **attributes)
        runtime.graph_init(graph)

    edges: list[Callable[[], None]] = [
        lambda: made(Mix),
        lambda: made(Mix, max_size=7),
        lambda: made(Unlike, max_size=8),
    ]
    assert [refusal(tarragon.GraphError, edge) for edge in edges] == snapshot


def test_a_second_edge_to_a_task_is_refused() -> None:
    runtime = Tarragon()
    graph = graph_of(runtime, 2, 1, {(0, 1): 0})
    graph.task(0).connect(1, max_size=8)
    with refused(tarragon.GraphError, "tarragon.graph"):
        runtime.graph_init(graph)


def test_a_message_to_oneself_in_the_same_step_is_refused() -> None:
    runtime = Tarragon()
    graph = graph_of(runtime, 1, 1, {(0, 0): 0})
    with refused(tarragon.GraphError, "tarragon.graph"):
        runtime.graph_init(graph)


def test_a_message_to_oneself_in_the_next_step() -> None:
    runtime = Tarragon()
    graph = graph_of(runtime, 1, 3, {(0, 0): 1})
    runtime.graph_init(graph)
    runtime.graph_execute(graph)
    assert int(graph.task(0).value[0]) == expected(1, 3, {(0, 0): 1})[0]


def test_tasks_of_two_kinds_are_refused() -> None:
    runtime = Tarragon()
    graph: Any = tarragon.VectorGraph(
        runtime,
        lambda number: Mix(0, 1, {}) if number else tarragon.Task(),
        tarragon.IdentityMap(2),
    )
    with refused(tarragon.GraphError, "tarragon.graph"):
        runtime.graph_init(graph)


@pytest.mark.parametrize("switch", ["tagging", "aggregation"])
def test_what_means_nothing_is_refused(switch: str) -> None:
    runtime = Tarragon(None, Config(**{switch: True}))  # type: ignore[arg-type]
    graph = graph_of(runtime, 1, 1, {})
    with refused(tarragon.ConfigError, "tarragon.option"):
        runtime.graph_init(graph)


class Wrong(tarragon.CompiledTask):
    """Not in the dialect."""

    def compute(self, step: int) -> None:
        print(step)


def test_what_cannot_be_compiled_is_told_with_its_line() -> None:
    runtime = Tarragon()
    graph = tarragon.VectorGraph(runtime, lambda _: Wrong(1), tarragon.IdentityMap(1))
    with refused(Exception, "mate.not_compilable"):
        runtime.graph_init(graph)
