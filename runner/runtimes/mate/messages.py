"""Messages between ranks, as methods of a rank's context.

:class:`Messages` has the methods.

The mailbox is the path within a process: a message between two ranks of one process is one copy,
without MPI. Nothing is buffered: the later of the two copies from the sender's buffer into the
receiver's, and both messages are then complete. So a blocking ``send`` waits for its ``recv``, as
MPI allows.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Generator, Iterable
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.runtimes.mate.config import RankMap
from runner.runtimes.mate.errors import MateError
from runner.runtimes.mate.scheduler_interface import SchedulingCore
from runner.runtimes.mate.tags import TagCodec
from runner.runtimes.mate.task import RankWait, Request, Route, Task
from runner.runtimes.mate.transport import Poller, Transport, as_bytes, payload, size_of
from runner.runtimes.workers.timers import MPI, WAITING

_LOOKS = 10
"""Number of polls that take about as long as parking a rank and resuming it."""
_MANY_ROUTES = 4096
"""Largest number of cached routes: a program with ever new tags must not fill the memory."""


class MessageLayer:
    """The message layer that the ranks of a process share."""

    def __init__(
        self, ranks: RankMap, scheduler: SchedulingCore, transport: Transport, poller: Poller
    ) -> None:
        self.ranks = ranks
        self.poller = poller
        self.scheduler = scheduler
        self.transport = transport
        self.codec = TagCodec.fit(transport.tag_ub, ranks.largest)
        self.mailbox = Mailbox(transport)


class Messages:
    """Point-to-point messages; ``dest`` and ``source`` are global ranks."""

    def __init__(self, task: Task, layer: MessageLayer) -> None:
        self._task = task
        self._layer = layer
        self._scheduler = layer.scheduler
        self._sleepers = layer.scheduler.sleepers
        self._transport = layer.transport
        self._incoming = layer.transport.incoming
        self._with_status = layer.transport.with_status
        self._mailbox = layer.mailbox
        self._log = layer.scheduler.log
        self._send_routes: dict[tuple[int, int], Route] = {}
        self._receive_routes: dict[tuple[int, int], Route] = {}

    def isend(self, buffer: Any, dest: int, tag: int = 0) -> Request:
        """Start a message to rank ``dest``; its buffer must not change until it is complete.

        ``buffer`` is a contiguous array, or ``(buffer, count, datatype)``. Raises
        :class:`MateError` for a rank or tag that does not exist.
        """
        route = self._send_routes.get((dest, tag)) or self._route(dest, tag, False)
        data = buffer if type(buffer) is np.ndarray else payload(buffer)
        clock = self._task.clock
        clock.messages += 1
        size = data.nbytes if data is buffer else size_of(data)
        clock.bytes += size
        if self._log is not None:
            self._log.count(self._task.rank, dest, 1, size)
        return self._start(route, data, None)

    def irecv(self, buffer: Any, source: int, tag: int = 0, status: Any = None) -> Request:
        """Start to receive a message from rank ``source``; see :meth:`isend`.

        ``status`` is an ``MPI.Status`` that is filled when the message is complete.
        """
        route = self._receive_routes.get((source, tag)) or self._route(source, tag, True)
        data = buffer if type(buffer) is np.ndarray else payload(buffer)
        return self._start(route, data, status)

    def _start(self, route: Route, data: Any, status: Any) -> Request:
        task = self._task
        owner = task.owner
        request = Request(task, owner, route, data, status)
        # Counted first: the message may be complete before this call returns.
        if owner is None:
            task.message_count += 1
        else:
            owner.message_count += 1
        begin = perf_counter()
        if route.post is None:
            self._mailbox.start(request)
        else:
            raw = route.post(data, route.process, route.wire)
            (self._incoming if status is None else self._with_status).append((raw, request))
            if self._sleepers.asleep:
                self._transport.wake_poller()
        task.clock.add(MPI, perf_counter() - begin)
        return request

    def _route(self, peer: int, tag: int, incoming: bool) -> Route:
        """Check a partner and a tag once, and store the route of their messages."""
        ranks, task = self._layer.ranks, self._task
        verb = "receive from" if incoming else "send to"
        if not isinstance(peer, (int, np.integer)) or not 0 <= peer < ranks.size:
            raise MateError(
                f"rank {task.rank} wants to {verb} rank {peer}; expected a rank from 0 to "
                f"{ranks.size - 1} (wildcards are not supported)",
                code="mate.message",
            )
        process, local = ranks.locations[peer]
        pair = (local, task.local) if incoming else (task.local, local)
        wire = self._layer.codec.encode(int(tag), *pair)
        transport = self._transport
        is_local = process == transport.process and transport.direct
        post = None if is_local else transport.post(incoming)
        routes = self._receive_routes if incoming else self._send_routes
        if len(routes) >= _MANY_ROUTES:
            routes.clear()
        route = routes[peer, tag] = Route(incoming, peer, tag, process, wire, post)
        return route

    async def send(self, buffer: Any, dest: int, tag: int = 0) -> None:
        """:meth:`isend` and wait."""
        await self.wait(self.isend(buffer, dest, tag))

    async def recv(self, buffer: Any, source: int, tag: int = 0, status: Any = None) -> None:
        """:meth:`irecv` and wait."""
        await self.wait(self.irecv(buffer, source, tag, status))

    async def wait(self, request: Request) -> None:
        """Wait until the message is complete; only this rank waits."""
        await self.waitall((request,))

    async def waitall(self, requests: Iterable[Request]) -> None:
        """Wait until all these messages are complete."""
        left = list(requests)
        if not self._complete_soon(left):
            await _until_complete(self._scheduler, RankWait(self._task, left))
        elif self._sleepers.asleep and self._scheduler.ready:
            # The polls have made other ranks ready, and this rank continues.
            with self._scheduler.lock:
                self._scheduler.call_workers()

    def _complete_soon(self, left: list[Request]) -> bool:
        """True if these messages are complete, after a few polls if no other rank needs the worker.

        Complete messages are removed from the end of ``left``. Parking a rank and resuming it costs
        as much as several polls.
        """
        poller, clock = self._layer.poller, self._task.clock
        kind = MPI
        for _ in range(_LOOKS):
            while left and left[-1].done:
                left.pop()
            if not left:
                return True
            if self._scheduler.ready or not self._transport.pending:
                return False
            clock.add(kind, poller.poll())
            kind = WAITING
            poller.pause()
        return False


@types.coroutine
def _until_complete(scheduler: SchedulingCore, wait: RankWait) -> Generator[None, None, None]:
    task = wait.task
    with scheduler.lock:
        for request in wait.requests:
            if not request.done and request.waiter is not wait:
                request.waiter = wait
                wait.missing += 1
        task.blocker = wait
        if not wait.missing:
            scheduler.call_workers()
    while wait.missing:
        yield
    task.blocker = None


def pieces(array: NDArray[Any], count: int) -> list[NDArray[Any]]:
    """A contiguous array as ``count`` contiguous parts of nearly equal size, without empty parts.

    Parts that are sent and received in order under one tag arrive in order, because messages do not
    overtake.
    """
    return [part for part in np.array_split(array.reshape(-1), count) if part.size]


Key = tuple[int, int, int]
Queues = dict[Key, deque[Request]]


class Mailbox:
    """Messages without a partner yet, in the order in which they were started."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._lock = transport.scheduler.lock
        self._sends: Queues = {}
        self._receives: Queues = {}
        self._successor: Callable[[Request], None] | None = None

    def move(
        self, leave: Callable[[Request], object], successor: Callable[[Request], None]
    ) -> None:
        """Let ``successor`` take all further messages; those without a partner go to ``leave``.

        ``leave`` is called with the lock held, in the order in which they were started.
        """
        with self._lock:
            if self._successor is not None:
                return
            self._successor = successor
            for queues in (self._sends, self._receives):
                for queue in queues.values():
                    for request in queue:
                        leave(request)
                queues.clear()

    def start(self, request: Request) -> None:
        """Match the message with its partner, or leave it for the partner.

        Raises :class:`MateError` for an array with gaps; for messages through MPI, mpi4py does
        that.
        """
        request.buffer = payload(request.buffer)
        rank, route = request.task.rank, request.route
        assert route is not None
        if route.incoming:
            key, mine, others = (route.peer, rank, route.tag), self._receives, self._sends
        else:
            key, mine, others = (rank, route.peer, route.tag), self._sends, self._receives
        with self._lock:
            successor = self._successor
            if successor is None:
                queue = others.get(key)
                if queue is None:
                    mine.setdefault(key, deque()).append(request)
                    return
                other = queue.popleft()
                if not queue:
                    del others[key]
        if successor is not None:
            successor(request)
            return
        if route.incoming:
            self._transfer(other, request)
        else:
            self._transfer(request, other)
        self._transport.deliver(other, request)

    def _transfer(self, send: Request, receive: Request) -> None:
        source, target = send.buffer, receive.buffer
        size = size_of(source)
        if size > size_of(target):
            raise MateError(
                f"rank {send.task.rank}: {send.describe()} of {size} bytes, but it receives into "
                f"{size_of(target)} bytes: message truncated",
                code="mate.message",
            )
        if isinstance(source, np.ndarray) and isinstance(target, np.ndarray):
            as_bytes(target)[:size] = as_bytes(source)
        else:
            self._transport.copy(source, target)
        if receive.status is not None:
            self._transport.set_status(receive, size)
