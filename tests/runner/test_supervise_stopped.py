"""A supervision process that is stopped (SIGSTOP) neither hangs a run nor stays."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from runner.supervise import Supervisor, SupervisorLoss, client
from tests.runner.supervising import MARK, eventually, marked, script
from tests.runner.test_supervise_kills import tuner

STOPS_ITS_PARENT = "import os, signal; os.kill(os.getppid(), signal.SIGSTOP)"
STOPS_AGAIN = """
import os, signal, time
while True:
    os.kill(os.getppid(), signal.SIGSTOP)
    time.sleep(0.01)
"""


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_STOPPED_MS", 200)


def test_a_run_that_stops_its_supervisor_ends_and_does_not_count() -> None:
    with Supervisor() as supervisor:
        result = supervisor.run(script(STOPS_ITS_PARENT))
        assert (result.exit_code, result.stops) == (0, 1)
        assert supervisor.run(script("")).stops == 0


def test_the_time_limit_acts_all_the_same() -> None:
    with Supervisor() as supervisor:
        result = supervisor.run(script(f"{STOPS_ITS_PARENT}; import time; time.sleep(600)",
                                       timeout_s=1.0, grace_s=0.1))  # fmt: skip
        assert result.timed_out
        assert result.stops == 1


def test_one_that_is_stopped_again_and_again_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARK, "stopped")
    with Supervisor() as supervisor:
        with pytest.raises(SupervisorLoss):
            supervisor.run(script(STOPS_AGAIN, grace_s=0.1))
        assert supervisor.run(script("")).exit_code == 0
    assert eventually(lambda: not marked("stopped"))


def test_a_stopped_supervisor_goes_with_its_tuner(tmp_path: Path) -> None:
    one = tuner("gone", tmp_path / "x", 0.1, 600)
    assert one.stdout is not None
    pid = int(one.stdout.readline())
    assert eventually(lambda: (tmp_path / "x" / "ready").exists())
    os.kill(pid, signal.SIGSTOP)
    one.kill()
    one.wait()
    assert eventually(lambda: not marked("gone"), 30)


def test_a_terminated_tuner_ends_with_a_stopped_supervisor(tmp_path: Path) -> None:
    one = tuner("term", tmp_path / "y", 0.1, 600)
    assert one.stdout is not None
    pid = int(one.stdout.readline())
    assert eventually(lambda: (tmp_path / "y" / "ready").exists())
    os.kill(pid, signal.SIGSTOP)
    one.send_signal(signal.SIGINT)
    assert one.wait(60) == 130
    assert eventually(lambda: not marked("term"), 30)
