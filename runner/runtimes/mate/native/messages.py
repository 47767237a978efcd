"""Messages within a process that Python code starts and whose partner may be a compiled region.

Compiled code cannot see the Python mailbox, so its own mail takes all messages. Those of Python
code are identified by a number.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from runner.runtimes.core.core import Core
from runner.runtimes.core.words import RANK
from runner.runtimes.mate.task import Request
from runner.runtimes.mate.transport import size_of

if TYPE_CHECKING:
    from runner.runtimes.mate.messages import MessageLayer


class NativeMessages:
    """The messages of Python code without a partner."""

    def __init__(self, core: Core, lock: threading.Lock, thread: Any, layer: MessageLayer) -> None:
        self._core = core
        self._lock = lock
        self._thread = thread
        """The thread's worker."""
        self._transport = layer.transport
        self._mailbox = layer.mailbox
        self._locations = layer.ranks.locations
        self._letters: dict[int, Request] = {}
        """Requests within the process without a partner, by number."""
        self._letter = 0

    def take_over(self) -> None:
        """From now on, take all messages from the Python mailbox."""
        self._mailbox.move(self._leave, self._hand_over)

    def _leave(self, request: Request) -> int:
        """Match a message with its partner, whose owner is returned, or leave it (0).

        The lock is held.
        """
        route, data = request.route, request.buffer
        assert route is not None
        self._letter = number = self._letter + 1
        self._letters[number] = request
        plain = isinstance(data, np.ndarray)
        partner = self._core.post(
            self._core.ranks[request.task.local],
            int(route.incoming),
            (data.__array_interface__["data"][0] or 8) if plain else 0,
            size_of(data),
            route.peer,
            self._locations[route.peer][1],
            route.tag,
            number,
        )
        if partner:
            del self._letters[number]
        return int(partner)

    def _hand_over(self, request: Request) -> None:
        """Start a message whose partner may be a compiled region's."""
        with self._lock:
            partner = self._leave(request)
            requests = [request]
            if partner & 1:
                requests.append(self._letters.pop(partner >> 1))
        if not partner:
            return
        if not partner & 1:
            self._core.complete(self._thread.worker, partner, 1)
        size = self._core.memory.get(self._core.ranks[request.task.local] + RANK.sent)
        for one in requests:
            if one.status is not None:
                self._transport.set_status(one, size)
        self._transport.deliver(*requests)

    def deliver(self, size: int, number: int) -> None:
        """A compiled region was the partner of a message that Python code started."""
        request = self._letters.pop(number)
        if request.status is not None:
            self._transport.set_status(request, size)
        self._transport.deliver(request)

    def copy(self, give: int, get: int) -> None:
        """Copy between two messages of Python code, one of which has an MPI datatype."""
        self._transport.copy(self._letters[give].buffer, self._letters[get].buffer)
