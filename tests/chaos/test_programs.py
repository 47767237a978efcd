"""Programs that do what programs should not: the run says so, and nothing of it is left."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable

import pytest

from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.types import LaunchSpec, RunRecord

pytestmark = [pytest.mark.chaos, pytest.mark.mpi]
MPI = (
    "import os, signal, subprocess, sys, time\nfrom mpi4py import MPI\nrank = MPI.COMM_WORLD.rank\n"
)
GOOD = 'MPI.COMM_WORLD.Barrier()\nif rank == 0: print("time 1.5")\n'
METRIC = r"time ([0-9.]+)"
LINE = "b'x' * 79 + b'\\n'"
CHILD = (
    "[sys.executable, '-c', 'import time; time.sleep(600)', sys.argv[1]], start_new_session=True"
)
CASES: dict[str, tuple[str, str]] = {
    # mpirun passes on 6 MB of lines a second here, and long lines far slower (20 MB: minutes).
    "100 MB of output": (
        MPI + f"if rank == 0:\n    for _ in range(96): os.write(1, ({LINE}) * 13107)\n" + GOOD,
        "ok"),
    "lines of a megabyte on both streams": (
        MPI + "os.write(1 + rank, b'y' * 2**20 + b'\\n')\n" + GOOD, "ok"),
    "gigabytes without a line end": (
        MPI + "for _ in range(1100): os.write(1 + rank, b'y' * 2**20)\n" + GOOD, "timeout"),
    "binary output": (
        MPI + "os.write(1, bytes(range(256)) * 4000)\nos.write(1, b'\\n')\n" + GOOD, "ok"),
    "its figure twice": (MPI + GOOD + GOOD, "ok"),
    "a figure that is none": (MPI + 'print("time ...")\n', "no_metric"),
    "a figure beyond all numbers": (MPI + 'print("time " + "9" * 400)\n', "no_metric"),
    "nothing printed": (MPI, "no_metric"),
    "hangs before MPI_Init": ("import time\ntime.sleep(600)\n", "timeout"),
    "hangs after MPI_Finalize": (MPI + GOOD + "MPI.Finalize()\ntime.sleep(600)\n", "timeout"),
    "one rank hangs": (MPI + "if rank: time.sleep(600)\n" + GOOD, "timeout"),
    "ignores SIGTERM": (
        MPI + "for s in (15, 2): signal.signal(s, signal.SIG_IGN)\ntime.sleep(600)\n", "timeout"),
    "kills itself": (MPI + "if rank: os.kill(os.getpid(), 9)\n" + GOOD + "time.sleep(5)", "failed"),
    "segmentation fault": (MPI + "if rank: os.kill(os.getpid(), 11)\n" + GOOD, "failed"),
    "exit code 3": (MPI + GOOD + "sys.exit(3)\n", "failed"),
    "aborts": (MPI + "if rank: MPI.COMM_WORLD.Abort(7)\ntime.sleep(20)\n", "failed"),
    # mpirun ends when nobody holds the output of a rank any more.
    "a grandchild in a group of its own": (
        MPI + f"subprocess.Popen({CHILD}, stdout=-3, stderr=-3)\n" + GOOD, "ok"),
    "a grandchild that holds the output": (MPI + f"subprocess.Popen({CHILD})\n" + GOOD, "timeout"),
    "a daemon": (
        MPI + "if os.fork() == 0:\n    os.setsid()\n    os.closerange(0, 3)\n"
        "    if os.fork() == 0: time.sleep(600)\n    os._exit(0)\n" + GOOD, "ok"),
    "a daemon that holds the output": (
        MPI + "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(600)\n"
        "    os._exit(0)\n" + GOOD, "timeout"),
    "closes its streams": (MPI + GOOD + "sys.stdout.flush()\nos.close(1)\nos.close(2)\n", "ok"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_bad_program(
    name: str, open_mpi: Library, mark: str, fault: Callable[[str], None]
) -> None:
    fault("bad program")
    text, wanted = CASES[name]
    with Runner(adapter(open_mpi), guard=False) as runner:
        record = run(runner, text, mark, 8.0 if wanted == "timeout" else 60.0)
        # The next run is a good one: nothing was left in its way.
        after = run(runner, MPI + GOOD, mark, 60.0)
    assert record.state == wanted or (wanted == "failed" and record.state != "ok"), record
    assert record.reason or record.valid
    assert len(record.stdout_tail) < 100_000
    if record.valid:
        assert record.value_s == 1.5
    assert after.valid, after.reason


def run(runner: Runner, text: str, mark: str, timeout_s: float) -> RunRecord:
    spec = LaunchSpec(
        program=(sys.executable, "-c", text, mark), ranks=2, metric=METRIC, timeout_s=timeout_s
    )
    return runner.run(spec)


@pytest.mark.parametrize("which", ["mpirun", "ranks"])
def test_what_it_started_is_killed(
    which: str, open_mpi: Library, mark: str, fault: Callable[[str], None]
) -> None:
    """From outside, in the middle of a run."""
    fault(f"{which} killed")
    killer = (
        "import os, sys, time, signal\n"
        "time.sleep(1.5)\n"
        "for p in os.listdir('/proc'):\n"
        "    if not p.isdigit() or int(p) == os.getpid(): continue\n"
        "    try: words = open(f'/proc/{p}/cmdline').read()\n"
        "    except OSError: continue\n"
        "    launcher = 'mpirun' in words.split(chr(0))[0] or 'prterun' in words.split(chr(0))[0]\n"
        f"    if {mark!r} in words and launcher == {which == 'mpirun'} and 'killer' not in words:\n"
        "        os.kill(int(p), signal.SIGKILL)\n"
    )
    text = MPI + (
        "if rank == 0:\n"
        f"    words = [sys.executable, '-c', {killer!r}, 'killer']\n"
        "    subprocess.Popen(words, start_new_session=True)\n"
        "time.sleep(30)\n"
    )
    with Runner(adapter(open_mpi), guard=False) as runner:
        began = time.monotonic()
        record = run(runner, text, mark, 40.0)
        assert time.monotonic() - began < 35
        assert not record.valid
        assert record.reason
        assert run(runner, MPI + GOOD, mark, 60.0).valid


def test_the_supervisor_is_killed(
    open_mpi: Library, mark: str, fault: Callable[[str], None]
) -> None:
    """What it looked after ends with it, and the tuner says what happened."""
    from runner.errors import RunnerError

    fault("supervisor killed")
    text = MPI + (
        "if rank == 0:\n"
        "    p = os.getppid()\n"
        "    while True:\n"
        "        words = open(f'/proc/{p}/cmdline').read()\n"
        "        up = int(open(f'/proc/{p}/stat').read().rpartition(')')[2].split()[1])\n"
        "        if 'mpirun' in words or 'prterun' in words: break\n"
        "        p = up\n"
        "    time.sleep(1)\n"
        "    os.kill(up, signal.SIGKILL)\n"
        "time.sleep(60)\n"
    )
    spec = LaunchSpec(program=(sys.executable, "-c", text, mark), ranks=2, timeout_s=50)
    with Runner(adapter(open_mpi), guard=False) as runner, pytest.raises(RunnerError):
        runner.run(spec)
    with Runner(adapter(open_mpi), guard=False) as runner:
        good = dataclasses.replace(spec, program=(sys.executable, "-c", MPI + GOOD, mark))
        assert runner.run(good).valid
