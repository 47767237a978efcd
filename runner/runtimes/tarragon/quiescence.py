"""Quiescence: nothing runs and no message is under way, on any process.

Idle processes take part in rounds; each round sums the numbers of sent and received messages. If no
process has done anything since its last round, and the sums are equal, nothing more can happen
(Mattern's counters, in two waves). A process whose tasks have all ended can do nothing any more: it
needs only one round.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runner.runtimes.tarragon.transport import Transport


class Rounds:
    """The rounds of one execution; collective over ``comm``, but nobody waits."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self._request: Any = None
        self._own = np.zeros(3, np.int64)
        """Sent, received, and 1 if anything has happened since the last round."""
        self._sum = np.zeros(3, np.int64)
        self._before: tuple[int, int, int] | None = None

    def advance(self, transport: Transport, changes: int, is_over: bool) -> bool:
        """Start or end a round; an idle process calls this now and then, one thread at a time.

        ``changes`` grows whenever a task has run; ``is_over``: all tasks here have ended. Returns
        True if all processes are quiet.
        """
        if self._request is None:
            state = transport.sent_count, transport.received_count, changes
            active = transport.sending or not (is_over or state == self._before)
            self._own[:] = state[0], state[1], int(active)
            self._before = state
            self._request = self._comm.Iallreduce(self._own, self._sum)
        if not self._request.Test():
            return False
        self._request = None
        sent_count, received_count, active_count = self._sum.tolist()
        return active_count == 0 and sent_count == received_count
