"""Measures a testbed: its state, the correction of its latency, and its round trip and bandwidth.

The state includes the testbed's own limits if they are measured.

The correction is the time that devices and wake-ups cost each way; it makes the latency equal the
request.

Round trip and bandwidth are measured between the first two nodes with real TCP.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path

from runner.errors import RunnerError
from runner.files.paths import exists
from runner.guard import cpu_times, process_time
from runner.process import read_proc
from runner.testbed import delay_line, state
from runner.testbed.delay_line import delay_line_program
from runner.testbed.model import Node, Status, Testbed
from runner.testbed.processes import TOKEN

IDLE_S = 0.3
PING_S = 0.6
STREAM_S = 0.6


def status(name: str = state.DEFAULT_NAME, with_limits: bool = True) -> Status:
    """The state of testbed ``name``, ``with_limits`` including its limits (about two seconds).

    Raises RunnerError if the nodes of a running testbed cannot talk to each other.
    """
    testbed = state.read_testbed(name)
    if testbed is None:
        left = exists(state.directory(name))
        return Status(name, "broken" if left else "down")
    if not state.works(testbed):
        return Status(name, "broken", testbed)
    current = Status(name, "up", testbed, asked_round_trip_s=2 * testbed.latency_s)
    return _with_limits(current, testbed) if with_limits else current


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
    """CPU seconds of a process: to the nanosecond if the kernel reports it, else to a tick."""
    words = read_proc(f"/proc/{pid}/schedstat").split()
    if words and int(words[0]):
        return int(words[0]) / 1e9
    times = process_time(pid)
    return 0.0 if times is None else times.cpu_s


def _with_limits(current: Status, testbed: Testbed) -> Status:
    place = Path(testbed.directory)
    clock = _Clock(testbed)
    time.sleep(IDLE_S)
    idle, _ = clock.shares()

    before = delay_line.read_counters(place)
    clock = _Clock(testbed)
    pings = max(20, min(5000, round(PING_S / (2 * testbed.latency_s + 1e-4))))
    path = measure_path(testbed, pings, 0.0)
    pingpong, irq_pingpong = clock.shares()
    after = delay_line.read_counters(place)

    clock = _Clock(testbed)
    stream = measure_path(testbed, 1, STREAM_S)
    streaming, irq_stream = clock.shares()
    packets = after.packets - before.packets
    return replace(
        current,
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
        dropped=delay_line.read_counters(place).drops,
        realtime=bool(after.realtime),
    )


_ATTEMPTS = 6
_READINGS = 5
_EACH_S = 0.15
_GOOD = 0.02
_PACKET_BITS = 8 * 60
"""Bits of a packet with 8 bytes of data and the headers of IP and TCP."""


def compensation(testbed: Testbed) -> float:
    """Seconds to subtract from the delay line's own wait, each way; between 0 and the latency.

    The first estimate is the round trip without delay. A delay line that sleeps costs more. So the
    estimate is then corrected at the requested latency, with the final link, because the rate
    limiter costs time, too. One reading scatters by a third of a short latency; so an attempt is
    the median of several readings at one wait, and the best attempt is used. A packet's
    transmission time is not latency.
    """
    latency_s = testbed.latency_s
    if not latency_s:
        return 0.0
    passing = _PACKET_BITS / testbed.rate_bps if testbed.rate_bps else 0.0
    taken_off, best, smallest = latency_s, latency_s, float("inf")
    for _ in range(_ATTEMPTS):
        delay_line.set_link(Path(testbed.directory), latency_s - taken_off, testbed.rate_bps)
        error = _one_way(testbed) - passing - latency_s
        if abs(error) < smallest:
            best, smallest = taken_off, abs(error)
        if smallest <= _GOOD * latency_s:
            break
        taken_off = min(max(taken_off + error, 0.0), latency_s)
    return best


def _one_way(testbed: Testbed) -> float:
    """Half a round trip over the link in its present state; seconds."""
    pings = max(20, min(1000, round(_EACH_S / (2 * testbed.latency_s + 1e-4))))
    return statistics.median(
        measure_path(testbed, pings, 0.0).round_trip_s / 2 for _ in range(_READINGS)
    )


_PATIENCE_S = 60


@dataclass(frozen=True)
class NetworkPath:
    """Round trip in s (25 % below ``low_s``, 5 % above ``high_s``) and bandwidth in bits/s."""

    round_trip_s: float
    low_s: float
    high_s: float
    bandwidth_bps: float | None


def measure_path(testbed: Testbed, pings: int, stream_s: float) -> NetworkPath:
    """Measure ``pings`` round trips of 8 bytes, then a stream of ``stream_s`` seconds (0: none).

    Raises RunnerError if the nodes cannot talk to each other.
    """
    near, far = testbed.nodes[:2]
    environment = {TOKEN: testbed.token}
    with subprocess.Popen(
        [*_inside(far), "serve", far.address],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        encoding="utf-8",
        errors="replace",
    ) as server:
        try:
            assert server.stdout is not None
            port = server.stdout.readline().strip()
            process = subprocess.run(
                [*_inside(near), "measure", far.address, port, str(pings), str(stream_s)],
                capture_output=True,
                env=environment,
                encoding="utf-8",
                errors="replace",
                timeout=_PATIENCE_S,
                check=False,
            )
            if process.returncode:
                raise _connection_error(testbed, process.stderr)
            answer = json.loads(process.stdout)
        except (ValueError, subprocess.TimeoutExpired) as problem:
            raise _connection_error(testbed, str(problem)) from None
        finally:
            server.kill()
    bits = answer["bytes"] * 8e9 / answer["ns"] if answer["ns"] else None
    return NetworkPath(
        answer["median_ns"] / 1e9, answer["low_ns"] / 1e9, answer["high_ns"] / 1e9, bits
    )


def _inside(node: Node) -> list[str]:
    enter = ["nsenter", "-t", str(node.process.pid), "-n"]
    return [*enter, "--", "taskset", "-c", str(node.cpus[0]), str(delay_line_program())]


def _connection_error(testbed: Testbed, why: str) -> RunnerError:
    return RunnerError(
        f"the nodes of testbed {testbed.name} cannot talk to each other: "
        f"{why.strip() or 'no answer'}; take it down and up again:\n"
        f"  autotune testbed down --name {testbed.name}",
        code="testbed.no_connection",
    )
