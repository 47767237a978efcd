"""One program under supervision: outcome, output, CPU time, time limit, leftovers."""

from __future__ import annotations

import dataclasses
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.errors import RunnerError
from runner.guard import Culprit, Foreign
from runner.outcome import load_words
from runner.supervise import ExecRequest, StartError, Supervisor
from runner.supervise.process_tree import descendants, is_alive
from tests.refusals import refused
from tests.runner.supervising import FAST, MARK, eventually, marked, request, script, stubborn

# hashlib lets the threads run at once.
BURN = """
import hashlib, threading
data = bytes(1 << 20)
def burn():
    while True:
        hashlib.sha256(data)
for _ in range(4):
    threading.Thread(target=burn).start()
"""


@pytest.fixture(scope="module")
def supervisor() -> Iterator[Supervisor]:
    with Supervisor() as one:
        one.start()  # Before a test marks the processes that it starts.
        yield one


def test_output_exit_code_and_clocks(supervisor: Supervisor) -> None:
    result = supervisor.run(
        script("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    )
    assert (result.exit_code, result.signal) == (3, None)
    assert (result.stdout_head, result.stdout_tail, result.stderr_tail) == (
        "out\n",
        "out\n",
        "err\n",
    )
    assert result.output_bytes == 8
    assert 0 < result.wall_s <= result.window_s
    assert result.cpu_s > 0
    assert (result.timed_out, result.interrupted, result.leftovers) == (False, False, ())


def test_death_by_signal(supervisor: Supervisor) -> None:
    result = supervisor.run(script("import os; os.kill(os.getpid(), 11)"))
    assert (result.exit_code, result.signal) == (None, signal.SIGSEGV)


def test_program_sees_what_was_asked_for(supervisor: Supervisor, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("fed")
    text = (
        "import os, signal, sys; print(os.getcwd(), sys.stdin.read(), os.environ['ONLY'],"
        " len(os.listdir('/proc/self/fd')), os.getsid(0) == os.getpid(),"
        " signal.getsignal(2) == signal.SIG_IGN, signal.pthread_sigmask(0, []))"
    )
    asked = ExecRequest((*FAST, text), {"ONLY": "x"}, str(tmp_path), str(tmp_path / "in"))
    result = supervisor.run(asked)
    # Descriptors: 0, 1, 2 and the one of listdir itself.
    assert result.stdout_head == f"{tmp_path} fed x 4 True False set()\n"  # data


def test_caller_s_directory_is_the_default(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert supervisor.run(request("pwd")).stdout_head.strip() == str(tmp_path)


@pytest.mark.parametrize(
    ("options", "argv", "word"),
    [
        ({}, ("no-such-program-here",), "no-such-program-here"),
        ({}, ("/etc/passwd",), "/etc/passwd"),
        ({"cwd": "/no/such/place"}, ("true",), "/no/such/place"),
        ({"stdin": "/no/such/input"}, ("true",), "/no/such/input"),
    ],
)
def test_what_cannot_start_says_why(
    supervisor: Supervisor, options: dict[str, str], argv: tuple[str, ...], word: str
) -> None:
    with refused(StartError, "program.not_started") as caught:
        supervisor.run(request(*argv, **options))
    assert word in str(caught.value)
    assert supervisor.run(request("true")).exit_code == 0


@pytest.mark.parametrize(
    "bad",
    [
        ExecRequest((), {}),
        ExecRequest(("a\0b",), {}),
        ExecRequest(("true",), {"A": "\0"}),
        ExecRequest(("true",), {}, patterns={"metric": "("}),
    ],
)
def test_requests_that_cannot_work_are_refused(supervisor: Supervisor, bad: ExecRequest) -> None:
    with pytest.raises(RunnerError):
        supervisor.run(bad)


def test_time_limit_ends_the_whole_tree(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MARK, "limit")
    result = supervisor.run(stubborn(tmp_path / "ready", timeout_s=0.5, grace_s=0.2))
    assert (tmp_path / "ready").exists()
    assert result.timed_out
    assert result.signal == signal.SIGTERM
    assert not result.leftovers
    assert marked("limit") == []


def test_what_outlives_the_launcher_is_ended_and_named(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MARK, "leftover")
    result = supervisor.run(stubborn(tmp_path / "ready", 0.0, grace_s=0.1, linger_s=0.05))
    assert result.exit_code == 0
    assert not result.timed_out
    assert len(result.leftovers) == 4
    assert all("python" in left.name for left in result.leftovers)
    assert marked("leftover") == []


def test_short_straggler_is_no_leftover(supervisor: Supervisor) -> None:
    result = supervisor.run(request("sh", "-c", "sleep 0.05 &", linger_s=5.0))
    assert result.leftovers == ()


def test_cpu_time_of_an_orphan_is_counted(supervisor: Supervisor) -> None:
    """0.4 s burnt by a grandchild whose parents are gone; 0.1 s by one that was waited for."""
    burn = "import time\nwhile time.process_time() < {}: pass\n"
    text = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork(): os._exit(0)\n"
        f"    exec({burn.format(0.4)!r})\n"
        "    os._exit(0)\n"
        "child = os.fork()\n"
        f"if child == 0:\n    exec({burn.format(0.1)!r})\n    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
    )
    result = supervisor.run(script(text, linger_s=30.0))
    assert result.leftovers == ()
    assert 0.5 <= result.cpu_s < 0.75


def test_stop_from_another_thread(supervisor: Supervisor, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    stopper = threading.Thread(
        target=lambda: (eventually(ready.exists), supervisor.stop(hurry=True))
    )
    stopper.start()
    result = supervisor.run(stubborn(ready))
    stopper.join()
    assert result.interrupted
    assert result.exit_code != 0


def test_stop_of_nothing_does_no_harm(supervisor: Supervisor) -> None:
    supervisor.stop()
    assert not supervisor.run(request("true")).interrupted


def test_closed_output_is_not_the_end(supervisor: Supervisor) -> None:
    text = "import os, time; print('before', flush=True); os.close(1); os.close(2); time.sleep(0.2)"
    result = supervisor.run(script(text))
    assert result.stdout_head == "before\n"
    assert result.wall_s > 0.2


def test_the_tuner_sleeps_and_the_window_is_judged(supervisor: Supervisor) -> None:
    text = "import time\nwhile time.process_time() < 0.3: pass"
    result = supervisor.run(script(text))
    assert result.tuner_cpu_s < 0.05
    assert result.after.busy_s - result.before.busy_s > 0.2
    assert result.foreign.limit_s == pytest.approx(0.03 + 0.04 * result.window_s)
    assert bool(result.culprits) <= result.foreign.exceeded


def test_foreign_load_is_seen_and_named(supervisor: Supervisor) -> None:
    """A process beside the run, not below it, burns CPU during all of it.

    Its threads have it use more than other work of this machine: only the largest are named.
    """
    burner = subprocess.Popen([*FAST, BURN])
    try:
        for _ in range(8):
            result = supervisor.run(request("sleep", "0.5"))
            assert result.foreign.exceeded
            named = {culprit.pid: culprit.command for culprit in result.culprits}
            if burner.pid in named:  # Others of this machine may use more for a while.
                break
        assert "hashlib" in named[burner.pid]
        declared_s = 0.0  # On a busy machine it gets little of a short time.
        for _ in range(8):
            declared = supervisor.run(request("sleep", "0.3", own_pids=(burner.pid,)))
            declared_s += declared.declared_cpu_s
            if declared_s > 0.05:
                break
        assert declared_s > 0.05
        # A daemon that starts ranks, such as Slurm's: only its name is known before the run.
        name = Path(f"/proc/{burner.pid}/comm").read_text().strip()
        for _ in range(8):
            daemon = supervisor.run(request("sleep", "0.5", own_names=(name,)))
            assert burner.pid not in [culprit.pid for culprit in daemon.culprits]
            if daemon.declared_cpu_s > 0.05:
                break
        assert daemon.declared_cpu_s > 0.05
    finally:
        burner.kill()
        burner.wait()


def test_what_the_host_took_is_not_laid_at_the_door_of_processes(supervisor: Supervisor) -> None:
    seen = supervisor.run(request("true"))
    stolen = Foreign(2.0, 0.0, 0.1, True, steal_s=1.9)
    assert "(steal)" in load_words(dataclasses.replace(seen, foreign=stolen))
    busy = Foreign(2.0, 0.0, 0.1, True, steal_s=0.1)
    said = load_words(dataclasses.replace(seen, foreign=busy))
    assert "2.00 s" in said
    assert "(steal)" not in said


@pytest.mark.parametrize(
    ("named", "parts"),
    [
        ((), ["2.00 s", "0.10 s"]),
        ((0.5, 0.25), ["2.00 s", "0.50 s", "0.25 s", "1.25 s", "0.10 s"]),
        ((1.5, 0.45), ["2.00 s", "1.50 s", "0.45 s", "0.10 s"]),
    ],
)
def test_the_parts_of_foreign_load_add_up(
    supervisor: Supervisor, named: tuple[float, ...], parts: list[str]
) -> None:
    """A process that ended before the second look at the table has no name."""
    seen = dataclasses.replace(
        supervisor.run(request("true")),
        foreign=Foreign(2.0, 0.0, 0.1, True),
        culprits=tuple(Culprit(1, "cc", used) for used in named),
    )
    assert re.findall(r"[0-9.]+ s", load_words(seen)) == parts


def test_clean_environment_reaches_the_program(supervisor: Supervisor) -> None:
    result = supervisor.run(ExecRequest(("/usr/bin/env",), {"A": "1", "B": "é"}))
    names = {line.partition("=")[0] for line in result.stdout_head.splitlines()}
    assert names == {"A", "B", "AUTOTUNE_RUN_ID"}
    assert "B=é" in result.stdout_head


def test_largest_process_is_reported(supervisor: Supervisor) -> None:
    result = supervisor.run(script("x = bytearray(100_000_000); x[::4096] = b'1' * len(x[::4096])"))
    assert 100_000_000 < result.max_rss_bytes < 200_000_000


def test_nothing_is_open_after_many_runs(supervisor: Supervisor) -> None:
    def opened() -> int:
        return len(list(Path(f"/proc/{supervisor.pid}/fd").iterdir()))

    supervisor.run(request("true"))
    waiting_child(supervisor)
    before = opened()
    for _ in range(20):
        supervisor.run(request("true"))
    # The pipes of the next program's process are made after the answer.
    assert eventually(lambda: opened() <= before)


def waiting_child(supervisor: Supervisor) -> int:
    """The process that is ready for the next program."""
    server = supervisor.pid
    assert server is not None
    assert eventually(lambda: descendants(server))
    [child] = descendants(server)
    return child


def test_killed_waiting_child_is_replaced(supervisor: Supervisor) -> None:
    supervisor.run(script("pass"))
    os.kill(waiting_child(supervisor), signal.SIGKILL)
    assert supervisor.run(script("import sys; sys.exit(4)")).exit_code == 4


def test_next_program_runs_in_the_waiting_child(supervisor: Supervisor, tmp_path: Path) -> None:
    supervisor.run(script("pass"))
    child = waiting_child(supervisor)
    result = supervisor.run(script("import os; print(os.getpid(), os.getcwd())", cwd=str(tmp_path)))
    assert result.stdout_tail.split() == [str(child), str(tmp_path)]


def test_waiting_child_ends_with_the_supervisor() -> None:
    with Supervisor() as one:
        one.run(script("pass"))
        child = waiting_child(one)
    assert not is_alive(child)


def test_waiting_child_ends_with_a_killed_supervisor() -> None:
    with Supervisor() as one:
        one.run(script("pass"))
        child = waiting_child(one)
        os.kill(one.pid or 0, signal.SIGKILL)
        assert eventually(lambda: not is_alive(child))
