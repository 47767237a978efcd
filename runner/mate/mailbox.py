"""The in-process path: a message between two ranks of one process is one copy, without MPI.

Nothing is buffered: whoever comes second copies from the sender's buffer into the receiver's, and
both messages are complete then.  So a blocking ``send`` waits for its ``recv``, as MPI allows.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from runner.mate.errors import MateError
from runner.mate.task import Request
from runner.mate.transport import Transport, as_bytes, payload, size_of

Key = tuple[int, int, int]
Queues = dict[Key, deque[Request]]


class Mailbox:
    """Messages that wait for their other side, in the order in which they were started."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._lock = transport.scheduler.lock
        self._sends: Queues = {}
        self._receives: Queues = {}

    def start(self, request: Request) -> None:
        """Match the message with its other side, or leave it for that.

        Raises :class:`MateError` for an array with gaps (where MPI is called, mpi4py does that).
        """
        request.buffer = payload(request.buffer)
        rank, route = request.task.rank, request.route
        assert route is not None
        if route.incoming:
            key, mine, others = (route.peer, rank, route.tag), self._receives, self._sends
        else:
            key, mine, others = (rank, route.peer, route.tag), self._sends, self._receives
        with self._lock:
            queue = others.get(key)
            if queue is None:
                mine.setdefault(key, deque()).append(request)
                return
            other = queue.popleft()
            if not queue:
                del others[key]
        if route.incoming:
            self._transfer(other, request)
        else:
            self._transfer(request, other)
        self._transport.delivered(other, request)

    def _transfer(self, sent: Request, received: Request) -> None:
        source, target = sent.buffer, received.buffer
        size = size_of(source)
        if size > size_of(target):
            raise MateError(
                f"rank {sent.task.rank}: {sent.describe()} of {size} bytes, but it receives into "
                f"{size_of(target)} bytes: message truncated"
            )
        if isinstance(source, np.ndarray) and isinstance(target, np.ndarray):
            as_bytes(target)[:size] = as_bytes(source)
        else:
            self._transport.copy(source, target)
        if received.status is not None:
            self._transport.set_status(received, size)
