"""The description of a testbed and of its state, and its requirements on the machine.

Descriptions are plain dataclasses that become JSON and are read from it. :func:`missing_needs`
lists what this machine lacks.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from runner.errors import RunnerError
from runner.files.paths import exists


@dataclass(frozen=True)
class NodeProcess:
    """A process, identified by id and start time, because the kernel reuses ids."""

    pid: int
    started_ticks: int


@dataclass(frozen=True)
class Node:
    """One node: ``process`` keeps its namespaces; programs in it run on ``cpus``."""

    name: str
    address: str
    process: NodeProcess
    cpus: tuple[int, ...]


@dataclass(frozen=True)
class Testbed:
    """A running testbed.

    ``latency_s`` is seconds each way. ``rate_bps`` is bits per second of each link in each
    direction (0: unlimited). ``compensation_s`` is the time in seconds that devices and wake-ups
    cost each way; it was measured without any delay and is subtracted from the delay line's own
    wait.
    """

    __test__ = False  # not a test class, although its name begins with "Test" (pytest)

    name: str
    directory: str
    token: str
    subnet: str
    nodes: tuple[Node, ...]
    line: NodeProcess
    line_cpu: int
    latency_s: float
    rate_bps: int
    mtu: int
    compensation_s: float = 0.0
    shaper: str = "none"
    """The rate limiter: ``tbf`` (and the delay line), ``delay line`` alone, or ``none``."""

    @property
    def network(self) -> str:
        return f"{self.subnet}.0/24"

    @property
    def own_process(self) -> str:
        """Command name of the delay line, whose CPU time belongs to the cluster."""
        return f"delay-{self.name}"

    @property
    def device(self) -> str:
        """The host's own device in the testbed's network."""
        return f"tb-{self.name}"

    @property
    def hostfile(self) -> Path:
        return Path(self.directory) / "hostfile"

    @property
    def agent(self) -> Path:
        return Path(self.directory) / "agent"

    @property
    def cpus(self) -> frozenset[int]:
        """Number of CPUs of all nodes together; fewer than one per node if nodes share them."""
        return frozenset(cpu for node in self.nodes for cpu in node.cpus)

    @property
    def shared_cpus(self) -> bool:
        """True if nodes share CPUs, so that even one rank per node is oversubscribed."""
        return sum(len(node.cpus) for node in self.nodes) > len(self.cpus)


@dataclass(frozen=True)
class Status:
    """The state of a testbed, and measurements between its first two nodes.

    ``state``: ``up``; ``down``; ``broken`` (parts are left, but it does not work). Times are in
    seconds, rates in bits per second, CPU shares in CPUs. Figures are None if not measured.
    """

    name: str
    state: Literal["up", "down", "broken"]
    testbed: Testbed | None = None
    asked_round_trip_s: float | None = None
    round_trip_s: float | None = None
    round_trip_low_s: float | None = None
    """25 % of the round trips were faster."""
    round_trip_high_s: float | None = None
    """5 % of the round trips were slower."""
    bandwidth_bps: float | None = None
    line_cpu_idle: float | None = None
    line_cpu_pingpong: float | None = None
    line_cpu_stream: float | None = None
    irq_pingpong: float | None = None
    irq_stream: float | None = None
    late_s: float | None = None
    """Mean lateness of a packet's delivery during the round trips, in seconds."""
    dropped: int | None = None
    realtime: bool | None = None
    """True if the delay line has real-time priority."""


@dataclass(frozen=True)
class Removal:
    """What :func:`down` removed: if there was anything, and the number of ended processes."""

    name: str
    found: bool
    processes: int


@dataclass(frozen=True)
class Ran:
    """A command that ran on a testbed."""

    name: str
    argv: tuple[str, ...]
    exit_code: int
    wall_s: float


def testbed_from_json(data: dict[str, Any]) -> Testbed:
    """The testbed of a record in JSON types; raises TypeError or KeyError for anything else."""
    nodes = tuple(
        Node(n["name"], n["address"], NodeProcess(**n["process"]), tuple(n["cpus"]))
        for n in data["nodes"]
    )
    testbed = Testbed(**{**data, "nodes": nodes, "line": NodeProcess(**data["line"])})
    _check(testbed)
    return testbed


def _check(testbed: Testbed) -> None:
    """Raise TypeError unless every entry has its type."""
    texts = [testbed.name, testbed.directory, testbed.token, testbed.subnet, testbed.shaper]
    texts += [text for node in testbed.nodes for text in (node.name, node.address)]
    counts: list[object] = [testbed.line_cpu, testbed.rate_bps, testbed.mtu]
    for process in (testbed.line, *(node.process for node in testbed.nodes)):
        counts += [process.pid, process.started_ticks]
    counts += [cpu for node in testbed.nodes for cpu in node.cpus]
    times = [testbed.latency_s, testbed.compensation_s]
    if not (
        testbed.nodes
        and all(isinstance(text, str) for text in texts)
        and all(type(count) is int and 0 <= count < 2**63 for count in counts)
        and all(isinstance(time, int | float) and abs(time) < 1e9 for time in times)
    ):
        raise TypeError("not the record of a testbed")


TUN = Path("/dev/net/tun")
SET_NAMESPACE = "nsenter"


def missing_needs() -> list[str]:
    """What this machine or user lacks, for readers; empty if a testbed can be brought up."""
    needs = []
    if sys.platform != "linux":
        return ["Linux (network namespaces)"]
    if os.geteuid() != 0:
        needs.append("root (for network namespaces and devices); try sudo")
    if not exists(TUN):
        needs.append(f"{TUN} (kernel module tun: modprobe tun)")
    if shutil.which("cc") is None:
        needs.append("a C compiler, cc (install gcc)")
    if shutil.which(SET_NAMESPACE) is None:
        needs.append("nsenter (package util-linux)")
    return needs


def require() -> None:
    """Raise RunnerError that lists everything missing."""
    lacking = missing_needs()
    if lacking:
        raise RunnerError(
            "a testbed cannot be started here; it needs\n"
            + "\n".join(f"  - {what}" for what in lacking)
            + "\nEverything else of autotune works without it (--cluster local).",
            code="testbed.needs",
        )
