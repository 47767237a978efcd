"""Visitors: they analyse a graph, or set its attributes, before it runs (Cicotti 2011, 3.6).

Priorities, affinities, tags and aggregation change how a graph runs, never what it computes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runner.runtimes.tarragon.graph import DEFAULT_SIZE, Dependency, Graph, Task, Visitor


class SizeVisitor(Visitor):
    """The largest payload in bytes that an edge of this process may carry."""

    def __init__(self) -> None:
        self.size = 0

    def visit_dependency(self, graph: Graph[Any], task: Task, edge: Dependency) -> None:
        self.size = max(self.size, DEFAULT_SIZE if edge.max_size is None else edge.max_size)


class OverlapVisitor(Visitor):
    """Priority by edges to other processes: their messages leave as early as possible.

    The printed algorithm counts local edges, the surrounding text remote ones; the text is right
    (Cicotti 2011, L967, L1341).
    """

    def visit_dependency(self, graph: Graph[Any], task: Task, edge: Dependency) -> None:
        task.priority += not graph.is_local(edge.target)


class PriorityVisitor(Visitor):
    """Priority by a function of the task's number; by default the wavefront's: higher nearer to the
    top row."""

    def __init__(self, priority: Callable[[int], int]) -> None:
        self._priority = priority

    def visit_task(self, graph: Graph[Any], task: Task) -> None:
        task.priority = self._priority(task.id)


class AffinityVisitor(Visitor):
    """Affinity of the tasks of a process to its workers: ``block`` gives each worker neighbouring
    tasks, ``round_robin`` deals them out."""

    def __init__(self, workers: int, form: str) -> None:
        self._workers = workers
        self._form = form
        self._number = 0
        self._count = 0

    def visit_graph(self, graph: Graph[Any]) -> None:
        self._number, self._count = 0, len(graph)

    def visit_task(self, graph: Graph[Any], task: Task) -> None:
        block_worker = self._number * self._workers // max(self._count, 1)
        task.affinity = block_worker if self._form == "block" else self._number % self._workers
        self._number += 1


class EdgeVisitor(Visitor):
    """Sets attributes of all edges, such as ``aggregation=True``."""

    def __init__(self, **attributes: Any) -> None:
        self._attributes = attributes

    def visit_dependency(self, graph: Graph[Any], task: Task, edge: Dependency) -> None:
        for name, value in self._attributes.items():
            setattr(edge, name, value)


class NearestNeighborConnector(Visitor):
    """Edges to all nearest neighbours in the map, both ways along each of ``axes``."""

    def __init__(self, periodic: bool = False, **attributes: Any) -> None:
        self._periodic = periodic
        self._attributes = attributes

    def visit_task(self, graph: Graph[Any], task: Task) -> None:
        for axis in range(len(graph.map.shape)):
            for step in (-1, 1):
                self.connect(graph, task, axis, step)

    def connect(self, graph: Graph[Any], task: Task, axis: int, step: int) -> None:
        """An edge along one axis, if there is a neighbour."""
        other = graph.map.at(task.id, axis, step, self._periodic)
        if other is not None and other != task.id:
            task.connect(other, **self._attributes)


class OneNeighborConnector(NearestNeighborConnector):
    """Edges along one axis: both ways, or in the given direction only (1: to higher numbers, the
    thesis' ``OneNeighborForwardConnector``; -1: ``OneNeighborBackwardConnector``)."""

    def __init__(
        self, axis: int, direction: int = 0, periodic: bool = False, **attributes: Any
    ) -> None:
        super().__init__(periodic, **attributes)
        self._axis = axis
        self._steps = (-1, 1) if direction == 0 else (direction,)

    def visit_task(self, graph: Graph[Any], task: Task) -> None:
        for step in self._steps:
            self.connect(graph, task, self._axis, step)
