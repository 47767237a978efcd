"""Whatever is killed, by whom and when: nothing of a run stays, and the next run works."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from runner.supervise import Supervisor, SupervisorLoss, process_tree
from tests.refusals import refused
from tests.runner.supervising import MARK, eventually, marked, request, stubborn

# Prints the supervisor's process id, then runs the stubborn program again and again.
TUNER = """
import sys
from pathlib import Path
from tests.runner.supervising import stubborn
from runner.supervise import RunInterrupt, Supervisor, client
client._STOPPED_MS = 200
folder, grace, seconds = Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
with Supervisor() as supervisor:
    supervisor.start()
    print(supervisor.pid, flush=True)
    while True:
        try:
            supervisor.run(stubborn(folder / 'ready', seconds, grace_s=grace, linger_s=0.05))
        except RunInterrupt as interrupt:
            result = interrupt.result
            print('interrupted', result is not None and result.interrupted, flush=True)
            raise SystemExit(130)
"""


def tuner(mark: str, folder: Path, grace_s: float, seconds: float) -> subprocess.Popen[str]:
    """A tuner process of its own; everything below it carries the mark."""
    folder.mkdir(exist_ok=True)
    path = str(Path(__file__).parents[2])
    words = [sys.executable, "-c", TUNER, str(folder), str(grace_s), str(seconds)]
    env = {**os.environ, MARK: mark, "PYTHONPATH": path}
    return subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True)


def test_tuner_killed_at_random_moments(tmp_path: Path) -> None:
    moments = random.Random(7)
    tuners = [tuner(f"k{n}", tmp_path / f"{n}", 0.1, 0.1) for n in range(4)]
    for one in tuners:
        assert one.stdout is not None
        assert int(one.stdout.readline()) > 0
    for one in tuners:
        time.sleep(moments.uniform(0, 0.2))
        one.kill()
        one.wait()
    # The supervisors themselves carry the mark as well: they too must be gone.
    assert eventually(lambda: not any(marked(f"k{n}") for n in range(4)))


def test_supervisor_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARK, "server")
    ready = tmp_path / "ready"
    with Supervisor() as supervisor:
        supervisor.start()

        def kill() -> None:
            eventually(ready.exists)
            assert supervisor.pid is not None
            os.kill(supervisor.pid, signal.SIGKILL)

        thread = threading.Thread(target=kill)
        thread.start()
        with refused(SupervisorLoss, "run.supervisor_lost"):
            supervisor.run(stubborn(ready, grace_s=0.2))
        thread.join()
        assert set(marked("server")) <= {os.getpid()}
        assert supervisor.run(request("true")).exit_code == 0


def test_supervisor_killed_between_runs() -> None:
    with Supervisor() as supervisor:
        assert supervisor.run(request("true")).exit_code == 0
        assert supervisor.pid is not None
        os.kill(supervisor.pid, signal.SIGKILL)
        assert eventually(lambda: not process_tree.is_alive(supervisor.pid or 0))
        assert supervisor.run(request("true")).exit_code == 0


def test_supervisor_terminated_politely_ends_the_run(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    with Supervisor() as supervisor:
        supervisor.start()

        def terminate() -> None:
            eventually(ready.exists)
            assert supervisor.pid is not None
            os.kill(supervisor.pid, signal.SIGTERM)

        thread = threading.Thread(target=terminate)
        thread.start()
        assert supervisor.run(stubborn(ready, grace_s=0.1)).interrupted
        thread.join()
        assert supervisor.run(request("true")).exit_code == 0


def test_both_killed_is_put_right_by_the_next_tuner(tmp_path: Path) -> None:
    one = tuner("both", tmp_path, 0.1, 600)
    assert one.stdout is not None
    server = int(one.stdout.readline())
    assert eventually((tmp_path / "ready").exists)
    for pid in (one.pid, server):
        os.kill(pid, signal.SIGSTOP)
    for pid in (server, one.pid):
        os.kill(pid, signal.SIGKILL)
    one.wait()
    assert eventually(lambda: not process_tree.is_alive(server))
    # The launcher got SIGTERM when the supervisor died; what ignores or missed it stays.
    assert marked("both")
    assert process_tree.end(process_tree.find_orphans, 0.1) == set()
    assert marked("both") == []


@pytest.mark.parametrize(("signals", "grace_s"), [(1, 0.1), (2, 600.0), (4, 600.0)])
def test_ctrl_c(tmp_path: Path, signals: int, grace_s: float) -> None:
    """Once with a short grace; again while a long grace runs, which ends the waiting."""
    mark = f"int{signals}"
    one = tuner(mark, tmp_path, grace_s, 600)
    assert one.stdout is not None
    assert eventually((tmp_path / "ready").exists)
    for _ in range(signals):
        one.send_signal(signal.SIGINT)
        time.sleep(0.05)
    output = one.stdout.read()
    # A third one may come after the run, where it is an ordinary KeyboardInterrupt.
    assert one.wait() in ({130} if signals < 3 else {130, -signal.SIGINT})
    assert output.splitlines()[1] == "interrupted True"
    assert marked(mark) == []


def test_ctrl_c_at_random_moments(tmp_path: Path) -> None:
    moments = random.Random(11)
    tuners = [tuner(f"r{n}", tmp_path / f"{n}", 0.1, 0.01) for n in range(4)]
    for one in tuners:
        assert one.stdout is not None
        one.stdout.readline()
    for one in tuners:
        time.sleep(moments.uniform(0, 0.1))
        one.send_signal(signal.SIGINT)
    # Between two runs it is an ordinary KeyboardInterrupt, which ends Python by that signal.
    assert {one.wait() for one in tuners} <= {130, -signal.SIGINT}
    assert eventually(lambda: not any(marked(f"r{n}") for n in range(4)))
