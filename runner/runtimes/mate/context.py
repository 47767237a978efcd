"""The context of a rank: its identity and all operations it can call (Martin 2018, appendix E).

Also: the coroutine that runs a rank, and the rank that the calling thread runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from time import perf_counter, thread_time
from typing import Any

from runner.runtimes.mate.collectives import CollectiveCalls, Collectives
from runner.runtimes.mate.config import Config
from runner.runtimes.mate.errors import MateError
from runner.runtimes.mate.graph import Graph
from runner.runtimes.mate.messages import MessageLayer
from runner.runtimes.mate.rank_position import Place
from runner.runtimes.mate.task import Task
from runner.runtimes.workers.timers import BUFFERING, COMPUTE, Timers

Main = Callable[..., Coroutine[Any, Any, Any]]


class Marks:
    """First and last arrival of the local ranks, in seconds of the process's clock."""

    def __init__(self) -> None:
        self.first: float | None = None
        self.last: float | None = None


class Context(Place, Collectives):
    """One rank's view of the job; methods that may wait are awaited, the others return at once."""

    def __init__(
        self,
        task: Task,
        layer: MessageLayer,
        calls: CollectiveCalls,
        config: Config,
        timers: Timers,
        marks: Marks,
    ) -> None:
        Collectives.__init__(self, task, layer, calls)
        transport = layer.transport
        Place.__init__(
            self,
            rank=task.rank,
            local_rank=task.local,
            size=layer.ranks.size,
            local_count=len(layer.scheduler.tasks),
            process=transport.process,
            process_count=transport.processes,
            workers=config.workers,
        )
        self.config = config
        self.global_workers = config.workers * self.process_count
        self._timers = timers
        self._marks = marks
        self._in_graph = False

    @property
    def worker(self) -> int:
        """Number of the worker that currently runs this rank."""
        return self._task.worker

    def rank_of(self, process: int, local: int) -> int:
        """Global rank of a local rank of a process; raises :class:`MateError` if it does not
        exist."""
        ranks = self._layer.ranks.ranks
        if not 0 <= process < len(ranks) or not 0 <= local < len(ranks[process]):
            raise MateError(f"process {process} has no local rank {local}", code="mate.call")
        return ranks[process][local]

    def location_of(self, rank: int) -> tuple[int, int]:
        """Process and local id of a global rank; raises :class:`MateError` if it does not exist."""
        return self._locate(rank)

    def local_count_of(self, process: int) -> int:
        """Number of ranks of a process."""
        return len(self._layer.ranks.ranks[process])

    def add_local_neighbor(self, local: int) -> None:
        """Make this rank's ``@`` dependencies wait for that local rank too, from now on.

        The relation is directed: the other rank waits for this one only if it registers it. Raises
        :class:`MateError` if there is no such rank.
        """
        if not 0 <= local < self.local_count:
            raise MateError(
                f"rank {self.rank} registers local rank {local} as neighbour, but this process has "
                f"{self.local_count} ranks",
                code="mate.call",
            )
        with self._scheduler.lock:
            self._scheduler.add_neighbor(self._task, local)

    def set_home(self, worker: int) -> None:
        """From now on, queue this rank for that worker when it is ready (``--core native``).

        Others may still steal it unless ``--queue fixed`` is set. Raises :class:`MateError` if
        there is no such worker.
        """
        if not 0 <= worker < self.workers:
            raise MateError(
                f"rank {self.rank} asks for worker {worker}, but this process has {self.workers}",
                code="mate.call",
            )
        self._scheduler.set_home(self._task, worker)

    async def execute(
        self,
        graph: Graph,
        iterations: int | range = 1,
        *,
        state: Any = None,
        lazy: bool = False,
    ) -> None:
        """Run a graph (see README.md); raises the exceptions of its regions.

        Raises :class:`GraphError` for a graph that can never run, and :class:`MateError` inside
        another graph or for a negative count.
        """
        if self._in_graph:
            raise MateError(
                f"graph {graph.name} inside another graph: graphs cannot be nested",
                code="mate.graph",
            )
        if isinstance(iterations, int):
            if iterations < 0:
                raise MateError(f"graph {graph.name}: {iterations} iterations", code="mate.graph")
            iterations = range(iterations)
        scheduler: Any = self._scheduler
        with scheduler.lock:
            part = scheduler.part(self._task, graph)
        self._in_graph = True
        try:
            await scheduler.run_graph(part, self if state is None else state, iterations, lazy)
        finally:
            self._in_graph = False

    def buffering(self) -> AbstractContextManager[None]:
        """Count the time in this block as packing and unpacking."""
        return self._task.clock.during(BUFFERING)

    def seconds(self) -> float:
        """Seconds on the clock of this process, to measure a part of a region."""
        return perf_counter()

    def cpu_seconds(self) -> float:
        """CPU time of the worker that runs this rank now; a look takes about a microsecond."""
        return thread_time()

    def start_timers(self) -> None:
        """From now on, count the times of all workers of the process; they also count from the
        start."""
        self._timers.start()

    def stop_timers(self) -> None:
        """Stop counting."""
        self._timers.stop()

    def reset_timers(self) -> None:
        """Set the counted times to zero."""
        self._timers.reset()

    def mark_first(self) -> None:
        """Record the time when the first local rank gets here."""
        if self._marks.first is None:
            self._marks.first = perf_counter()

    def mark_last(self) -> None:
        """Record the time when the last local rank gets here."""
        self._marks.last = perf_counter()

    def process_time(self) -> float:
        """Seconds from the first mark to the last; raises :class:`MateError` without marks."""
        if self._marks.first is None or self._marks.last is None:
            raise MateError(
                "process_time needs mark_first and mark_last before it", code="mate.call"
            )
        return self._marks.last - self._marks.first


async def life(context: Context, task: Task, main: Main, args: tuple[Any, ...]) -> Any:
    """Run a rank from its beginning to its end."""
    task.clock.switch(COMPUTE)
    task.kind = COMPUTE
    result = await main(context, *args)
    await context._scheduler.drain(task)
    return result


def advance(coroutine: Coroutine[Any, Any, Any]) -> None:
    """Run a rank until it waits; raises ``StopIteration`` at its end, and its exceptions."""
    value = coroutine.send(None)
    if value is not None:
        coroutine.throw(
            MateError(
                f"a rank awaited {value!r}: only the methods of ctx can be awaited "
                "(no asyncio, no bare yield)",
                code="mate.call",
            )
        )


class _ThreadRank(threading.local):
    task: Task | None = None


thread_rank = _ThreadRank()
"""The rank that this thread runs; a worker sets it before it runs a rank."""


def context() -> Context:
    """The context of the calling rank; raises :class:`MateError` outside of ranks."""
    if thread_rank.task is None:
        raise MateError(
            "this function works only in a rank: call it from a function that mate.run has started",
            code="mate.call",
        )
    current: Context = thread_rank.task.context
    return current


def process_number() -> int:
    """The number of the calling rank's process; 0 outside of ranks."""
    return 0 if thread_rank.task is None else context().process
