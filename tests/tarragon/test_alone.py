"""Graphs in one process: results, states, order, errors."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from runner.runtimes import tarragon
from runner.runtimes.tarragon import Config, Tarragon
from tests.refusals import refusal, refused
from tests.tarragon.graphs import Sum, expected, layers


def run(config: Config | None = None, trace: list[int] | None = None) -> list[int]:
    runtime = Tarragon(None, config)
    graph = layers(runtime, trace)
    runtime.graph_init(graph)
    runtime.graph_execute(graph)
    return [task.value for task in graph]


@pytest.mark.parametrize("workers", [1, 3])
def test_the_result_of_a_graph(workers: int) -> None:
    for threads in ("workers", "service"):
        config = Config(threads=threads, workers=workers, pinning="none")
        assert run(config) == expected()
    if workers == 1:
        assert run() == expected()


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["shared", "private", "stealing"]),
    st.sampled_from(["none", "edges", "wavefront"]),
    st.sampled_from(["none", "block", "round_robin"]),
    st.booleans(),
    st.sampled_from(["workers", "service"]),
    st.integers(1, 3),
    st.integers(0, 1000),
)
def test_metadata_never_changes_a_result(
    queue: str, priority: str, affinity: str, tagging: bool, threads: str, workers: int, seed: int
) -> None:
    config = Config(
        threads=threads,
        workers=workers,
        queue=queue,
        priority=priority,
        affinity=affinity if queue != "shared" else "none",
        tagging=tagging,
        pinning="none",
        schedule_seed=seed,
    )
    assert run(config) == expected()


def test_the_highest_priority_runs_first() -> None:
    order: list[int] = []
    runtime = Tarragon(None, Config(priority="wavefront"))
    graph = tarragon.VectorGraph(runtime, lambda number: Sum(0, order), tarragon.IdentityMap(8))
    runtime.graph_init(graph, [tarragon.PriorityVisitor(lambda number: number * 3 % 8)])
    runtime.graph_execute(graph)
    assert order == sorted(range(8), key=lambda number: -(number * 3 % 8))


class Twice(tarragon.Task):
    """Stays ready until it has run twice."""

    def __init__(self, order: list[int]) -> None:
        super().__init__()
        self._left = 2
        self._order = order

    def vexecute(self) -> None:
        self._order.append(self.id)
        self._left -= 1
        self.state = tarragon.EXEC if self._left else tarragon.DONE


def test_a_task_that_stays_ready_runs_again() -> None:
    order: list[int] = []
    runtime = Tarragon()
    graph = tarragon.VectorGraph(runtime, lambda _: Twice(order), tarragon.IdentityMap(3))
    runtime.graph_init(graph)
    runtime.graph_execute(graph)
    assert sorted(order) == [0, 0, 1, 1, 2, 2]


def test_tasks_that_wait_for_ever_are_named() -> None:
    runtime = Tarragon()
    graph = tarragon.VectorGraph(runtime, lambda number: Sum(number), tarragon.IdentityMap(3))
    runtime.graph_init(graph)
    with refused(tarragon.Deadlock, "tarragon.deadlock") as caught:
        runtime.graph_execute(graph)
    waits = re.findall(r"\btask ([0-9]+): .*\b([0-9]+)\b", str(caught.value))
    assert waits == [("1", "1"), ("2", "2")]


class Content(tarragon.Task):
    """Waits for ever, and says that this is right."""

    def vinit(self) -> None:
        self.state = tarragon.WAIT

    def vterminate(self) -> None:
        self.state = tarragon.DONE


def test_a_task_may_be_content_with_the_end() -> None:
    runtime = Tarragon()
    graph = tarragon.VectorGraph(runtime, lambda _: Content(), tarragon.IdentityMap(2))
    runtime.graph_init(graph)
    runtime.graph_execute(graph)
    assert runtime.exec_time >= 0


class Failing(tarragon.Task):
    def vexecute(self) -> None:
        raise ValueError("no such thing")


class Late(tarragon.Task):
    """Sends to a task that has ended."""

    def vexecute(self) -> None:
        if self.id == 1:
            self.dependencies[0].put(tarragon.Message(8))
        self.state = tarragon.DONE


def test_errors_name_the_task() -> None:
    runtime = Tarragon()
    graph = tarragon.VectorGraph(runtime, lambda _: Failing(), tarragon.IdentityMap(1))
    runtime.graph_init(graph)
    with refused(tarragon.ExecutionError, "tarragon.task_failed"):
        runtime.graph_execute(graph)
    late = tarragon.VectorGraph(runtime, lambda _: Late(), tarragon.IdentityMap(2))
    late.task(1).connect(0)
    runtime.graph_init(late)
    with refused(tarragon.ExecutionError, "tarragon.task_failed"):
        runtime.graph_execute(late)


def test_a_message_larger_than_its_edge_is_refused() -> None:
    class Large(tarragon.Task):
        def vexecute(self) -> None:
            self.dependencies[0].put(tarragon.Message(100))

    runtime = Tarragon()
    graph = tarragon.VectorGraph(runtime, lambda _: Large(), tarragon.IdentityMap(2))
    for task in graph:
        task.connect(1 - task.id, max_size=99)
    runtime.graph_init(graph)
    with pytest.raises(tarragon.CommunicationError, match=r"sends 100 bytes .* allows 99"):
        runtime.graph_execute(graph)


def test_a_local_message_is_handed_over_by_reference() -> None:
    seen: list[np.ndarray] = []  # type: ignore[type-arg]

    class Give(tarragon.Task):
        def vinit(self) -> None:
            self.state = tarragon.EXEC if self.id == 0 else tarragon.WAIT

        def vinject(self, message: tarragon.Message) -> None:
            seen.append(message.array())
            self.state = tarragon.EXEC

        def vexecute(self) -> None:
            if self.id == 0:
                message = tarragon.Message.of(np.arange(4.0))
                seen.append(message.array())
                self.dependencies[0].put(message)
            self.state = tarragon.DONE

    runtime = Tarragon()
    graph = tarragon.VectorGraph(runtime, lambda _: Give(), tarragon.IdentityMap(2))
    graph.task(0).connect(1)
    runtime.graph_init(graph)
    runtime.graph_execute(graph)
    assert np.shares_memory(*seen)


def test_a_wrong_configuration_is_refused(snapshot: SnapshotAssertion) -> None:
    wrong: list[dict[str, Any]] = [
        {"threads": "many"},
        {"workers": 0},
        {"workers": 2},
        {"affinity": "block"},
        {"aggregation_size": 1},
    ]
    assert [
        refusal(tarragon.ConfigError, lambda one: Config(**one), one) for one in wrong
    ] == snapshot
