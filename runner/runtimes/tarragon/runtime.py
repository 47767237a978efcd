"""The runtime of a process: it initialises graphs and runs them (Cicotti 2011, Table 3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from runner.runtimes.check import wanted
from runner.runtimes.tarragon.compiled import CompiledTask
from runner.runtimes.tarragon.config import Config, check_compiled_tasks, thread_level
from runner.runtimes.tarragon.engine import Engine, waiting
from runner.runtimes.tarragon.errors import (
    CommunicationError,
    ConfigError,
    Deadlock,
    ExecutionError,
    GraphError,
    TarragonError,
)
from runner.runtimes.tarragon.graph import DEFAULT_SIZE, WAIT, Dependency, Graph, Task
from runner.runtimes.tarragon.message import Message
from runner.runtimes.tarragon.quiescence import Rounds
from runner.runtimes.tarragon.transport import Transport
from runner.runtimes.tarragon.visitors import (
    AffinityVisitor,
    EdgeVisitor,
    OverlapVisitor,
    SizeVisitor,
)
from runner.runtimes.workers import affinity
from runner.runtimes.workers.failure import end_job
from runner.runtimes.workers.thread_level import require_level
from runner.runtimes.workers.timers import WorkerTimes

if TYPE_CHECKING:
    from runner.runtimes.tarragon.checked import CheckedTasks


class Route:
    """The targets of a put on an edge: tasks of this process, and tasks by other process.

    Edges with one tag share a route. With ``is_shared`` the tasks of a process share one message,
    else each gets its own.
    """

    __slots__ = ("is_shared", "local_targets", "remote_targets")

    def __init__(self, is_shared: bool) -> None:
        self.local_targets: list[int] = []
        self.remote_targets: list[tuple[int, list[int]]] = []
        self.is_shared = is_shared

    def add(self, process: int, target: int) -> None:
        """Add a task of another process."""
        for other, targets in self.remote_targets:
            if self.is_shared and other == process:
                targets.append(target)
                return
        self.remote_targets.append((process, [target]))


class Tarragon:
    """The runtime; ``comm`` is None for one process without MPI.

    ``size``: number of processes; ``id``: that of this one.  ``init_time`` and ``exec_time``:
    seconds of the last :meth:`graph_init` and :meth:`graph_execute`.
    """

    def __init__(self, comm: Any = None, config: Config | None = None) -> None:
        self.config = config or Config()
        self.comm = None if comm is None else comm.Dup()
        self.size = 1 if comm is None else comm.size
        self.id = 0 if comm is None else comm.rank
        self.init_time = self.exec_time = 0.0
        self.times: list[WorkerTimes] = []
        """The times of each worker in the last execution."""
        self.messages = self.bytes = 0
        """Messages to other processes in the last execution, and their bytes."""
        self._engine: Engine | CheckedTasks | None = None
        self._routes: dict[Dependency, tuple[Route, bool]] = {}
        self._limit = DEFAULT_SIZE
        self._masks, self._number = affinity.masks_on_node(self.comm)
        affinity.check_affinity(
            self.config.workers, self._masks[self._number], self.config.pinning, ConfigError
        )
        if comm is not None:
            level = thread_level(self.config)
            require_level(level, f"--thread-level {level}", ConfigError)

    def graph_init(self, graph: Graph[Any], visitors: Sequence[Any] = ()) -> None:
        """Prepare a graph: apply the configuration's metadata and the ``visitors``, size buffers,
        and call ``vinit`` of every task.  Collective."""
        begin = perf_counter()
        config = self.config
        if config.priority == "edges":
            graph.accept(OverlapVisitor())
        if config.affinity != "none":
            graph.accept(AffinityVisitor(config.workers, config.affinity))
        if config.aggregation:
            graph.accept(EdgeVisitor(aggregation=True))
        for visitor in visitors:
            graph.accept(visitor)
        tasks = list(graph)
        job_comm = self.comm if self.size > 1 else None
        is_compiled = self._has_compiled_tasks(tasks)
        transport = rounds = None
        limit = DEFAULT_SIZE
        if not is_compiled:
            limit, most = self._prepare(graph, tasks)
            if job_comm is not None:
                is_serialized = config.thread_level == "serialized"
                transport = Transport(job_comm, limit, is_serialized, config.aggregation_size, most)
                rounds = Rounds(job_comm)
        self._limit = limit or DEFAULT_SIZE
        masks, number = self._masks, self._number
        serves = config.threads == "service"
        threads = config.workers + (serves and config.service == "dedicated")
        cpus = affinity.cpu_places(threads, config.pinning, masks, number)
        if serves and len(cpus) == config.workers:
            # The thread for messages shares the core of the first worker.
            cpus.append(cpus[0])
        if is_compiled and wanted.is_wanted():
            # Imported only then: a graph that is not checked starts faster.
            from runner.runtimes.tarragon.checked import CheckedTasks

            self._engine = CheckedTasks(cast(list[CompiledTask], tasks), job_comm)
        else:
            self._engine = Engine(
                tasks,
                config,
                cpus if job_comm is not None else cpus[: config.workers],
                affinity.is_crowded(config.workers + serves, masks),
                self.size > len(masks),
                transport,
                rounds,
                is_compiled,
                job_comm,
            )
        self._engine.init()
        if self.comm is not None:
            self.comm.Barrier()
        self.init_time = perf_counter() - begin

    def _has_compiled_tasks(self, tasks: list[Task]) -> bool:
        """True if the tasks are compiled; raises :class:`GraphError` if only some are."""
        count = sum(isinstance(task, CompiledTask) for task in tasks)
        kinds = [(count, len(tasks) - count)]
        if self.comm is not None:
            kinds = self.comm.allgather(kinds[0])
        has_compiled, has_others = any(k[0] for k in kinds), any(k[1] for k in kinds)
        if has_compiled and has_others:
            raise GraphError(
                "a graph has compiled tasks and others: make all of one kind", code="tarragon.graph"
            )
        if has_compiled:
            check_compiled_tasks(self.config)
        return has_compiled

    def _prepare(self, graph: Graph[Any], tasks: list[Task]) -> tuple[int, int]:
        """Find the targets of each edge; returns the bytes of the job's largest payload, and the
        largest number of tasks for one message."""
        sizes = SizeVisitor()
        graph.accept(sizes)
        self._routes = {}
        for task in tasks:
            self._route(graph, task)
        most = max(
            (len(t) for r, _ in self._routes.values() for _, t in r.remote_targets), default=1
        )
        if self.comm is None:
            return sizes.size, most
        sizes_of = self.comm.allgather((sizes.size, most))
        return max(size for size, _ in sizes_of), max(most for _, most in sizes_of)

    def graph_execute(self, graph: Graph[Any]) -> None:
        """Run the graph until no task can run any more. Collective.

        Raises :class:`ExecutionError` for a task that has failed and :class:`Deadlock` for tasks
        that wait for ever; with several processes these end the job.
        """
        engine = self._engine
        if engine is None:
            raise TarragonError(
                "graph_execute: call graph_init before each execution", code="tarragon.call"
            )
        if self.comm is not None:
            self.comm.Barrier()
        begin = perf_counter()
        engine.run()
        self.exec_time = perf_counter() - begin
        self._engine = None
        self.times = engine.times()
        if engine.failure is not None:
            self._fail(*engine.failure)
        self.messages = sum(times.messages for times in self.times)
        self.bytes = sum(times.bytes for times in self.times)
        if engine.transport is not None:
            self.messages, self.bytes = engine.transport.messages, engine.transport.bytes
            engine.transport.close()
        self._end(engine)

    def finalize(self) -> None:
        """Free the communicator. Collective."""
        if self.comm is not None:
            self.comm.Free()

    def put(self, edge: Dependency, message: Message) -> None:
        """See :meth:`Dependency.put`."""
        # Compiled tasks, which alone are checked, put nothing.
        engine = cast(Engine | None, self._engine)
        if engine is None:
            raise TarragonError(
                f"task {edge.source.id} sends outside an execution", code="tarragon.message"
            )
        limit = self._limit if edge.max_size is None else edge.max_size
        if message.size > limit:
            raise CommunicationError(
                f"task {edge.source.id} sends {message.size} bytes to task {edge.target}; the "
                f"edge allows {limit}: connect it with max_size={message.size}",
                code="tarragon.message",
            )
        message.source = edge.source.id
        route, small = self._routes[edge]
        if engine.transport is not None:
            for number, (process, targets) in enumerate(route.remote_targets):
                # The first one is sent in place; its envelope must not change any more.
                is_original = number == 0 and (route.is_shared or not route.local_targets)
                one = message if is_original else message.copy()
                engine.transport.send(process, targets, one, edge.source, small)
        if route.is_shared or len(route.local_targets) == 1:
            engine.deliver(message, route.local_targets)
        else:
            for target in route.local_targets:
                engine.deliver(message.copy(), [target])

    def _route(self, graph: Graph[Any], task: Task) -> None:
        routes_by_tag: dict[int, Route] = {}
        for edge in task.dependencies:
            is_shared = self.config.tagging
            route = Route(is_shared)
            if edge.tag is not None:
                route = routes_by_tag.setdefault(edge.tag, route)
            process = graph.locate(edge.target)
            if process == self.id:
                route.local_targets.append(edge.target)
            else:
                route.add(process, edge.target)
            self._routes[edge] = route, edge.aggregation

    def _end(self, engine: Engine | CheckedTasks) -> None:
        """Ask the waiting tasks if that is correct; else it is a deadlock."""
        waiting_tasks = waiting(engine.tasks)
        for task in waiting_tasks:
            task.vterminate()
        lines = [
            f"task {task.id}: {task.describe()}" for task in waiting_tasks if task.state == WAIT
        ]
        all_lines = [lines] if self.comm is None else self.comm.allgather(lines)
        if any(all_lines):
            raise Deadlock([line for lines in all_lines for line in lines])

    def _fail(self, task: Task | None, error: BaseException) -> None:
        """Raise the error; with several processes print it and end the job."""
        failure = error
        if not isinstance(failure, TarragonError):
            who = "the runtime" if task is None else f"task {task.id}"
            text = f"{who} failed: {type(error).__name__}: {error}"
            failure = ExecutionError(text, -1 if task is None else task.id)
        end_job(self.comm, "tarragon", failure, error)
