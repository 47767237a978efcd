"""A launcher that goes on after its ranks have ended is ended; one that works is left alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.supervise import process_tree
from runner.supervise.watches import LauncherWatch
from runner.types import LaunchSpec
from tests.runner.supervising import eventually

RANK = "OMPI_COMM_WORLD_RANK"
LAUNCHER = f"""
import os, sys, time
pids = []
for rank, seconds in enumerate(sys.argv[1:]):
    pid = os.fork()
    if not pid:
        os.execvpe("sleep", ["sleep", seconds], {{**os.environ, "{RANK}": str(rank)}})
    pids.append(pid)
print(*pids, flush=True)
time.sleep(100)
"""


@contextmanager
def launcher(*seconds: str) -> Iterator[tuple[int, list[int]]]:
    """The process ids of a launcher that collects nothing, and of its ranks."""
    words = [sys.executable, "-c", LAUNCHER, *seconds]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pids = [int(word) for word in process.stdout.readline().split()]
        try:
            # Before its exec a rank has the environment of the launcher.
            eventually(lambda: all(command(pid) == "sleep" for pid in pids))
            yield process.pid, pids
        finally:
            for pid in (*pids, process.pid):
                os.kill(pid, 9)


def command(pid: int) -> str:
    """The name of a process, also of a dead one that nobody collected."""
    return Path(f"/proc/{pid}/comm").read_text().strip()


def test_a_launcher_that_leaves_its_dead_ranks_is_stuck() -> None:
    with launcher("0", "0") as (pid, ranks):
        eventually(lambda: not any(process_tree.is_alive(rank) for rank in ranks))
        watch = LauncherWatch((RANK,), {})
        assert [watch.look(os.getpid(), pid) for _ in range(3)] == [False, True, True]


def test_a_launcher_with_a_rank_that_works_is_not() -> None:
    with launcher("0", "100") as (pid, ranks):
        eventually(lambda: not process_tree.is_alive(ranks[0]))
        watch = LauncherWatch((RANK,), {})
        assert not any(watch.look(os.getpid(), pid) for _ in range(3))


def test_a_launcher_without_dead_processes_is_not() -> None:
    with launcher() as (pid, _):
        watch = LauncherWatch((RANK,), {})
        assert not any(watch.look(os.getpid(), pid) for _ in range(3))


@pytest.mark.slow
@pytest.mark.mpi
def test_ranks_that_fail_in_mpi_init_let_no_run_hang(
    open_mpi: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PRRTE 3 did not end in 3 of 4 such starts."""
    (tmp_path / ".openmpi").mkdir()
    (tmp_path / ".openmpi" / "mca-params.conf").write_text("pml = nothere\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    program = (sys.executable, "-c", "from mpi4py import MPI")
    with Runner(adapter(open_mpi), guard=False) as runner:
        for _ in range(4):
            spec = LaunchSpec(program=program, ranks=2, timeout_s=100.0)
            record = runner.run(spec)
            assert record.state in ("failed", "launch_error"), record.reason
