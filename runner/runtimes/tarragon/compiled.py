"""Compiled tasks: a task whose step is machine code, with the firing rules of the core's graphs.

A compiled task runs a fixed number of steps. Each step needs one message from each incoming edge
and sends one on each outgoing edge; so the core's rule of regions
(:mod:`runner.runtimes.core.graph`) is its firing rule, and no Python code runs between steps. A
message within the process is the buffer of its sender. There are two buffers for each edge, one for
even and one for odd messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from runner.runtimes import mate
from runner.runtimes.core.core import Core
from runner.runtimes.core.words import RAN_TO_END
from runner.runtimes.mate.compiled.tasks import Tasks, message_table
from runner.runtimes.tarragon.errors import Deadlock, GraphError
from runner.runtimes.tarragon.graph import DONE, Dependency, Task

Buffers = list[NDArray[Any]]
Ends = list[tuple[int, int, Buffers]]
"""Edges with other processes: the other task's number in MPI, the delay, the buffers."""
_RECEIVE, _SEND, _COMPUTE = range(3)
"""The regions of a task; the first ready one runs first."""
_TAG = 2
"""Tag of the messages that open the connections."""


class CompiledTask(Task):
    """A task of ``steps`` equal steps; subclasses define ``compute(task, step)``.

    ``compute`` is a plain function in the dialect of MATE's compiled regions. It reads ``inputs``
    and writes ``outputs``: flat arrays of ``dtype``, two for each edge with a payload (``max_size``
    bytes), in the order of ``sources`` and ``targets``. Message ``s`` of edge ``n`` is in
    ``outputs[2 * n + s % 2]`` in the sender's step ``s``, and in ``inputs[2 * n + s % 2]`` in its
    receiver's step ``s + delay``. Edges are connected before :meth:`Tarragon.graph_init`, at most
    one to the same task; ``vinit`` is called when the buffers exist.
    """

    dtype: ClassVar[DTypeLike] = np.float64
    regions: ClassVar[mate.Graph]
    ctx: mate.Context
    """The clock and the number of the task's place; for compiled code."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "compute" in cls.__dict__:
            cls.regions = mate.Graph(cls.__name__)
            for body in (receive, send, cls.__dict__["compute"]):
                cls.regions.region(body.__name__, compiled=True)(body)

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = steps
        self.sources: list[int] = []
        self.targets: list[int] = []
        self.inputs: Buffers = []
        self.outputs: Buffers = []
        self.senders: NDArray[np.int64]
        self.receivers: NDArray[np.int64]
        """Tasks of other processes, by their number in MPI; each has a delay and two buffers."""
        self.arriving_delays: NDArray[np.int64]
        self.leaving_delays: NDArray[np.int64]
        self.arriving: Buffers
        self.leaving: Buffers

    def vexecute(self) -> None:
        raise AssertionError("its steps are compiled")


class GridTask(CompiledTask):
    """A task that runs step ``i`` when each neighbour has run step ``i - 1`` (Cicotti 2011, 4).

    Its edges lead to its neighbours, and each of them has one back; so a neighbour is at most one
    step ahead.
    """

    def connect(self, other: Task | int, **attributes: Any) -> Dependency:
        return super().connect(other, delay=1, **attributes)


def receive(task: CompiledTask, step: int) -> None:
    """Start to receive a step's inputs from other processes."""
    for n in range(len(task.senders)):
        number = step - task.arriving_delays[n]
        if number >= 0:
            task.ctx.irecv(task.arriving[2 * n + number % 2], task.senders[n], 0)


def send(task: CompiledTask, step: int) -> None:
    """Start to send a step's outputs to other processes."""
    for n in range(len(task.receivers)):
        if step + task.leaving_delays[n] < task.steps:
            task.ctx.isend(task.leaving[2 * n + step % 2], task.receivers[n], 0)


class Edges:
    """The tasks of a process, and the buffers of their edges.  ``comm``: None for one process."""

    def __init__(self, tasks: Sequence[CompiledTask], comm: Any) -> None:
        self._tasks = tasks
        self._arriving: list[Ends] = [[] for _ in tasks]
        self._leaving: list[Ends] = [[] for _ in tasks]
        self._places: dict[int, tuple[int, int]] = {}
        """Process and number within it of every task of the job."""
        ids = [task.id for task in tasks]
        for process, task_ids in enumerate([ids] if comm is None else comm.allgather(ids)):
            self._places.update({task: (process, place) for place, task in enumerate(task_ids)})
        self._numbers = {task: number for number, task in enumerate(self._places)}
        """The number of every task in compiled code."""
        self._process = 0 if comm is None else int(comm.rank)
        self._processes = 1 if comm is None else int(comm.size)
        self._wire(comm)

    def _wire(self, comm: Any) -> None:
        letters: list[list[Any]] = [[] for _ in range(self._processes)]
        for task in self._tasks:
            for edge in task.dependencies:
                self._connect(task, edge, letters)
        came = letters if comm is None else comm.alltoall(letters)
        for source, target, length, delay, steps in sorted(chain.from_iterable(came)):
            self._accept(source, self._tasks[self._places[target][1]], length, delay, steps)

    def _connect(self, task: CompiledTask, edge: Dependency, letters: list[list[Any]]) -> None:
        itemsize = np.dtype(task.dtype).itemsize
        if edge.max_size is None or edge.max_size % itemsize:
            raise GraphError(
                f"the edge from task {task.id} to task {edge.target} needs a max_size that is a "
                f"multiple of {itemsize} bytes: messages of compiled tasks have a fixed length",
                code="tarragon.graph",
            )
        if edge.target not in self._places:
            raise GraphError(
                f"task {task.id} sends to task {edge.target}, which was not added",
                code="tarragon.graph",
            )
        if sum(other.target == edge.target for other in task.dependencies) > 1:
            raise GraphError(
                f"task {task.id} has two edges to task {edge.target}: compiled tasks send one "
                "message to a task in a step, so put both into one",
                code="tarragon.graph",
            )
        length = edge.max_size // itemsize
        process = self._places[edge.target][0]
        buffers = [np.zeros(length, task.dtype) for _ in range(2)]
        if length:
            task.targets.append(edge.target)
            task.outputs += buffers
        if process != self._process:
            place = self._places[task.id][1]
            self._leaving[place].append((self._numbers[edge.target], edge.delay, buffers))
        letters[process].append((task.id, edge.target, length, edge.delay, task.steps))

    def _accept(self, source: int, task: CompiledTask, length: int, delay: int, steps: int) -> None:
        if steps != task.steps:
            raise GraphError(
                f"task {source} has {steps} steps and task {task.id}, to which it sends, "
                f"{task.steps}: compiled tasks on one edge have as many",
                code="tarragon.graph",
            )
        process, place = self._places[source]
        if process == self._process:
            sender = self._tasks[place]
            at = 2 * sender.targets.index(task.id) if length else 0
            buffers = sender.outputs[at : at + 2]
        else:
            buffers = [np.zeros(length, task.dtype) for _ in range(2)]
            own = self._places[task.id][1]
            self._arriving[own].append((self._numbers[source], delay, buffers))
        if length:
            task.sources.append(source)
            task.inputs += buffers

    def _settle(self, place: int, task: CompiledTask) -> None:
        """Give the task its arrays; compiled code takes their types from them, so none is empty."""
        none = [np.empty(0, task.dtype)]
        task.inputs, task.outputs = task.inputs or none, task.outputs or none
        task.senders, task.arriving_delays, arriving = _columns(self._arriving[place])
        task.receivers, task.leaving_delays, leaving = _columns(self._leaving[place])
        task.arriving, task.leaving = arriving or none, leaving or none


class Steps(Edges):
    """The compiled tasks of a process on its core.  ``comm``: None for a single process."""

    def __init__(
        self, core: Core, tasks: Sequence[CompiledTask], comm: Any, is_serialized: bool
    ) -> None:
        super().__init__(tasks, comm)
        self._core = core
        self._bound = Tasks(core, self._process, self._processes, len(self._places))
        if comm is not None:
            self._open(comm)
            most = 1 + max(place for _, place in self._places.values())
            table = message_table(comm, most, is_serialized)
            core.messages(table, list(self._places.values()))
        for place, task in enumerate(tasks):
            self._settle(place, task)
            task.vinit()
            is_local = not (self._arriving[place] or self._leaving[place])
            self._bound.bind(task.id, task, [_COMPUTE] if is_local else [_RECEIVE, _SEND, _COMPUTE])
        for place, task in enumerate(tasks):
            self._link(place, task)

    def _open(self, comm: Any) -> None:
        """Send a message on every edge to another process: that opens the connections."""
        ends = list(self._places.values())
        requests = [
            start(buffers[0], ends[other][0], _TAG)
            for start, edges in ((comm.Irecv, self._arriving), (comm.Isend, self._leaving))
            for other, _, buffers in chain.from_iterable(edges)
        ]
        for request in requests:
            request.Wait()

    # Regions and their dependencies.

    def _link(self, place: int, task: CompiledTask) -> None:
        link, (*remote, compute) = self._core.link, self._bound.parts[place].nodes
        if remote:
            receiving, sending = remote
            # A buffer is reused two messages later.
            link(compute, receiving, 1)
            link(receiving, compute, -1)
            link(sending, compute, 1)
            link(compute, sending, -1)
        for edge in task.dependencies:
            process, other = self._places[edge.target]
            if process != self._process:
                continue
            target = self._bound.parts[other].nodes[-1]
            if target == compute:
                if edge.delay == 0:
                    raise GraphError(
                        f"task {task.id} waits for a message of its own step", code="tarragon.graph"
                    )
                continue
            link(target, compute, 1 - edge.delay)
            if edge.max_size:
                link(compute, target, edge.delay - 1)

    def turn(self, worker: int, place: int) -> int:
        """Start a task, or end it after all its steps; raises the exceptions of a step."""
        task = self._tasks[place]
        task.last = worker
        answer = self._bound.turn(worker, place, task.steps)
        if answer == RAN_TO_END:
            task.state = DONE
        return answer

    def deadlock(self) -> Deadlock:
        """Tasks of this process wait for each other, and no message is under way."""
        return Deadlock(
            [
                f"task {task.id}: step {self._bound.step_count(place)} of {task.steps}"
                for place, task in enumerate(self._tasks)
                if task.state != DONE
            ]
        )


def _columns(ends: Ends) -> tuple[NDArray[np.int64], NDArray[np.int64], Buffers]:
    """The numbers, the delays and the buffers."""
    numbers = np.array([number for number, _, _ in ends], np.int64)
    delays = np.array([delay for _, delay, _ in ends], np.int64)
    return numbers, delays, [buffer for _, _, buffers in ends for buffer in buffers]
