"""What devices and wake-ups cost each way, so that the latency is the asked one."""

from __future__ import annotations

from pathlib import Path

from runner.testbed import shared
from runner.testbed.model import Testbed
from runner.testbed.probe import measure

_ROUNDS = 4
_EACH_S = 0.3
_PACKET_BITS = 8 * 60
"""Of 8 bytes with the headers of IP and TCP."""


def compensation(testbed: Testbed) -> float:
    """Seconds to take off the delay line's own wait, each way; between 0 and the latency.

    The first figure is the round trip without delay.  A line that has to sleep costs more than one
    that does not, so the figure is then put right under the very latency, with the link as it will
    be: who keeps the rate costs time too.  What a packet needs to pass the link is no latency.
    """
    asked = testbed.latency_s
    if not asked:
        return 0.0
    pings = max(20, min(1000, round(_EACH_S / (2 * asked + 1e-4))))
    passing = _PACKET_BITS / testbed.rate_bps if testbed.rate_bps else 0.0
    taken_off = asked
    for _ in range(_ROUNDS):
        shared.set_link(Path(testbed.directory), asked - taken_off, testbed.rate_bps)
        seen = measure(testbed, pings, 0.0)
        error = seen.round_trip_s / 2 - passing - asked
        taken_off = min(max(taken_off + error, 0.0), asked)
    return taken_off
