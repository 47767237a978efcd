"""Who looks after messages, and how often."""

from __future__ import annotations

import os
import threading
from time import perf_counter

from runner.mate.transport import Transport

_POLL_GAP = 20e-6
"""A busy worker looks after messages at most this often (seconds) ..."""
_POLL_SHARE = 3.0
"""... and not before this multiple of what the last look took, however many requests there are."""


class Poller:
    """Lets one worker at a time look which messages are complete."""

    def __init__(self, transport: Transport, crowded: bool) -> None:
        self._transport = transport
        self._crowded = crowded
        self._lock = threading.Lock()
        self._next = 0.0

    def pause(self) -> None:
        """Between two looks: let others use the core if there are more workers than cores."""
        if self._crowded:
            os.sched_yield()

    def poll_if_due(self) -> float:
        """Look, unless that was done a moment ago; the seconds it took."""
        return self.poll() if perf_counter() >= self._next else 0.0

    def poll(self) -> float:
        """Look now and return the seconds it took; 0 if another worker is at it."""
        if not self._lock.acquire(blocking=False):
            return 0.0
        try:
            begin = perf_counter()
            self._transport.poll()
            end = perf_counter()
            self._next = end + max(_POLL_GAP, _POLL_SHARE * (end - begin))
        finally:
            self._lock.release()
        return end - begin
