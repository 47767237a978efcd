"""Connections of the page, limited in number and idle time.

Every user of the machine can connect. To keep the page reachable, a connection above the limit
replaces the one that has waited longest without a complete request. A connection without a complete
request in time is closed.
"""

from __future__ import annotations

import asyncio
import resource
from typing import Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_S = 5.0
"""Seconds in which a connection has to send the header of a request."""
_MOST = 64


def most_connections() -> int:
    """The most connections at a time: 64, or fewer if this process may open few files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if soft == resource.RLIM_INFINITY else max(4, min(_MOST, soft // 4))


class BoundedConnection(H11Protocol):
    """uvicorn's connection with a limit of number and of time; it logs nothing."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._most = most_connections()
        self._waits_since = self.loop.time()
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()
        if len(self.connections) <= self._most:
            return
        others = (cast(BoundedConnection, one) for one in self.connections)
        waiting = [one for one in others if one.waits and one is not self]
        oldest = min(waiting, key=lambda one: one._waits_since, default=self)
        oldest.leave()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self._wait()
        super().on_response_complete()

    @property
    def waits(self) -> bool:
        """True if no request is being answered, or nobody reads the answer."""
        idle = self.cycle is None or self.cycle.response_complete
        return idle or self.flow.write_paused

    def leave(self) -> None:
        """Close the connection at once."""
        self.connections.discard(self)
        self.transport.abort()

    def _wait(self) -> None:
        self._waits_since = self.loop.time()
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(REQUEST_S, self._late)

    def _late(self) -> None:
        if self.waits:
            self.leave()
        else:
            self._wait()
