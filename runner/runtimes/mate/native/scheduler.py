"""The scheduler on the compiled core (:mod:`runner.runtimes.core`), with the interface of the
Python one.

Compiled code decides what runs next, on each worker's thread. It calls Python to resume a rank's
function, to run a region that is a Python function, and to poll messages that Python code started.
Data only for Python code (awaited requests, collectives) stay in Python, under ``lock``.
"""

from __future__ import annotations

import threading
import types
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from runner.runtimes.core.arena import Arena
from runner.runtimes.core.core import Core, Options
from runner.runtimes.core.words import (
    BODY,
    COPY,
    CORE,
    DEADLOCK,
    DELIVERED,
    FAIL,
    FINISH,
    LAPSE,
    MPI_FAILED,
    POLL,
    RAISED,
    RAN_TO_END,
    RANK,
    REQUEST,
    RESUME,
    START,
    WORKER,
    YIELDED,
)
from runner.runtimes.mate.config import Config
from runner.runtimes.mate.context import advance, thread_rank
from runner.runtimes.mate.graph import Graph
from runner.runtimes.mate.log import Event, EventLog, Lapse
from runner.runtimes.mate.native.failure import deadlock, native_failure
from runner.runtimes.mate.native.messages import NativeMessages
from runner.runtimes.mate.native.part import NativeNode, NativePart
from runner.runtimes.mate.native.sharing import Shareable, check_sharing
from runner.runtimes.mate.native.sleepers import NativeSleepers, NoSleepers
from runner.runtimes.mate.task import ENDED, Request, Task, refuse_own_neighbor
from runner.runtimes.mate.transport import Poller, Transport
from runner.runtimes.workers.native_clock import NativeClock
from runner.runtimes.workers.timers import WorkerTimes

if TYPE_CHECKING:
    from runner.runtimes.mate.compiled import Block
    from runner.runtimes.mate.messages import MessageLayer

_EVENTS = {START: "start", BODY: "body", REQUEST: "request", FINISH: "finish"}


class NativeScheduler:
    """The ranks of one process on the compiled core."""

    def __init__(
        self,
        tasks: list[Task],
        config: Config,
        log: EventLog | None,
        is_crowded: bool,
        remote: bool,
        arena: Arena | None = None,
    ) -> None:
        self.tasks = tasks
        self.lock = threading.Lock()
        self.log = log
        self.failure: tuple[Task | None, BaseException] | None = None
        self.on_failure: Callable[[Task | None, BaseException], None] | None = None
        """Ends the whole job at once; called with the lock held."""
        polls_only = not config.idle_sleep_us
        self.core = Core(
            [task.rank for task in tasks],
            config.workers,
            self._call,
            self._body,
            Options(
                spin_s=1e9 if polls_only else config.idle_spin_us * 1e-6,
                sleep_s=config.idle_sleep_us * 1e-6,
                crowded=is_crowded,
                remote=remote,
                stealing=config.queue != "fixed",
                seed=config.schedule_seed,
                log=log is not None,
                log_ends=log is not None and log.is_partial,
            ),
            arena,
        )
        self._arena = arena
        self._words, self._queues = self.core.memory.words, self.core.queues
        self._shared_queue = config.queue == "shared"
        if self._shared_queue:
            for task in tasks:
                self.core.set_home(task.local, 0)
        self.sleepers = NativeSleepers(self.core) if config.workers > 1 else NoSleepers()
        self.clocks = [NativeClock(self.core, worker) for worker in self.core.workers]
        self._poller: Poller
        self._transport: Transport
        self._messages: NativeMessages
        self._thread = threading.local()
        self._graphs: dict[Graph, list[NativePart]] = {}
        self._nodes: list[NativeNode] = []
        self._coroutines: dict[Task, Any] = {}
        """The waiting ``async`` regions."""
        self._has_compiled = False
        """True if compiled regions may call MPI."""

    def connect(self, layer: MessageLayer) -> None:
        """Let compiled code send and receive."""
        self._transport, self._poller = layer.transport, layer.poller
        self._messages = NativeMessages(self.core, self.lock, self._thread, layer)
        table = layer.transport.table(layer.codec)
        self.core.messages(table, layer.ranks.locations)

    def meet(self) -> None:
        """Let workers of other processes of the node run regions; collective over these."""
        self.core.meet()

    def set_home(self, task: Task, worker: int) -> None:
        """From now on, queue a rank for this worker."""
        if not self._shared_queue:
            self.core.set_home(task.local, worker)

    def compute_s(self, task: Task, workers: Sequence[WorkerTimes]) -> float:
        """Seconds in the rank's bodies at the time of these worker times, just now."""
        memory, rank = self.core.memory, self.core.ranks[task.local]
        while True:
            total = memory.get_real(rank + RANK.compute)
            worker = memory.get(rank + RANK.worker)
            if not worker or memory.get(worker + WORKER.rank) != rank:
                return total
            seconds = memory.get_real(worker + WORKER.turn)
            if worker in self.core.guests:
                seconds += self.core.guest_s(worker)
            else:
                seconds += workers[memory.get(worker + WORKER.number)].compute_s
            # Its turn may have ended meanwhile.
            if (
                memory.get(worker + WORKER.rank) == rank
                and memory.get_real(rank + RANK.compute) == total
            ):
                return max(total, seconds)

    # The interface of RankScheduler.

    @property
    def ready(self) -> bool:
        """True if a rank waits for a worker."""
        words = self._words
        for head, tail in self._queues:  # noqa: SIM110
            # A generator would cost as much as starting a message.
            if words[tail] > words[head]:
                return True
        return False

    def wake(self, task: Task, urgent: bool = False) -> None:
        """Make the rank ready: the event that it waits for may have happened."""
        self.core.wake(self.core.ranks[task.local])

    def call_workers(self) -> None:
        """Nothing to do: a worker was woken when the rank became ready."""

    def call_poller(self, first: bool) -> None:
        """Make sure that a worker polls the started message."""
        self.core.set_word(CORE.outside, 1)
        self.core.call_poller()

    def complete(self, requests: Iterable[Request]) -> None:
        """Count these messages as complete; wake the ranks that wait for them."""
        # Messages of one region usually follow each other: one call counts them all.
        region: Any = None
        count = 0
        has_log = self.log is not None
        for request in requests:
            request.done = True
            request.buffer = None
            owner: Any = request.owner
            if owner is None:
                task = request.task
                task.completion_count += 1
                if task.draining and task.completion_count == task.message_count:
                    self.wake(task)
            elif owner.runs:
                owner.completion_count += 1
                if has_log:
                    self.core.note(self._thread.worker, owner.address, 1)
            elif owner is region:
                count += 1
            else:
                if count:
                    self.core.complete(self._thread.worker, region.address, count)
                region, count = owner, 1
            waiter = request.waiter
            if waiter is not None:
                request.waiter = None
                waiter.missing -= 1
                if not waiter.missing:
                    self.wake(waiter.task)
        if count:
            self.core.complete(self._thread.worker, region.address, count)

    def over(self) -> bool:
        """True if no worker has any more work."""
        return bool(self.core.word(CORE.stop))

    def fail(self, task: Task | None, error: BaseException) -> None:
        """End the job because of the first error; the lock is held."""
        if self.failure is None:
            self.failure = (task, error)
            self.core.stop()
            if self.on_failure is not None:
                self.on_failure(task, error)

    def part(self, task: Task, graph: Graph) -> NativePart:
        """The rank's part of a graph; the first call creates those of all local ranks."""
        if graph not in self._graphs:
            graph.edges()
            urgent = [region.priority > 0 for region in graph.regions]
            records = self.core.graph(graph.order(), urgent, len(self._nodes))
            parts = [NativePart(graph, t, r) for t, r in zip(self.tasks, records, strict=True)]
            self._graphs[graph] = parts
            if self.log is not None:
                self.log.graphs[graph.name] = graph
            for part in parts:
                self._nodes += part.nodes
            for part in parts:
                self._link(part, part, False)
                for neighbor in part.task.neighbors:
                    self._link(part, parts[neighbor], True)
        return self._graphs[graph][task.local]

    def _link(self, part: NativePart, source: NativePart, neighbors: bool) -> None:
        for edge in part.graph.edges():
            if edge.neighbors != neighbors:
                continue
            target, other = part.nodes[edge.target], source.nodes[edge.source]
            if target is other:
                refuse_own_neighbor(part.graph, edge.target, edge.delay, part.task)
                continue
            lead = 1 - edge.delay
            part.links.append((target, other, lead))
            self.core.link(target.address, other.address, lead)

    def add_neighbor(self, task: Task, neighbor: int) -> None:
        """Register a neighbour for present and future graphs; repetitions change nothing."""
        if neighbor in task.neighbors:
            return
        task.neighbors.append(neighbor)
        for parts in list(self._graphs.values()):
            self._link(parts[task.local], parts[neighbor], True)

    @types.coroutine
    def run_graph(
        self, part: NativePart, state: Any, iterations: range, lazy: bool
    ) -> Generator[Any, None, None]:
        """Run every region ``len(iterations)`` times; each is called with its own iteration."""
        part.state = state
        task = part.task
        block = self._bind(part, state) if part.graph.compiled else None
        task.blocker = part
        self.core.enter(
            self._thread.worker,
            part.record.address,
            len(iterations),
            iterations.start,
            iterations.step,
            int(lazy),
        )
        # The worker resumes the rank when the graph is over.
        yield
        task.blocker = None
        if block is not None:
            block.check()

    def _bind(self, part: NativePart, state: Any) -> Block:
        """Give the compiled regions their code and the words of the state."""
        # Programs without compiled regions start faster without it.
        from runner.runtimes.mate.compiled import compiled_graph

        # Compiled code cannot see the messages of the Python mailbox.
        self._messages.take_over()
        if not self._has_compiled:
            self._transport.share_lock(self.core.lock_mpi, self.core.unlock_mpi)
            self._has_compiled = True
        core = self.core
        graph = compiled_graph(part.graph)
        graph.refuse_waits()
        block = graph.bind(
            state,
            lambda context: (core.ranks[context.local_rank], *core.called),
            part.task.local,
            self._arena,
        )
        old, part.block = part.block, block
        # The messages of a previous lazy entry may still use the old block's arrays.
        part.old_block = old if old is not block else None
        if old is not block:
            for region in part.graph.regions:
                if region.compiled:
                    part.record.compiled(region.index, block.entry(region.index), block.address)
        if self._arena is not None and (block, block.load_count) != part.shared:
            self._share(part, graph.for_guests(block), block, self._arena)
            part.shared = block, block.load_count
        return block

    def _share(self, part: NativePart, shareable: Shareable, block: Block, arena: Arena) -> None:
        """Let guests run the possible regions of the part."""
        check_sharing(part.graph, shareable, block, arena)
        for region, (number, _) in shareable.items():
            with self.lock:
                room = self.core.learn(number, block.entry(region))
            part.record.share(region, number if room else 0)

    @types.coroutine
    def drain(self, task: Task) -> Generator[None, None, None]:
        """Wait until none of the rank's messages is under way; a rank ends only then."""
        for parts in list(self._graphs.values()):
            while not self.core.over(parts[task.local].record.address):
                yield
        with self.lock:
            task.draining = True
        while task.message_count != task.completion_count:
            yield

    # Functions called by compiled code, without the lock.

    def _call(self, kind: int, a: int, b: int) -> int:
        try:
            if kind == RESUME:
                return self._resume(a, self.tasks[b])
            if kind == POLL:
                self._poll()
            elif kind == DELIVERED:
                self._messages.deliver(a, b)
                self._look_outside()
            elif kind == COPY:
                self._messages.copy(a, b)
            elif kind == DEADLOCK:
                self._fail(None, deadlock(self.tasks))
            elif kind == FAIL:
                self._fail_with(b)
        except BaseException as error:
            # Not a rank's fault: MPI refused a request, or the runtime has an error.
            self._fail(None, error)
            return RAISED
        return YIELDED

    def _resume(self, worker: int, task: Task) -> int:
        """Resume a rank's function, or its ``async`` region."""
        self._enter(worker, task)
        region = self._coroutines.get(task)
        coroutine = task.coroutine if region is None else region
        assert coroutine is not None
        try:
            advance(coroutine)
        except StopIteration as stop:
            self._leave(worker)
            if region is not None:
                return self._end_async(task)
            task.result = stop.value
            task.state = ENDED
            return RAN_TO_END
        except BaseException as error:
            self._fail(task, error)
            return RAISED
        self._leave(worker)
        return YIELDED

    def _body(self, worker: int, number: int, iteration: int) -> int:
        """Run a region that is a Python function."""
        node = self._nodes[number]
        part = node.part
        task = part.task
        try:
            if self._thread.task is not task:
                self._enter(worker, task)
            task.owner = node  # type: ignore[assignment]
            node.begin()
            if node.is_async:
                self._coroutines[task] = node.body(part.state, iteration)
                return self._resume(worker, task)
            node.body(part.state, iteration)
        except BaseException as error:
            self._fail(task, error)
            return RAISED
        task.owner = None
        if node.message_count:
            self._leave(worker)
        return node.end(self.lock)

    def _end_async(self, task: Task) -> int:
        node: Any = task.owner
        del self._coroutines[task]
        task.owner = None
        # The awaited event has replaced it.
        task.blocker = node.part
        return int(node.end(self.lock))

    def _enter(self, worker: int, task: Task) -> None:
        """The calling thread runs this rank."""
        thread_rank.task = self._thread.task = task
        task.worker = worker
        task.clock = self.clocks[worker]

    def _leave(self, worker: int) -> None:
        """Python code of a rank has returned, perhaps after starting messages."""
        self.clocks[worker].settle()
        self._look_outside()

    def _look_outside(self) -> None:
        """Let workers poll if Python code has messages under way; only the poll takes it back."""
        if self._transport.pending:
            self.core.set_word(CORE.outside, 1)

    def _poll(self) -> None:
        self.core.set_word(CORE.outside, 0)
        self._poller.poll()
        self._look_outside()

    def _fail(self, task: Task | None, error: BaseException) -> None:
        with self.lock:
            self.fail(task, error)

    def _fail_with(self, code: int) -> None:
        """An error found by compiled code."""
        core = self.core
        address = core.word(CORE.failed_rank)
        task = self.tasks[core.ranks.index(address)] if address else None
        words = [core.word(field) for field in (CORE.failed_a, CORE.failed_b, CORE.failed_c)]
        if code == MPI_FAILED:
            self._fail(task, self._transport.error_of(words[0], core.under_way()))
        else:
            self._fail(task, native_failure(core, code, task, *words))

    # The threads of the workers.

    def work(self, number: int) -> None:
        """Run ranks until all have ended; the body of a worker's thread."""
        self._thread.worker = self.core.workers[number]
        self._thread.task = None
        self.core.work(self.core.workers[number])

    def settle(self) -> None:
        """Transfer the core's counts into the tasks and the log; no worker runs any more."""
        get = self.core.memory.get
        for task, rank in zip(self.tasks, self.core.ranks, strict=True):
            places = [get(rank + RANK.places0 + 8 * n) for n in range(4)]
            task.workers = {
                64 * n + b for n, w in enumerate(places) for b in range(64) if w >> b & 1
            }
        if self.log is not None:
            self._settle_log(self.log)
        self.core.close()
        # A graph keeps the blocks of living states. A state usually refers to its context, which
        # refers back to here, so it would live for ever.
        for parts in self._graphs.values():
            for part in parts:
                part.state = part.block = part.old_block = part.shared = None

    def _settle_log(self, log: EventLog) -> None:
        log.is_cut = self.core.is_cut()
        for local, receiver, messages, sent in self.core.traffic():
            log.count(self.tasks[local].rank, receiver, messages, sent)
        for kind, begin, rank, number, execution, worker, posted, end in self.core.events():
            if kind == LAPSE:
                who = -1 if rank < 0 else self.tasks[rank].rank
                log.lapses.append(Lapse(worker, who, begin, end))
            elif kind:
                node = self._nodes[number]
                log.events.append(
                    Event(
                        _EVENTS[kind],
                        begin,
                        node.part.graph.name,
                        rank,
                        node.index,
                        execution,
                        worker,
                        posted,
                    )
                )
