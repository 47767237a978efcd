"""The scheduler: the next rank to run, the sleeping workers, and notices of complete messages.

Idle workers: a worker may be woken by a ready rank, or by messages under way that no worker polls.
A woken worker counts as awake at once. It is not woken again meanwhile, and no call is wasted on a
worker that is about to wake by itself.

Ranks: one lock guards all state of a process, including that of idle workers. It is held only for
short steps of pure Python, never during a kernel or an MPI call. Such steps hold the interpreter's
lock anyway, so finer locks would gain nothing.
"""

from __future__ import annotations

import threading
import time
import types
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from runner.runtimes.mate.errors import Deadlock
from runner.runtimes.mate.graph import Graph
from runner.runtimes.mate.task import (
    ENDED,
    PARKED,
    QUEUED,
    RUNNING,
    RankGraph,
    RegionNode,
    Request,
    Task,
    link_neighbor,
    link_own,
)
from runner.runtimes.workers.timers import COMPUTE, SCHEDULING, WorkerTimes

if TYPE_CHECKING:
    from runner.runtimes.mate.log import EventLog
    from runner.runtimes.mate.messages import MessageLayer


class Sleeper:
    """The place where one worker sleeps; only one other worker may wake it at a time."""

    __slots__ = ("bell", "has_call")

    def __init__(self) -> None:
        self.bell = threading.Lock()
        self.bell.acquire()
        self.has_call = False


class Sleepers:
    """The idle workers of a process."""

    __slots__ = ("_lock", "_others", "_pollers", "asleep", "idle")

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock
        self._pollers: list[Sleeper] = []
        """Workers that wake by themselves to poll messages."""
        self._others: list[Sleeper] = []
        self.idle = 0
        """Workers without a rank, awake or asleep."""
        self.asleep = 0
        """Idle workers that sleep and were not woken."""

    @property
    def awake(self) -> int:
        """Number of idle workers that will look for a ready rank before they sleep (again)."""
        return self.idle - self.asleep

    @property
    def looking(self) -> bool:
        """True if an idle worker polls messages, now or when its time is over."""
        return self.idle > len(self._others)

    def sleep(self, sleeper: Sleeper, seconds: Callable[[], float | None]) -> None:
        """Sleep until called or until the time is over; None: until called.

        ``seconds`` is called after the worker counts as asleep. A rank that starts a message first
        appends the message and then looks for sleepers; so one of the two sees the other.
        """
        self.asleep += 1
        self._others.append(sleeper)
        time = seconds()
        if time is not None:
            self._others.remove(sleeper)
            self._pollers.append(sleeper)
        self._lock.release()
        try:
            sleeper.bell.acquire(True, -1 if time is None else time)
        finally:
            self._lock.acquire()
            if sleeper.has_call:
                sleeper.has_call = False
                # Woken after its time was over: the bell has rung, but the worker has not heard it.
                sleeper.bell.acquire(False)
            else:
                self.asleep -= 1
                (self._others if time is None else self._pollers).remove(sleeper)

    def call_for_ranks(self, ready: int) -> None:
        """Wake one worker for each ready rank that no awake idle worker will take."""
        for _ in range(min(ready - self.awake, self.asleep)):
            # A worker that polls messages continues to do so as long as there are others.
            self._call(self._others or self._pollers)

    def call_for_messages(self) -> None:
        """Wake one worker to poll messages now."""
        if self.asleep:
            self._call(self._pollers or self._others)

    def call_all(self) -> None:
        """Wake all workers: there will be no more work."""
        while self.asleep:
            self._call(self._others or self._pollers)

    def _call(self, places: list[Sleeper]) -> None:
        sleeper = places.pop()
        self.asleep -= 1
        sleeper.has_call = True
        sleeper.bell.release()


_RETRY_S = 5e-6


class RankScheduler:
    """The ranks of one process and the state that decides which of them runs: the Python core."""

    def __init__(self, tasks: list[Task], seed: int | None, log: EventLog | None) -> None:
        self.tasks = tasks
        self.lock = threading.Lock()
        self.sleepers = Sleepers(self.lock)
        self.ready: deque[Task] = deque(tasks)
        self.random = None if seed is None else Random(seed)
        self.log = log
        self.running = 0
        self.live = len(tasks)
        self.failure: tuple[Task | None, BaseException] | None = None
        self.on_failure: Callable[[Task | None, BaseException], None] | None = None
        """Ends the whole job at once; called with the lock held."""
        self._graphs: dict[Graph, list[RankGraph]] = {}

    def connect(self, layer: MessageLayer) -> None:
        """Nothing to do: only Python code sends and receives."""

    def settle(self) -> None:
        """Nothing to do: tasks and log are up to date."""

    def compute_s(self, task: Task, workers: Sequence[WorkerTimes]) -> float:
        """Seconds in the rank's bodies at the time of these worker times, just now."""
        total, begin = task.compute_s
        return total if begin is None else total + workers[task.worker].compute_s - begin

    def set_home(self, task: Task, worker: int) -> None:
        """Nothing to do: all ranks wait in one queue."""

    # The following are called with the lock held.

    def take(self) -> Task | None:
        """A rank to run, now marked as running; None if none is ready."""
        ready = self.ready
        if not ready:
            return None
        if self.random is not None:
            ready.rotate(self.random.randrange(len(ready)))
        task = ready.popleft()
        task.state = RUNNING
        self.running += 1
        return task

    def wake(self, task: Task, urgent: bool = False) -> None:
        """Make the rank ready: the event that it waits for may have happened."""
        if task.state == PARKED:
            task.state = QUEUED
            if urgent:
                self.ready.appendleft(task)
            else:
                self.ready.append(task)
        elif task.state == RUNNING:
            task.has_wakeup = True

    def call_workers(self) -> None:
        """Wake a sleeping worker for each ready rank that no idle worker is about to take.

        A worker that makes ranks ready calls this before it enters a rank's code or sleeps.
        """
        if self.sleepers.asleep:
            self.sleepers.call_for_ranks(len(self.ready))

    def call_poller(self, first: bool) -> None:
        """Make sure that a worker polls the started message, the ``first`` of all.

        The worker that started it may now enter a long kernel. Called without the lock.
        """
        sleepers = self.sleepers
        if sleepers.awake:
            return
        if first or not sleepers.looking:
            with self.lock:
                if not sleepers.awake:
                    sleepers.call_for_messages()

    def over(self) -> bool:
        """True if no worker has any more work."""
        return not self.live or self.failure is not None

    def end_turn(self, task: Task, is_over: bool) -> None:
        """Handle a rank that has returned its worker."""
        self.running -= 1
        if is_over:
            task.state = ENDED
            self.live -= 1
            if not self.live:
                self.sleepers.call_all()
        elif task.has_wakeup:
            task.has_wakeup = False
            task.state = QUEUED
            self.ready.append(task)
        else:
            task.state = PARKED

    def complete(self, requests: Iterable[Request]) -> None:
        """Count these messages as complete for their regions; wake the ranks that wait for them."""
        log, wake = self.log, self.wake
        for request in requests:
            request.done = True
            request.buffer = None
            if log is not None:
                log.request_done(request)
            owner = request.owner
            if owner is None:
                task = request.task
                task.completion_count += 1
                if task.draining and task.completion_count == task.message_count:
                    wake(task)
            else:
                owner.part.request_done(owner, wake)
            waiter = request.waiter
            if waiter is not None:
                # The two objects refer to each other; otherwise only the cycle collector would free
                # them.
                request.waiter = None
                waiter.missing -= 1
                if not waiter.missing:
                    wake(waiter.task)

    def check_deadlock(self) -> None:
        """Fail if nothing in this process can ever continue; nothing may be under way in MPI."""
        if self.running or self.ready or not self.live or self.failure:
            return
        waiting = [t for t in self.tasks if t.state == PARKED]
        lines = [
            f"  rank {t.rank}: {t.blocker.describe() if t.blocker else 'waits'}" for t in waiting
        ]
        self.fail(
            None,
            Deadlock(
                "deadlock: no message is under way that could wake one of the waiting ranks\n"
                + "\n".join(lines),
                code="mate.deadlock",
            ),
        )

    def fail(self, task: Task | None, error: BaseException) -> None:
        """End the job because of the first error."""
        if self.failure is None:
            self.failure = (task, error)
            self.sleepers.call_all()
            if self.on_failure is not None:
                self.on_failure(task, error)

    def part(self, task: Task, graph: Graph) -> RankGraph:
        """The rank's part of a graph; the first call creates those of all local ranks."""
        if graph not in self._graphs:
            graph.edges()
            make = RankGraph if self.log is None else self.log.part
            parts = [make(graph, t, self.random) for t in self.tasks]
            self._graphs[graph] = parts
            for part in parts:
                link_own(part)
                for neighbor in part.task.neighbors:
                    link_neighbor(part, parts[neighbor])
                part.task.parts[graph] = part
        return task.parts[graph]

    def add_neighbor(self, task: Task, neighbor: int) -> None:
        """Register a neighbour for present and future graphs; repetitions change nothing."""
        if neighbor in task.neighbors:
            return
        task.neighbors.append(neighbor)
        for parts in list(self._graphs.values()):
            link_neighbor(parts[task.local], parts[neighbor])

    # The following are coroutines of a rank, called without the lock.

    @types.coroutine
    def run_graph(
        self, part: RankGraph, state: Any, iterations: range, lazy: bool
    ) -> Generator[Any, None, None]:
        """Run every region ``len(iterations)`` times; each is called with its own iteration.

        A rank keeps its worker as long as one of its regions is ready (Martin 2018, chapter 4).
        """
        task, lock, wake = part.task, self.lock, self.wake
        sleepers = self.sleepers
        count = len(iterations)
        node: RegionNode | None = None
        with lock:
            part.enter(count, lazy)
        task.clock.switch(SCHEDULING)
        task.kind = SCHEDULING
        acquire, release = lock.acquire, lock.release
        while True:
            if not acquire(False):
                acquire_patiently(lock)
            try:
                if node is not None:
                    part.end_body(node, wake)
                    if sleepers.asleep and self.ready:
                        self.call_workers()
                node = part.take()
                if node is None:
                    if part.over():
                        break
                    part.waiting = True
                    task.blocker = part
            finally:
                release()
            if node is None:
                yield
                continue
            task.owner = node
            clock = task.clock
            clock.regions += 1
            clock.switch(COMPUTE)
            if node.is_async:
                task.kind = COMPUTE
                yield from node.body(state, iterations[count - node.remaining]).__await__()
                task.kind = SCHEDULING
            else:
                node.body(state, iterations[count - node.remaining])
            task.clock.switch(SCHEDULING)
            task.owner = None
        task.blocker = None
        task.kind = COMPUTE
        task.clock.switch(COMPUTE)

    @types.coroutine
    def drain(self, task: Task) -> Generator[None, None, None]:
        """Wait until none of the rank's messages is under way; a rank ends only then."""
        for part in task.parts.values():
            with self.lock:
                part.lazy = False
                part.waiting = bool(part.busy)
            while part.busy:
                yield
        with self.lock:
            task.draining = True
        while task.message_count != task.completion_count:
            yield


def acquire_patiently(lock: threading.Lock) -> None:
    """Take a lock that is held, without queueing for it.

    A thread that blocks on the lock gets it when the holder releases it, before it has the
    interpreter's lock. The holder then blocks at its next step, and so on. Every step then costs
    two switches between threads (5 us instead of 2 us a region). Asking again later breaks this
    chain.
    """
    while not lock.acquire(blocking=False):
        time.sleep(_RETRY_S)
