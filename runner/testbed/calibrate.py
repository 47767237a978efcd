"""What devices and wake-ups cost each way, so that the latency is the asked one."""

from __future__ import annotations

import statistics
from pathlib import Path

from runner.testbed import shared
from runner.testbed.model import Testbed
from runner.testbed.probe import measure

_ATTEMPTS = 6
_READINGS = 5
_EACH_S = 0.15
_GOOD = 0.02
_PACKET_BITS = 8 * 60
"""Of 8 bytes with the headers of IP and TCP."""


def compensation(testbed: Testbed) -> float:
    """Seconds to take off the delay line's own wait, each way; between 0 and the latency.

    The first figure is the round trip without delay.  A line that has to sleep costs more than one
    that does not, so the figure is then put right under the very latency, with the link as it will
    be: who keeps the rate costs time too.  One reading scatters by a third of a short latency, so
    an attempt is the median of several under one wait, and the best attempt stands.  What a packet
    needs to pass the link is no latency.
    """
    asked = testbed.latency_s
    if not asked:
        return 0.0
    passing = _PACKET_BITS / testbed.rate_bps if testbed.rate_bps else 0.0
    taken_off, best, smallest = asked, asked, float("inf")
    for _ in range(_ATTEMPTS):
        shared.set_link(Path(testbed.directory), asked - taken_off, testbed.rate_bps)
        error = _one_way(testbed) - passing - asked
        if abs(error) < smallest:
            best, smallest = taken_off, abs(error)
        if smallest <= _GOOD * asked:
            break
        taken_off = min(max(taken_off + error, 0.0), asked)
    return best


def _one_way(testbed: Testbed) -> float:
    """Half a round trip as the link is now; seconds."""
    pings = max(20, min(1000, round(_EACH_S / (2 * testbed.latency_s + 1e-4))))
    return statistics.median(
        measure(testbed, pings, 0.0).round_trip_s / 2 for _ in range(_READINGS)
    )
