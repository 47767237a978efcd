"""Graphs whose result is known, for tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from runner.runtimes import tarragon


class Sum(tarragon.Task):
    """A layered graph: a task adds what arrives to its own number and sends it on."""

    def __init__(self, awaited: int, trace: list[int] | None = None) -> None:
        super().__init__()
        self._awaited = awaited
        self.value = 0
        self._trace = trace

    def vinit(self) -> None:
        self.value = self.id
        self.state = tarragon.WAIT if self._awaited else tarragon.EXEC

    def vinject(self, message: tarragon.Message) -> None:
        self.value += int(message.array(np.int64)[0])
        self._awaited -= 1
        if not self._awaited:
            self.state = tarragon.EXEC

    def vexecute(self) -> None:
        if self._trace is not None:
            self._trace.append(self.id)
        for edge in self.dependencies[:1]:  # All have one tag.
            edge.put(tarragon.Message.of(np.array([self.value % 1_000_003], np.int64)))
        self.state = tarragon.DONE

    def describe(self) -> str:
        return f"waits for {self._awaited} messages"


WIDTH, DEPTH = 6, 5


def targets(number: int) -> list[int]:
    """The tasks of the next layer that a task sends to."""
    layer, place = divmod(number, WIDTH)
    if layer == DEPTH - 1:
        return []
    return [(layer + 1) * WIDTH + (place + step) % WIDTH for step in (0, 1, 3)]


def layers(runtime: Any, trace: list[int] | None = None) -> Any:
    """The graph, with its edges."""
    graph = tarragon.VectorGraph(
        runtime,
        lambda number: Sum(0 if number < WIDTH else 3, trace),
        tarragon.CartesianMap((DEPTH, WIDTH)),
    )
    for task in graph:
        for target in targets(task.id):
            task.connect(target, max_size=8, tag=1)
    return graph


def expected() -> list[int]:
    """The value of each task."""
    values = list(range(WIDTH * DEPTH))
    for number in range(WIDTH * DEPTH):
        for target in targets(number):
            values[target] += values[number] % 1_000_003
    return values
