"""Graphs: the tasks of all processes, each of which has its own (Cicotti 2011, Table 3.6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from runner.runtimes.tarragon.distribution import Distribution, RegularDistribution
from runner.runtimes.tarragon.errors import GraphError
from runner.runtimes.tarragon.maps import Map
from runner.runtimes.tarragon.task import Task

if TYPE_CHECKING:
    from runner.runtimes.tarragon.runtime import Tarragon
    from runner.runtimes.tarragon.visitors import Visitor

T = TypeVar("T", bound=Task)
DEFAULT_SIZE = 65536
"""Largest payload in bytes, if no edge of the graph says one."""


class Graph(Generic[T]):
    """The tasks of a map.  ``make(task number)`` makes one; it is called for tasks of this process
    only."""

    def __init__(
        self,
        runtime: Tarragon,
        make: Callable[[int], T],
        map_: Map,
        distribution: Distribution | None = None,
    ) -> None:
        self.runtime = runtime
        self.map = map_
        self.distribution = distribution or RegularDistribution(map_.size, runtime.size)
        self._make = make
        self._tasks: dict[int, T] = {}

    @property
    def size(self) -> int:
        """Number of tasks of the map, on all processes."""
        return self.map.size

    def add(self, number: int) -> T:
        """Make a task of this process; raises :class:`GraphError` for one of another process."""
        if not self.is_local(number):
            raise GraphError(
                f"task {number} is on process {self.locate(number)}, not here",
                code="tarragon.graph",
            )
        if number in self._tasks:
            raise GraphError(f"task {number} was added before", code="tarragon.graph")
        task = self._make(number)
        task.id = number
        task.graph = self
        self._tasks[number] = task
        return task

    def task(self, number: int) -> T:
        """A task of this process; raises :class:`GraphError` if it is not here."""
        if number not in self._tasks:
            raise GraphError(
                f"task {number} is not on this process, or was not added", code="tarragon.graph"
            )
        return self._tasks[number]

    def __iter__(self) -> Iterator[T]:
        """The tasks of this process in ascending order."""
        return iter([self._tasks[number] for number in sorted(self._tasks)])

    def __len__(self) -> int:
        """Number of tasks of this process."""
        return len(self._tasks)

    def range(self) -> Sequence[int]:
        """The numbers of this process."""
        return self.distribution.tasks(self.runtime.id)

    def is_local(self, number: int) -> bool:
        """Whether a task is on this process."""
        return self.locate(number) == self.runtime.id

    def locate(self, number: int) -> int:
        """The process of a task."""
        return self.distribution.locate(number)

    def accept(self, visitor: Visitor) -> None:
        """Let a visitor see the graph, its tasks of this process and their edges."""
        visitor.visit_graph(self)
        for task in self:
            visitor.visit_task(self, task)
            for edge in list(task.dependencies):
                visitor.visit_dependency(self, task, edge)


class VectorGraph(Graph[T]):
    """A graph with all tasks of its map."""

    def __init__(
        self,
        runtime: Tarragon,
        make: Callable[[int], T],
        map_: Map,
        distribution: Distribution | None = None,
    ) -> None:
        super().__init__(runtime, make, map_, distribution)
        for number in self.range():
            self.add(number)


class SparseVectorGraph(Graph[T]):
    """A graph with those tasks of its map that the program adds."""
