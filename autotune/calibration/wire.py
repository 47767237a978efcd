"""The wire between processes: its latency, its capacity, and how often a message crosses it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from autotune.calibration.response import ResponseTable

HANDSHAKE = 3.0
"""Crossings of a message above the eager limit: it is announced, asked for, and sent."""
_SMALL, _LARGE = 8, 1 << 20


@dataclass(frozen=True)
class Wire:
    """``latency_s``: seconds of a short message. ``bytes_per_s``: the capacity; infinite if it is
    not limited. ``crossings``: how often a message above the eager limit crosses the wire."""

    latency_s: float
    bytes_per_s: float
    crossings: float = HANDSHAKE

    def waiting_s(self, size: float, limit: float) -> float:
        """Seconds until a message of ``size`` bytes begins to arrive; ``limit``: the eager
        limit."""
        return self.latency_s * (1.0 if size < limit else self.crossings)

    @classmethod
    def of_link(cls, latency_s: float, rate_bps: float) -> Wire:
        """The wire of a link with this latency each way; a rate of 0 is unlimited."""
        return cls(latency_s, rate_bps / 8 if rate_bps else math.inf)

    @classmethod
    def of_table(cls, table: ResponseTable, limit: float) -> Wire | None:
        """The wire as a calibration measured it; None if it timed no messages one at a time.

        A ping-pong crosses the wire twice.
        """
        times = [table.us("pingpong", size) for size in (_SMALL, 2 * limit, _LARGE // 2, _LARGE)]
        known = [us / 2e6 for us in times if us]
        if len(known) < len(times):
            return None
        small, above, half, large = known
        capacity = _LARGE / 2 / max(large - half, 1e-9)
        crossings = (above - 2 * limit / capacity) / small
        return cls(small, capacity, min(max(crossings, 1.0), 2 * HANDSHAKE))


NODE = Wire(1e-6, 4e9)
"""Messages within a node, roughly: the calibration of a program across nodes does not cover
these."""
