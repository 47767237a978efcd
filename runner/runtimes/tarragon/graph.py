"""Graphs: the tasks of all processes, each with its own, and the edges between them (Cicotti 2011,
Tables 3.1, 3.6 and 3.7, Appendix B).

A task is an object that lives as long as its graph. The runtime calls its methods: ``vinject`` for
each arriving message, which decides by the task's state if it may run (the firing rule), and
``vexecute`` when a worker runs it. The methods of one task never run at the same time.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from runner.runtimes.tarragon.distribution import Distribution, RegularDistribution
from runner.runtimes.tarragon.errors import GraphError
from runner.runtimes.tarragon.maps import Map
from runner.runtimes.tarragon.message import Message

if TYPE_CHECKING:
    from numpy.typing import NDArray

INIT, WAIT, EXEC, DONE, ERROR = range(5)
"""States of a task; DONE and ERROR are final."""
STATES = ("INIT", "WAIT", "EXEC", "DONE", "ERROR")
DEFAULT_SIZE = 65536
"""Largest payload in bytes, if no edge of the graph sets one."""


class Task:
    """One task; subclasses override the methods that begin with ``v``.

    ``priority``: the ready task with the largest one runs first. ``affinity``: the worker that
    should run it, if every worker has its own queue. ``last``: the last worker that ran it. None of
    these changes a result.
    """

    def __init__(self) -> None:
        self.id = -1
        self.graph: Graph[Any]
        self.state = INIT
        self.priority = 0
        self.affinity: int | None = None
        self.last: int | None = None
        self.dependencies: list[Dependency] = []
        self.mail: deque[Message] = deque()
        """Messages that have arrived and have not been injected yet."""
        self.lock = threading.Lock()
        """Held while one of its methods runs."""

    def connect(self, other: Task | int, **attributes: Any) -> Dependency:
        """An edge from this task to another one; ``attributes``: those of :class:`Dependency`."""
        target = other if isinstance(other, int) else other.id
        if not self.graph.map.in_map(target):
            raise GraphError(
                f"task {self.id}: there is no task {target} to connect to", code="tarragon.graph"
            )
        edge = Dependency(self, target, **attributes)
        self.dependencies.append(edge)
        return edge

    def vinit(self) -> None:
        """Called once before the graph runs; all edges exist.  By default the task is ready."""
        self.state = EXEC

    def vinject(self, message: Message) -> None:
        """A message has arrived.  By default it is dropped."""

    def vexecute(self) -> None:
        """Run; the task may put messages on its edges. By default it is then done."""
        self.state = DONE

    def vcreate(self, payload: NDArray[Any]) -> Any:
        """The object in a wrapped message of another process; called before ``vinject``. By default
        the bytes."""
        return payload

    def vdestroy(self, message: Message) -> None:
        """A message to another process has left its buffer, which may be reused."""

    def vterminate(self) -> None:
        """Nothing runs and no message is under way anywhere, and this task still waits.

        A task for which this is correct sets its state to DONE. All others are reported as a
        deadlock.
        """

    def describe(self) -> str:
        """What the task waits for, for a report."""
        return STATES[self.state]


class Dependency:
    """An edge: messages put on it arrive at ``target``.

    ``max_size``: largest payload in bytes, None for the largest of the graph.  ``aggregation``:
    small messages may be packed together.  ``tag``: edges of a task with the same tag always carry
    the same message; one put on any of them feeds all.  ``delay``: a compiled task uses a message
    in the same step (0) or in the next one (1).  They are fixed while the graph runs.
    """

    __slots__ = ("aggregation", "delay", "max_size", "source", "tag", "target")

    def __init__(
        self,
        source: Task,
        target: int,
        max_size: int | None = None,
        aggregation: bool = False,
        tag: int | None = None,
        delay: int = 0,
    ) -> None:
        self.source = source
        self.target = target
        self.max_size = max_size
        self.aggregation = aggregation
        self.tag = tag
        self.delay = delay

    def put(self, message: Message) -> None:
        """Send a message; returns at once. From now on it belongs to its receiver.

        Raises :class:`CommunicationError` if it is larger than the edge allows.
        """
        self.source.graph.runtime.put(self, message)


T = TypeVar("T", bound=Task)


class Runtime(Protocol):
    """The needs of a graph from the process that runs it."""

    size: int
    """Number of processes."""
    id: int
    """Number of this one."""

    def put(self, edge: Dependency, message: Message) -> None:
        """See :meth:`Dependency.put`."""
        ...


class Graph(Generic[T]):
    """The tasks of a map.  ``make(task number)`` makes one; it is called for tasks of this process
    only."""

    def __init__(
        self,
        runtime: Runtime,
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
        """Create a task of this process; raises :class:`GraphError` for one of another process."""
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
        """True if a task is on this process."""
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
        runtime: Runtime,
        make: Callable[[int], T],
        map_: Map,
        distribution: Distribution | None = None,
    ) -> None:
        super().__init__(runtime, make, map_, distribution)
        for number in self.range():
            self.add(number)


class SparseVectorGraph(Graph[T]):
    """A graph with those tasks of its map that the program adds."""


class Visitor:
    """Visits a graph, then each task of this process, each followed by its edges."""

    def visit_graph(self, graph: Graph[Any]) -> None:
        """Start a graph."""

    def visit_task(self, graph: Graph[Any], task: Task) -> None:
        """A task of this process."""

    def visit_dependency(self, graph: Graph[Any], task: Task, edge: Dependency) -> None:
        """An edge of the task."""
