"""The state of a testbed, and its own limits measured: what it can be trusted for."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from runner.guard import cpu_times, process_time, read_proc
from runner.testbed import shared, state
from runner.testbed.model import Status, Testbed
from runner.testbed.probe import measure

IDLE_S = 0.3
PING_S = 0.6
STREAM_S = 0.6


def status(name: str = state.DEFAULT_NAME, measured: bool = True) -> Status:
    """What there is of testbed ``name``; with ``measured`` its limits too (about two seconds).

    Raises RunnerError if the nodes of a testbed that is up cannot talk to each other.
    """
    testbed = state.read(name)
    if testbed is None:
        left = state.directory(name).exists()
        return Status(name, "broken" if left else "down")
    if not state.works(testbed):
        return Status(name, "broken", testbed)
    seen = Status(name, "up", testbed, asked_round_trip_s=2 * testbed.latency_s)
    return _measured(seen, testbed) if measured else seen


class _Clock:
    """CPU shares of the delay line and of interrupts since the start of a phase."""

    def __init__(self, testbed: Testbed) -> None:
        self.pid = testbed.line.pid
        self.began, self.line, self.irq = self._now()

    def _now(self) -> tuple[float, float, float]:
        return time.monotonic(), run_time(self.pid), cpu_times().irq_s

    def shares(self) -> tuple[float, float]:
        now, line, irq = self._now()
        return (line - self.line) / (now - self.began), (irq - self.irq) / (now - self.began)


def run_time(pid: int) -> float:
    """CPU seconds of a process: to the nanosecond where the kernel tells, else to a tick."""
    words = read_proc(f"/proc/{pid}/schedstat").split()
    if words and int(words[0]):
        return int(words[0]) / 1e9
    found = process_time(pid)
    return 0.0 if found is None else found.cpu_s


def _measured(seen: Status, testbed: Testbed) -> Status:
    place = Path(testbed.directory)
    clock = _Clock(testbed)
    time.sleep(IDLE_S)
    idle, _ = clock.shares()

    before = shared.read(place)
    clock = _Clock(testbed)
    pings = max(20, min(5000, round(PING_S / (2 * testbed.latency_s + 1e-4))))
    path = measure(testbed, pings, 0.0)
    pingpong, irq_pingpong = clock.shares()
    after = shared.read(place)

    clock = _Clock(testbed)
    stream = measure(testbed, 1, STREAM_S)
    streaming, irq_stream = clock.shares()
    packets = after.packets - before.packets
    return replace(
        seen,
        round_trip_s=path.round_trip_s,
        round_trip_low_s=path.low_s,
        round_trip_high_s=path.high_s,
        bandwidth_bps=stream.bandwidth_bps,
        line_cpu_idle=idle,
        line_cpu_pingpong=pingpong,
        line_cpu_stream=streaming,
        irq_pingpong=irq_pingpong,
        irq_stream=irq_stream,
        late_s=(after.late_sum_ns - before.late_sum_ns) / packets / 1e9 if packets else None,
        dropped=shared.read(place).dropped,
        realtime=bool(after.realtime),
    )
