"""Round trip and bandwidth between the first two nodes of a testbed, measured with real TCP."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass

from runner.errors import RunnerError
from runner.testbed.build import program
from runner.testbed.model import Node, Testbed
from runner.testbed.processes import TOKEN

_PATIENCE_S = 60


@dataclass(frozen=True)
class Path:
    """Seconds and bits per second; ``low``: 25 % were faster, ``high``: 5 % were slower."""

    round_trip_s: float
    low_s: float
    high_s: float
    bandwidth_bps: float | None


def measure(testbed: Testbed, pings: int, stream_s: float) -> Path:
    """``pings`` round trips of 8 bytes, then a stream of ``stream_s`` seconds (0: none).

    Raises RunnerError if the nodes cannot talk to each other.
    """
    near, far = testbed.nodes[:2]
    environment = {TOKEN: testbed.token}
    with subprocess.Popen(
        [*_inside(far), "serve", far.address],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            port = server.stdout.readline().strip()
            done = subprocess.run(
                [*_inside(near), "measure", far.address, port, str(pings), str(stream_s)],
                capture_output=True,
                env=environment,
                text=True,
                timeout=_PATIENCE_S,
                check=False,
            )
            if done.returncode:
                raise _failed(testbed, done.stderr)
            seen = json.loads(done.stdout)
        except (ValueError, subprocess.TimeoutExpired) as problem:
            raise _failed(testbed, str(problem)) from None
        finally:
            server.kill()
    bits = seen["bytes"] * 8e9 / seen["ns"] if seen["ns"] else None
    return Path(seen["median_ns"] / 1e9, seen["low_ns"] / 1e9, seen["high_ns"] / 1e9, bits)


def _inside(node: Node) -> list[str]:
    enter = ["nsenter", "-t", str(node.process.pid), "-n"]
    return [*enter, "--", "taskset", "-c", str(node.cpus[0]), str(program())]


def _failed(testbed: Testbed, why: str) -> RunnerError:
    return RunnerError(
        f"the nodes of testbed {testbed.name} cannot talk to each other: "
        f"{why.strip() or 'no answer'}; take it down and up again:\n"
        f"  autotune testbed down --name {testbed.name}"
    )
