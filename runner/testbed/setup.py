"""Brings a testbed up and down, and removes the remains of a crash."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
import uuid
import zlib
from dataclasses import replace
from pathlib import Path

from runner.errors import RunnerError, RunnerUsageError
from runner.files.paths import exists
from runner.files.private_files import make_folder, open_private, write_private
from runner.testbed import delay_line, launch, model, state
from runner.testbed.measure import compensation
from runner.testbed.model import Node, NodeProcess, Removal, Testbed
from runner.testbed.processes import TOKEN, end_all, node_process, with_token

MTU = 65520
MAX_NODES = 64
SPIN_NS = 30_000
"""The delay line stops sleeping this many nanoseconds before a packet is due.

Timers wake it about 30 us late.
"""
SPIN_BELOW_S = 0.0005
"""From this latency on, in seconds, the delay line sleeps to the end.

The calibration corrects the lateness, and its scatter is below 5 % of the latency. So the delay
line does not spin on a CPU that a rank needs.
"""
_START_S = 30.0
_ROUTES = Path("/proc/net/route")


def up(
    name: str = state.DEFAULT_NAME,
    nodes: int = 2,
    latency_s: float = 0.001,
    rate_bps: int = 1_000_000_000,
    mtu: int = MTU,
    cores: int | None = None,
) -> Testbed:
    """Bring a testbed up, or return a running one with exactly these properties.

    ``latency_s`` is seconds each way, ``rate_bps`` bits per second of each link in each direction
    (0: unlimited). ``cores`` is the number of CPUs of each node; None: equal shares of all CPUs.
    The delay line runs on the last CPU, alone if the nodes leave it free. The remains of a crashed
    testbed are removed first. Raises RunnerError if the machine cannot carry a testbed, or if a
    testbed of this name is up with other properties.
    """
    _check(nodes, latency_s, rate_bps, mtu)
    cpus = _cpus(nodes, cores)
    model.require()
    place = state.directory(name)
    with state.hold_lock():
        current = state.read_testbed(name)
        if current is not None and state.works(current):
            return _same(current, cpus, latency_s, rate_bps, mtu)
        _clean(name)
        try:
            testbed = _start(place, name, cpus, latency_s, rate_bps, mtu)
            has_shaper = bool(rate_bps) and delay_line.shape(testbed.nodes, rate_bps, mtu)
            compensation_s = compensation(testbed)
            testbed = replace(
                testbed,
                compensation_s=compensation_s,
                shaper="tbf" if has_shaper else "delay line" if rate_bps else "none",
            )
            delay_line.set_link(place, latency_s - compensation_s, rate_bps)
            state.write_testbed(testbed)
        except BaseException:
            _clean(name)
            raise
    return testbed


def down(name: str = state.DEFAULT_NAME) -> Removal:
    """End every process of the testbed and remove all of it; a missing testbed is not an error."""
    place = state.directory(name)
    if not exists(place):
        return Removal(name, False, 0)
    with state.hold_lock():
        return _clean(name)


def _check(nodes: int, latency_s: float, rate_bps: int, mtu: int) -> None:
    if not 2 <= nodes <= MAX_NODES:
        raise RunnerUsageError(
            f"--nodes {nodes} is out of range; expected 2 to {MAX_NODES}", code="testbed.range"
        )
    if not 0 <= latency_s <= 1:
        raise RunnerUsageError(
            f"--latency {latency_s:g} s is out of range; expected 0 to 1 s each way",
            code="testbed.range",
        )
    if rate_bps and not 100_000 <= rate_bps <= 100_000_000_000:
        raise RunnerUsageError(
            f"--rate {rate_bps} bit/s is out of range; expected 100kbit to 100gbit, or unlimited",
            code="testbed.range",
        )
    if not 576 <= mtu <= MTU:
        raise RunnerUsageError(
            f"--mtu {mtu} is out of range; expected 576 to {MTU}", code="testbed.range"
        )


def _same(
    current: Testbed, cpus: list[tuple[int, ...]], latency_s: float, rate_bps: int, mtu: int
) -> Testbed:
    request = (cpus, latency_s, rate_bps, mtu)
    if request == (
        [n.cpus for n in current.nodes],
        current.latency_s,
        current.rate_bps,
        current.mtu,
    ):
        return current
    rate = f"{current.rate_bps:.3g} bit/s" if current.rate_bps else "unlimited"
    raise RunnerError(
        f"testbed {current.name} is up with {len(current.nodes)} nodes of "
        f"{len(current.nodes[0].cpus)} cores, {current.latency_s * 1e3:g} ms each way, "
        f"rate {rate}, MTU {current.mtu}.\n"
        "Take it down first, or give the new one another --name:\n"
        f"  autotune testbed down --name {current.name}",
        code="testbed.up",
    )


def _start(
    place: Path,
    name: str,
    cpus: list[tuple[int, ...]],
    latency_s: float,
    rate_bps: int,
    mtu: int,
) -> Testbed:
    """Start the delay line and its nodes, still without delay."""
    program = delay_line.delay_line_program()
    token = uuid.uuid4().hex
    make_folder(place / "tmp")
    # Written before any process is started: it lets the next call find every process.
    write_private(place / state.TOKEN_FILE, token)
    nodes = len(cpus)
    subnet = _free_subnet(name)
    names = [(f"{name}{i}", f"{subnet}.{i}") for i in range(1, nodes + 1)]
    lines = ["127.0.0.1 localhost", *(f"{address} {node}" for node, address in names)]
    # The nodes have it as /etc/hosts, which every user reads.
    write_private(place / "hosts", "\n".join(lines) + "\n", 0o644)
    words = [program, "line", name, subnet, nodes, mtu, place / "tmp", place / "hosts"]
    spin_ns = SPIN_NS if latency_s < SPIN_BELOW_S else 0
    words += [delay_line.create_shared_page(place), max(os.sched_getaffinity(0)), spin_ns]
    line, *keepers = _run([str(word) for word in words], token, place / "log", name)
    testbed = Testbed(
        name=name,
        directory=str(place),
        token=token,
        subnet=subnet,
        nodes=tuple(
            Node(node, address, keeper, mine)
            for (node, address), keeper, mine in zip(names, keepers, cpus, strict=True)
        ),
        line=line,
        line_cpu=max(os.sched_getaffinity(0)),
        latency_s=latency_s,
        rate_bps=rate_bps,
        mtu=mtu,
    )
    launch.write_files(testbed)
    return testbed


def _cpus(nodes: int, cores: int | None) -> list[tuple[int, ...]]:
    """The CPUs of each node: equal shares in order, or one each in turn if there are too few."""
    all_of_them = sorted(os.sched_getaffinity(0))
    share = len(all_of_them) // nodes
    if cores is not None:
        if not 1 <= cores <= max(share, 1):
            raise RunnerError(
                f"--cores {cores} is out of range; {nodes} nodes on {len(all_of_them)} CPUs can "
                f"have 1 to {max(share, 1)}",
                code="testbed.range",
            )
        share = min(cores, share)
    if share == 0:
        return [(all_of_them[i % len(all_of_them)],) for i in range(nodes)]
    return [tuple(all_of_them[i * share : (i + 1) * share]) for i in range(nodes)]


def _free_subnet(name: str) -> str:
    """A network to which this machine has no route yet; always the same for a name, if free.

    It is part of 198.18.0.0/15, which RFC 2544 reserves for tests of networks.
    """
    used_subnets = set()
    for row in _ROUTES.read_text(encoding="ascii").splitlines()[1:]:
        raw = bytes.fromhex(row.split()[1])[::-1]
        used_subnets.add(f"{raw[0]}.{raw[1]}.{raw[2]}")
    start = zlib.crc32(name.encode()) % 512
    for i in range(512):
        number = (start + i) % 512
        subnet = f"198.{18 + number // 256}.{number % 256}"
        if subnet not in used_subnets:
            return subnet
    raise RunnerError(
        "no network of 198.18.0.0/15 is free; take some testbeds down", code="testbed.no_network"
    )


def _run(words: list[str], token: str, log: Path, name: str) -> list[NodeProcess]:
    """Start the program, which detaches once it works; returns its processes, delay line first."""
    with open_private(log) as errors:
        try:
            process = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={"PATH": os.environ.get("PATH", os.defpath), TOKEN: token},
                cwd="/",
                start_new_session=True,
                timeout=_START_S,
                check=False,
            )
            texts = process.stdout.decode().split()
        except subprocess.TimeoutExpired:
            texts = []
    processes = [node_process(int(word)) for word in texts]
    if not processes or None in processes:
        why = log.read_text(encoding="utf-8", errors="replace").strip() or "it printed nothing"
        raise RunnerError(
            f"testbed {name} did not start: {why}.\nA container may lack the rights "
            "(CAP_NET_ADMIN and CAP_SYS_ADMIN). A device that is busy belongs to a testbed "
            "of another directory.",
            code="testbed.start_fails",
        )
    return [one for one in processes if one is not None]


def _clean(name: str) -> Removal:
    """Remove all parts of a testbed, whether it works or not."""
    place = state.trusted_directory(name)
    count = 0
    with contextlib.suppress(FileNotFoundError):
        token = (place / state.TOKEN_FILE).read_text(encoding="utf-8").strip()
        count = end_all(token) if token else 0
        _wait_for_removal(token, name)
    was_present = exists(place)
    shutil.rmtree(place, ignore_errors=True)
    if exists(place):
        raise RunnerError(
            f"{place} cannot be removed; remove it by hand", code="testbed.unwritable"
        )
    return Removal(name, was_present, count)


def _wait_for_removal(token: str, name: str) -> None:
    """Wait for the devices to go; the kernel removes them a moment after their last process."""
    device = Path("/sys/class/net") / f"tb-{name}"
    until = time.monotonic() + 5
    while (exists(device) or with_token(token)) and time.monotonic() < until:
        time.sleep(0.01)
