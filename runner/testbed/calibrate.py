"""What devices and wake-ups cost each way, so that the latency is the asked one."""

from __future__ import annotations

from pathlib import Path

from runner.testbed import shared
from runner.testbed.model import Testbed
from runner.testbed.probe import measure

_ROUNDS = 3
_EACH_S = 0.3


def compensation(testbed: Testbed) -> float:
    """Seconds to take off the delay line's own wait, each way; between 0 and the latency.

    The first figure is the round trip without delay.  A line that has to sleep costs more than one
    that does not, so the figure is then put right under the very latency.  The rate is left out:
    what a packet needs to pass a slow link is no latency.
    """
    asked = testbed.latency_s
    if not asked:
        return 0.0
    pings = max(20, min(1000, round(_EACH_S / (2 * asked + 1e-4))))
    taken_off = asked
    for _ in range(_ROUNDS):
        shared.set_link(Path(testbed.directory), asked - taken_off, 0)
        seen = measure(testbed, pings, 0.0)
        taken_off = min(max(taken_off + seen.round_trip_s / 2 - asked, 0.0), asked)
    return taken_off
