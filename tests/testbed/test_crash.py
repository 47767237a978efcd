"""kill -9 of everything that can be killed: the next up or down cleans."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from runner import testbed as tb
from runner.errors import RunnerError
from runner.testbed import state
from runner.testbed.model import NodeProcess
from runner.testbed.processes import TOKEN, alive, node_process, with_token
from tests.refusals import refused
from tests.testbed import traces

NewName = Callable[[], str]
ROOT = Path(__file__).parents[2]


def wait_until_gone(*killed: NodeProcess) -> None:
    for one in killed:
        while alive(one):
            time.sleep(0.005)


def test_killed_delay_line_takes_the_nodes_with_it(bed: tb.Testbed) -> None:
    os.kill(bed.line.pid, signal.SIGKILL)
    wait_until_gone(bed.line, *(node.process for node in bed.nodes))
    assert tb.status(bed.name).state == "broken"
    with refused(RunnerError, "testbed.broken"):
        tb.find_testbed(bed.name)
    assert tb.down(bed.name).found
    assert traces.of(bed) == []


def test_killed_node_takes_all_with_it(bed: tb.Testbed) -> None:
    os.kill(bed.nodes[0].process.pid, signal.SIGKILL)
    wait_until_gone(bed.line, *(node.process for node in bed.nodes))
    fresh = tb.up(bed.name, nodes=2, latency_s=0.0, rate_bps=0)
    assert fresh.token != bed.token
    assert state.works(fresh)
    assert with_token(bed.token) == []


def test_a_program_left_in_a_node_is_ended(bed: tb.Testbed) -> None:
    words = [str(bed.agent), bed.nodes[1].address, "sleep 600 & setsid sleep 600 & wait"]
    with subprocess.Popen(words) as shell:
        while (
            sum(Path(f"/proc/{p.pid}/comm").read_text() == "sleep\n" for p in with_token(bed.token))
            < 2
        ):
            time.sleep(0.01)
        os.kill(bed.line.pid, signal.SIGKILL)
        wait_until_gone(bed.line)
        assert tb.down(bed.name).processes >= 3
        shell.wait(timeout=10)
    assert traces.of(bed) == []


def test_another_process_with_a_recorded_number_is_left_alone(bed: tb.Testbed) -> None:
    mine = node_process(os.getpid())
    assert mine is not None
    assert not alive(NodeProcess(mine.pid, mine.started_ticks + 1))
    other = {**os.environ, TOKEN: "0" * 32}
    with subprocess.Popen(["sleep", "600"], env=other) as stranger:
        tb.down(bed.name)
        assert stranger.poll() is None
        stranger.kill()


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 12))]
)
def test_up_killed_at_any_moment_is_cleaned(new_name: NewName, seed: int) -> None:
    name = new_name()
    code = f"from runner import testbed; testbed.up({name!r}, 2, 0.001, 10**9)"
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT) as starter:
        place = state.directory(name)
        # Not before there is anything to clean; from then on at any moment.
        while not (place / state.TOKEN_FILE).exists():
            time.sleep(0.001)
        time.sleep(random.Random(seed).uniform(0, 0.3))
        starter.kill()
    token = (place / state.TOKEN_FILE).read_text()
    tb.down(name)
    assert with_token(token) == []
    assert not place.exists()
    assert not (Path("/sys/class/net") / f"tb-{name}").exists()
    assert state.works(tb.up(name, 2, 0.0, 0))


def test_an_unreadable_record_is_cleaned(bed: tb.Testbed) -> None:
    (Path(bed.directory) / state.RECORD).write_text("{ half a rec")
    assert tb.status(bed.name).state == "broken"
    fresh = tb.up(bed.name, nodes=2, latency_s=0.0, rate_bps=0)
    assert state.works(fresh)
    assert not alive(bed.line)
