"""Up, down, twice, side by side."""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from runner import testbed as tb
from runner.errors import RunnerError
from runner.testbed import delay_line, measure, model, state
from tests.refusals import refused
from tests.testbed import traces

NewName = Callable[[], str]
SEEN = (
    "import os, socket; print(socket.gethostname(), os.environ['TMPDIR'], os.listdir('/dev/shm'))"
)


def in_node(bed: tb.Testbed, number: int, command: str) -> subprocess.CompletedProcess[str]:
    """A shell command in a node, started as a launcher would."""
    address = bed.nodes[number - 1].address
    words = [str(bed.agent), address, command]
    return subprocess.run(words, capture_output=True, text=True, timeout=20, check=False)


def test_down_leaves_nothing(bed: tb.Testbed) -> None:
    assert len(traces.of(bed)) >= 5
    done = tb.down(bed.name)
    assert done.found
    assert done.processes == 3
    assert traces.of(bed) == []
    assert not tb.down(bed.name).found


def test_up_again_returns_the_one_that_is_there(bed: tb.Testbed) -> None:
    assert tb.up(bed.name, nodes=2, latency_s=0.0, rate_bps=0) == bed
    assert tb.find_testbed(bed.name) == bed


def test_up_with_other_properties_is_refused(bed: tb.Testbed) -> None:
    with refused(RunnerError, "testbed.up"):
        tb.up(bed.name, nodes=3, latency_s=0.0, rate_bps=0)
    assert state.works(bed)


def test_the_record_is_json_both_ways(bed: tb.Testbed) -> None:
    assert model.testbed_from_json(json.loads(json.dumps(dataclasses.asdict(bed)))) == bed


def test_two_side_by_side(bed: tb.Testbed, new_name: NewName) -> None:
    other = tb.up(new_name(), nodes=3, latency_s=0.0, rate_bps=0)
    assert other.subnet != bed.subnet
    assert other.own_process != bed.own_process
    assert sorted(tb.names()) == sorted([bed.name, other.name])
    tb.down(bed.name)
    assert traces.of(bed) == []
    assert state.works(other)
    assert in_node(other, 3, "hostname").stdout.strip() == other.nodes[2].name


def test_each_node_has_its_own_name_place_and_cpus(bed: tb.Testbed) -> None:
    in_node(bed, 1, 'echo one > "$TMPDIR/file"; echo one > /dev/shm/file')
    seen = in_node(bed, 2, f'{sys.executable} -c "{SEEN}"; ls "$TMPDIR"; taskset -cp $$')
    words = seen.stdout.split()
    assert words[0] == bed.nodes[1].name != socket.gethostname()
    assert words[1] == f"{bed.directory}/tmp"
    assert words[2] == "[]"
    assert "file" not in seen.stdout
    assert words[-1] == ",".join(map(str, bed.nodes[1].cpus))
    assert not list((Path(bed.directory) / "tmp").iterdir())


def test_nodes_reach_each_other_by_name_and_nothing_else(bed: tb.Testbed) -> None:
    far = bed.nodes[1].name
    code = f"import socket; print(socket.gethostbyname('{far}')); print(socket.if_nameindex())"
    seen = in_node(bed, 1, f'{sys.executable} -c "{code}"').stdout.splitlines()
    assert seen[0] == bed.nodes[1].address
    devices = {name for _, name in eval(seen[1])}
    assert {"lo", "net0"} <= devices
    assert "eth0" not in devices
    assert bed.device not in devices


def test_agent_refuses_a_node_that_is_not_there(bed: tb.Testbed) -> None:
    done = subprocess.run([bed.agent, "198.18.0.99", "hostname"], capture_output=True, timeout=10)
    assert done.returncode == 255
    assert b"has no node" in done.stderr


def test_nodes_that_share_cpus_are_declared_oversubscribed(new_name: NewName) -> None:
    cpus = len(os.sched_getaffinity(0))
    crowded = tb.up(new_name(), nodes=cpus + 1, latency_s=0.0, rate_bps=0)
    assert crowded.shared_cpus
    assert len(crowded.cpus) == cpus
    assert in_node(crowded, 1, "echo $OMPI_MCA_mpi_yield_when_idle").stdout.strip() == "1"


def test_run_takes_over_the_exit_code(bed: tb.Testbed) -> None:
    assert tb.run(bed.name, ("sh", "-c", "exit 7")).exit_code == 7


def test_nothing_arrives_before_its_time(
    new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "PING_S", 0.2)
    monkeypatch.setattr(measure, "STREAM_S", 0.1)
    # The compensation need not be a good one.
    monkeypatch.setattr(measure, "_ATTEMPTS", 3)
    monkeypatch.setattr(measure, "_READINGS", 1)
    late = tb.up(new_name(), nodes=2, latency_s=0.005, rate_bps=0)
    seen = tb.status(late.name)
    assert seen.state == "up"
    assert seen.round_trip_low_s is not None
    assert seen.round_trip_low_s >= 2 * (late.latency_s - late.compensation_s)
    assert 0 <= late.compensation_s < late.latency_s
    place = Path(late.directory)
    ends = time.monotonic() + 10
    while delay_line.read_counters(place).flying and time.monotonic() < ends:
        time.sleep(0.01)  # the connection is being closed
    counted = delay_line.read_counters(place)
    assert counted.packets > 40
    assert counted.flying == 0
    assert 0 < counted.flying_max <= counted.bytes
    assert counted.flying_byte_ns >= counted.bytes * counted.latency_ns
    delay_line.forget_most(place)
    assert delay_line.read_counters(place).flying_max == 0
    assert seen.dropped == 0


def test_the_rate_holds(new_name: NewName, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "PING_S", 0.1)
    slow = tb.up(new_name(), nodes=2, latency_s=0.0, rate_bps=20_000_000)
    assert slow.shaper in ("tbf", "delay line")  # data
    seen = tb.status(slow.name)
    # Without the limit it is some thousand Mbit/s.
    assert seen.bandwidth_bps is not None
    assert seen.bandwidth_bps < 60_000_000
