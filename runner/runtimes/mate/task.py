"""A rank in the view of the scheduler, and its progress in a graph.

:class:`Task` is the rank: a coroutine with a state, and what it waits for. :class:`RankGraph` is
its progress in a graph, with the regions that may run next.

The rule (Martin 2018, chapter 4; a region's step is its next execution): region R may run when
``done(X) >= done(R) + 1 - delay`` for each region X that it depends on, of the rank itself or of
every registered neighbour. Counts grow by one at a time, so nothing is scanned. Each region keeps
the number of its unmet dependencies. A finishing region notifies the regions that needed exactly
this count.

All functions here are called with the scheduler's lock held, unless they say otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

from runner.runtimes.mate.errors import GraphError
from runner.runtimes.mate.graph import Graph

if TYPE_CHECKING:
    from runner.runtimes.mate.graph import Graph
    from runner.runtimes.workers.timers import Clock


QUEUED, RUNNING, PARKED, ENDED = range(4)


class Blocker(Protocol):
    """Something that a rank can wait for."""

    def describe(self) -> str:
        """The text for a deadlock report."""


class Route:
    """The route of messages: direction, partner and tag of a rank, and MPI's arguments."""

    __slots__ = ("incoming", "peer", "post", "process", "tag", "wire")

    def __init__(
        self,
        incoming: bool,
        peer: int,
        tag: int,
        process: int,
        wire: int,
        post: Callable[[Any, int, int], Any] | None,
    ) -> None:
        self.incoming = incoming
        self.peer = peer
        self.tag = tag
        self.process = process
        self.wire = wire
        """The tag that includes the local ids."""
        self.post = post
        """Starts a message in MPI; None for the mailbox."""


class Request:
    """A started message; it is complete once ``done`` is true. Wait with ``ctx.wait``."""

    __slots__ = ("buffer", "done", "owner", "route", "status", "task", "waiter")

    def __init__(
        self, task: Task, owner: RegionNode | None, route: Route | None, buffer: Any, status: Any
    ) -> None:
        self.task = task
        self.owner = owner
        """The region that started it; None outside graphs."""
        self.route = route
        """None for a collective operation."""
        self.buffer = buffer
        """Referenced until the message is complete, so that the memory stays."""
        self.status = status
        self.done = False
        self.waiter: RankWait | None = None

    def describe(self) -> str:
        if self.route is None:
            return "a collective operation"
        verb = "receive from" if self.route.incoming else "send to"
        return f"{verb} rank {self.route.peer} (tag {self.route.tag})"


class RankWait:
    """A rank that waits for some of its requests."""

    __slots__ = ("missing", "requests", "task")

    def __init__(self, task: Task, requests: Iterable[Request]) -> None:
        self.task = task
        self.requests = tuple(requests)
        self.missing = 0

    def describe(self) -> str:
        return ", ".join(r.describe() for r in self.requests if not r.done)


class Task:
    """One local rank; state and flags are changed with the scheduler's lock held."""

    __slots__ = (
        "blocker",
        "clock",
        "completion_count",
        "compute_s",
        "context",
        "coroutine",
        "draining",
        "has_wakeup",
        "kind",
        "local",
        "message_count",
        "neighbors",
        "owner",
        "parts",
        "rank",
        "result",
        "sequence",
        "state",
        "worker",
        "workers",
    )

    def __init__(self, local: int, rank: int) -> None:
        self.local = local
        self.rank = rank
        self.coroutine: Coroutine[Any, Any, Any] | None = None
        self.context: Any = None
        """The context passed to the rank's function."""
        self.state = QUEUED
        self.has_wakeup = False
        """An event occurred while it ran; check again before it is parked."""
        self.kind = 0
        """The kind as which its time counts when it is resumed (see timers)."""
        self.clock: Clock
        """The clock of the worker that runs it."""
        self.worker = -1
        self.workers: set[int] = set()
        self.compute_s: tuple[float, float | None] = 0.0, None
        """Seconds in its bodies before this turn, and its worker's clock at the start of this turn.

        None: it does not run. Only for the Python core.
        """
        self.owner: RegionNode | None = None
        """The running region."""
        self.message_count = 0
        """Number of messages started outside regions, and number of complete ones."""
        self.completion_count = 0
        self.draining = False
        """The rank has ended, except for these messages."""
        self.neighbors: list[int] = []
        self.parts: dict[Graph, RankGraph] = {}
        self.sequence = [0, 0]
        """Number of collective operations begun: local, global."""
        self.blocker: Blocker | None = None
        self.result: Any = None


class RegionNode:
    """One region of one rank."""

    __slots__ = (
        "bit",
        "body",
        "busy",
        "completion_count",
        "done",
        "index",
        "inputs",
        "is_async",
        "is_body_over",
        "message_count",
        "outputs",
        "part",
        "remaining",
        "unmet",
        "urgent",
    )

    def __init__(self, part: RankGraph, index: int, place: int) -> None:
        region = part.graph.regions[index]
        self.part = part
        self.index = index
        self.bit = 1 << place
        self.urgent = region.priority > 0
        """True if the rank overtakes others when this region becomes ready."""
        self.body = region.body
        self.is_async = region.is_async
        self.done = 0
        """Number of finished executions since the job began."""
        self.unmet = 0
        """Number of dependencies that the next execution still waits for."""
        self.remaining = 0
        """Number of executions that this entry of the graph has not ended yet."""
        self.busy = False
        """True if it runs or its messages are under way."""
        self.is_body_over = False
        self.message_count = 0
        """Messages that the running execution started; the rank counts them without the lock."""
        self.completion_count = 0
        """Number of complete ones; two counters, so that each has a single writer."""
        self.outputs: list[tuple[RegionNode, int]] = []
        self.inputs: list[tuple[RegionNode, int]] = []


class RankGraph:
    """One rank's part of a graph."""

    __slots__ = (
        "active",
        "busy",
        "graph",
        "lazy",
        "nodes",
        "nodes_by_order",
        "random",
        "ready",
        "task",
        "waiting",
    )

    def __init__(self, graph: Graph, task: Task, random: Random | None) -> None:
        self.graph = graph
        self.task = task
        self.random = random
        order = graph.order()
        self.nodes = [RegionNode(self, r.index, order.index(r.index)) for r in graph.regions]
        self.nodes_by_order = [self.nodes[index] for index in order]
        self.ready = 0
        """Bit mask of the regions that may run now."""
        self.active = 0
        """Number of regions that this entry still has to run."""
        self.busy = 0
        self.lazy = False
        self.waiting = False

    def enter(self, count: int, lazy: bool) -> None:
        """Allow ``count`` more executions of every region."""
        self.lazy = lazy
        if count == 0:
            return
        self.active = len(self.nodes)
        for node in self.nodes:
            node.remaining = count
            if not node.unmet and not node.busy:
                self.ready |= node.bit

    def take(self) -> RegionNode | None:
        """The region to run now; None if none may run: then either :meth:`over`, or wait."""
        ready = self.ready
        if not ready:
            return None
        bit = ready & -ready if self.random is None else _any_bit(ready, self.random)
        self.ready = ready ^ bit
        node = self.nodes_by_order[bit.bit_length() - 1]
        node.busy = True
        node.is_body_over = False
        node.message_count = node.completion_count = 0
        self.busy += 1
        return node

    def over(self) -> bool:
        """True if the rank may leave the graph."""
        return not self.active and (self.lazy or not self.busy)

    def end_body(self, node: RegionNode, wake: Callable[..., None]) -> None:
        """The region's function has returned; it finishes once its messages are complete."""
        node.remaining -= 1
        if not node.remaining:
            self.active -= 1
        node.is_body_over = True
        if node.message_count == node.completion_count:
            self.finish(node, wake)

    def request_done(self, node: RegionNode, wake: Callable[..., None]) -> None:
        """Count one of the region's messages as complete."""
        node.completion_count += 1
        if node.is_body_over and node.message_count == node.completion_count:
            self.finish(node, wake)

    def finish(self, node: RegionNode, wake: Callable[..., None]) -> None:
        """Count the execution and notify every region that waited for exactly this one."""
        done = node.done = node.done + 1
        node.busy = False
        self.busy -= 1
        unmet = 0
        for source, lead in node.inputs:
            if source.done < done + lead:
                unmet += 1
        node.unmet = unmet
        if node.remaining and not unmet:
            self.ready |= node.bit
        for target, lead in node.outputs:
            if done == target.done + lead:
                target.unmet -= 1
                if not target.unmet and target.remaining and not target.busy:
                    part = target.part
                    part.ready |= target.bit
                    if part.waiting:
                        part.waiting = False
                        wake(part.task, target.urgent)
        if self.waiting and (self.ready or not (self.active or self.busy)):
            self.waiting = False
            wake(self.task)

    def describe(self) -> str:
        """What the regions of a stuck rank wait for."""
        waits = [self._why(n) for n in self.nodes if n.remaining and not n.busy]
        waits += [
            f"{self.graph.regions[n.index].name} waits for its messages"
            for n in self.nodes
            if n.busy
        ]
        return f"graph {self.graph.name}: " + "; ".join(waits)

    def _why(self, node: RegionNode) -> str:
        missing = [
            f"{self.graph.regions[source.index].name} of local rank {source.part.task.local} "
            f"(finished {source.done} times, needed {node.done + lead})"
            for source, lead in node.inputs
            if source.done < node.done + lead
        ]
        name = self.graph.regions[node.index].name
        return f"{name} (execution {node.done}) waits for {', '.join(missing)}"


def _any_bit(mask: int, random: Random) -> int:
    bits = [1 << i for i in range(mask.bit_length()) if mask >> i & 1]
    return random.choice(bits)


def link(target: RegionNode, source: RegionNode, delay: int) -> None:
    """Make ``target`` depend on ``source``; raises :class:`GraphError` if it could never run."""
    if target is source:
        # A region's own previous execution has always finished.
        refuse_own_neighbor(target.part.graph, target.index, delay, target.part.task)
        return
    lead = 1 - delay
    source.outputs.append((target, lead))
    target.inputs.append((source, lead))
    if source.done < target.done + lead:
        target.unmet += 1
        target.part.ready &= ~target.bit


def refuse_own_neighbor(graph: Graph, region: int, delay: int, task: Task) -> None:
    """Refuse a region that waits for itself in the same iteration; raises :class:`GraphError`."""
    if delay == 0:
        name = graph.regions[region].name
        raise GraphError(
            f"graph {graph.name}: region {name} depends on {name}@ and local rank {task.local} is "
            "registered as its own neighbour: it would wait for itself; use '*@'",
            code="mate.graph",
        )


def link_own(part: RankGraph) -> None:
    """Set up the dependencies between regions of one rank."""
    for edge in part.graph.edges():
        if not edge.neighbors:
            link(part.nodes[edge.target], part.nodes[edge.source], edge.delay)


def link_neighbor(part: RankGraph, neighbor: RankGraph) -> None:
    """Set up the ``@`` dependencies of a rank on one registered neighbour."""
    for edge in part.graph.edges():
        if edge.neighbors:
            link(part.nodes[edge.target], neighbor.nodes[edge.source], edge.delay)
