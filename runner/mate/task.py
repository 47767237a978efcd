"""A rank as the scheduler sees it: a coroutine with a state, and what it waits for."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from runner.mate.steps import Node, Part

if TYPE_CHECKING:
    from runner.mate.graph import Graph
    from runner.mate.timers import Clock

QUEUED, RUNNING, PARKED, ENDED = range(4)


class Blocker(Protocol):
    """Something a rank can wait for."""

    def describe(self) -> str:
        """In the words of a deadlock report."""


class Route:
    """One way for messages: direction, partner and tag of a rank, and what MPI is told."""

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
        """The tag with the local ids."""
        self.post = post
        """Starts a message in MPI, None for the mailbox."""


class Request:
    """A message that was started.  Complete once ``done`` is true; wait with ``ctx.wait``."""

    __slots__ = ("buffer", "done", "owner", "route", "status", "task", "waiter")

    def __init__(
        self, task: Task, owner: Node | None, route: Route | None, buffer: Any, status: Any
    ) -> None:
        self.task = task
        self.owner = owner
        """The region that started it, or None outside graphs."""
        self.route = route
        """None for a collective operation."""
        self.buffer = buffer
        """Kept alive until the message is complete."""
        self.status = status
        self.done = False
        self.waiter: Wait | None = None

    def describe(self) -> str:
        if self.route is None:
            return "a collective operation"
        verb = "receive from" if self.route.incoming else "send to"
        return f"{verb} rank {self.route.peer} (tag {self.route.tag})"


class Wait:
    """A rank that waits for some of its requests."""

    __slots__ = ("missing", "requests", "task")

    def __init__(self, task: Task, requests: Iterable[Request]) -> None:
        self.task = task
        self.requests = tuple(requests)
        self.missing = 0

    def describe(self) -> str:
        return ", ".join(r.describe() for r in self.requests if not r.done)


class Task:
    """One local rank.  State and flags are changed with the scheduler's lock held."""

    __slots__ = (
        "blocker",
        "clock",
        "compute_s",
        "context",
        "coroutine",
        "draining",
        "finished",
        "kind",
        "local",
        "neighbors",
        "owner",
        "parts",
        "posted",
        "rank",
        "result",
        "sequence",
        "state",
        "woken",
        "worker",
        "workers",
    )

    def __init__(self, local: int, rank: int) -> None:
        self.local = local
        self.rank = rank
        self.coroutine: Coroutine[Any, Any, Any] | None = None
        self.context: Any = None
        """What the rank was given."""
        self.state = QUEUED
        self.woken = False
        """Something happened while it ran: look again before parking it."""
        self.kind = 0
        """What its time counts as when it is resumed (see timers)."""
        self.clock: Clock
        """Of the worker that runs it."""
        self.worker = -1
        self.workers: set[int] = set()
        self.compute_s = 0.0
        self.owner: Node | None = None
        """The region that runs now."""
        self.posted = 0
        """Messages started outside regions, and those of them that are complete."""
        self.finished = 0
        self.draining = False
        """It has ended, but for these messages."""
        self.neighbors: list[int] = []
        self.parts: dict[Graph, Part] = {}
        self.sequence = [0, 0]
        """Collective operations begun: local, global."""
        self.blocker: Blocker | None = None
        self.result: Any = None
