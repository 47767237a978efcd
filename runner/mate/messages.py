"""Messages between ranks, as methods of a rank's context."""

from __future__ import annotations

import types
from collections.abc import Generator, Iterable
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.mate.errors import MateError
from runner.mate.mailbox import Mailbox
from runner.mate.poller import Poller
from runner.mate.rankmap import RankMap
from runner.mate.scheduler import Scheduler
from runner.mate.tags import TagCodec
from runner.mate.task import Request, Route, Task, Wait
from runner.mate.timers import MPI, WAITING
from runner.mate.transport import Transport, payload, size_of

_LOOKS = 10
"""About as long as it takes to park a rank and take it up again."""
_MANY_ROUTES = 4096
"""A program that uses ever new tags must not fill the memory."""


class Shared:
    """What the ranks of a process have in common."""

    def __init__(
        self, ranks: RankMap, scheduler: Scheduler, transport: Transport, poller: Poller
    ) -> None:
        self.ranks = ranks
        self.poller = poller
        self.scheduler = scheduler
        self.transport = transport
        self.codec = TagCodec.fit(transport.tag_ub, ranks.largest)
        self.mailbox = Mailbox(transport)


class Messages:
    """Point-to-point messages.  ``dest`` and ``source`` are global ranks."""

    def __init__(self, task: Task, shared: Shared) -> None:
        self._task = task
        self._shared = shared
        self._scheduler = shared.scheduler
        self._sleepers = shared.scheduler.sleepers
        self._transport = shared.transport
        self._incoming = shared.transport.incoming
        self._with_status = shared.transport.with_status
        self._mailbox = shared.mailbox
        self._send_routes: dict[tuple[int, int], Route] = {}
        self._receive_routes: dict[tuple[int, int], Route] = {}

    def isend(self, buffer: Any, dest: int, tag: int = 0) -> Request:
        """Start a message to rank ``dest``; the buffer must stay as it is until it is complete.

        ``buffer``: a contiguous array, or ``(buffer, count, datatype)``.  Raises
        :class:`MateError` for a rank or tag that does not exist.
        """
        route = self._send_routes.get((dest, tag)) or self._route(dest, tag, False)
        data = buffer if type(buffer) is np.ndarray else payload(buffer)
        clock = self._task.clock
        clock.messages += 1
        clock.bytes += data.nbytes if data is buffer else size_of(data)
        return self._start(route, data, None)

    def irecv(self, buffer: Any, source: int, tag: int = 0, status: Any = None) -> Request:
        """Start the receipt of a message from rank ``source``; see :meth:`isend`.

        ``status``: an ``MPI.Status`` that is filled when the message is complete.
        """
        route = self._receive_routes.get((source, tag)) or self._route(source, tag, True)
        data = buffer if type(buffer) is np.ndarray else payload(buffer)
        return self._start(route, data, status)

    def _start(self, route: Route, data: Any, status: Any) -> Request:
        task = self._task
        owner = task.owner
        request = Request(task, owner, route, data, status)
        # Counted first: it may be complete before this returns.
        if owner is None:
            task.posted += 1
        else:
            owner.posted += 1
        begin = perf_counter()
        if route.post is None:
            self._mailbox.start(request)
        else:
            raw = route.post(data, route.process, route.wire)
            (self._incoming if status is None else self._with_status).append((raw, request))
            if self._sleepers.asleep:
                self._transport.wake_poller()
        spent = perf_counter() - begin
        # As Clock.during(MPI), but a third of its price.
        clock = task.clock
        clock.spent[MPI] += spent
        clock.since += spent
        return request

    def _route(self, peer: int, tag: int, incoming: bool) -> Route:
        """Check a partner and a tag once, and remember where such messages go."""
        ranks, task = self._shared.ranks, self._task
        verb = "receive from" if incoming else "send to"
        if not isinstance(peer, (int, np.integer)) or not 0 <= peer < ranks.size:
            raise MateError(
                f"rank {task.rank} wants to {verb} rank {peer}; expected a rank from 0 to "
                f"{ranks.size - 1} (wildcards are not supported)"
            )
        process, local = ranks.locations[peer]
        pair = (local, task.local) if incoming else (task.local, local)
        wire = self._shared.codec.encode(int(tag), *pair)
        transport = self._transport
        here = process == transport.process and transport.direct
        post = None if here else transport.post(incoming)
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
        """Until the message is complete.  Only this rank waits."""
        await self.waitall((request,))

    async def waitall(self, requests: Iterable[Request]) -> None:
        """Until all these messages are complete."""
        left = list(requests)
        if not self._complete_soon(left):
            await _until_complete(self._scheduler, Wait(self._task, left))
        elif self._sleepers.asleep and self._scheduler.ready:
            # The looks have made other ranks ready, and this one goes on.
            with self._scheduler.lock:
                self._scheduler.call_workers()

    def _complete_soon(self, left: list[Request]) -> bool:
        """Whether these are complete, after a few looks if no other rank wants the worker.

        Takes complete ones from the end of ``left``.  Parking a rank and taking it up again costs
        as much as several looks.
        """
        poller, clock = self._shared.poller, self._task.clock
        kind = MPI
        for _ in range(_LOOKS):
            while left and left[-1].done:
                left.pop()
            if not left:
                return True
            if self._scheduler.ready or not self._transport.pending:
                return False
            spent = poller.poll()
            clock.spent[kind] += spent
            clock.since += spent
            kind = WAITING
            poller.pause()
        return False


@types.coroutine
def _until_complete(scheduler: Scheduler, wait: Wait) -> Generator[None, None, None]:
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
    """A contiguous array as ``count`` contiguous parts of nearly equal size (empty ones left out).

    Sent and received in order under one tag they arrive in order: messages do not overtake.
    """
    return [part for part in np.array_split(array.reshape(-1), count) if part.size]
