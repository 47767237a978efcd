"""Ranks stolen between processes of a node: real mpirun, and what is refused."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from runner.mpi.library import Library
from runner.runtimes import mate
from tests.mate.stealing import CHECKS
from tests.refusals import refused
from tests.started import RANKS_PATH, started

ROOT = Path(__file__).parents[2]


def test_what_excludes_each_other_is_refused() -> None:
    with refused(mate.ConfigError, "mate.option"):
        mate.Config(steal="node", core="python")
    with refused(mate.ConfigError, "mate.option"):
        mate.Config(steal="node", queue="fixed")
    with refused(mate.ConfigError, "mate.option"):
        mate.Config(steal="x")


def test_one_process_has_nobody_to_steal_from() -> None:
    async def main(ctx: mate.Context) -> int:
        return ctx.rank

    assert mate.run(main, mate.Config(steal="node", core="native")).results == [0]


def command(library: Library, processes: int, case: str) -> list[str]:
    launch = [library.launcher, "--bind-to", "none", "--oversubscribe"]
    launch += ["--mca", "pml", "ob1", "--mca", "btl", "self,sm,vader", "-n", str(processes)]
    return [*launch, sys.executable, "-m", "tests.mate.stealing", case]


ENVIRONMENT = {
    **os.environ,
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PYTHONPATH": RANKS_PATH,
    "OPENBLAS_NUM_THREADS": "1",
}


def start(library: Library, processes: int, case: str) -> subprocess.CompletedProcess[str]:
    return started(command(library, processes, case), env=ENVIRONMENT, cwd=ROOT, timeout=100)


@pytest.mark.mpi
@pytest.mark.parametrize("processes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_all_checks_hold(open_mpi: Library, processes: int) -> None:
    done = start(open_mpi, processes, "checks")
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert set(told) == set(CHECKS)
    assert not any(told.values()), "\n".join(f"{n}:\n{p}" for n, p in told.items() if p)


REFUSED = {"outside": 1, "messages": 1, "no-arena": 2, "other-arena": 2, "stuck": 1}
"""The exit codes."""


@pytest.mark.mpi
@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_said_in_words(
    open_mpi: Library, case: str, snapshot: SnapshotAssertion
) -> None:
    done = start(open_mpi, 2, case)
    assert done.returncode == REFUSED[case], done.stderr
    said = next(line for line in done.stderr.splitlines() if re.search("--steal|deadlock", line))
    assert re.sub(r"^.*\(process [0-9]\): ", "", said) == snapshot
    assert ("(tag 0)" in done.stderr) == (case == "stuck")
    assert "Traceback" not in done.stderr


def alive(process: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has waited for does not."""
    with contextlib.suppress(OSError):
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    return False


def holders() -> set[str]:
    """The processes that have the memory of an arena mapped."""
    found = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            if "memfd:arena" in maps.read_text():  # data
                found.add(maps.parent.name)
    return found


@pytest.mark.mpi
def test_a_killed_process_leaves_nothing_behind(open_mpi: Library) -> None:
    before = set(Path("/dev/shm").iterdir())
    job = subprocess.Popen(
        command(open_mpi, 2, "killed"), env=ENVIRONMENT, cwd=ROOT, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    with job, contextlib.ExitStack() as after:
        after.callback(job.kill)
        assert job.stdout is not None
        lines = (line for line in job.stdout if line.strip())
        processes = json.loads(next(lines))
        wanted = set(map(str, processes))
        end = time.monotonic() + 60
        while not wanted <= holders() and time.monotonic() < end:
            time.sleep(0.05)
        assert wanted <= holders()
        time.sleep(0.5)
        os.kill(processes[1], signal.SIGKILL)
        assert job.wait(60) != 0
    end = time.monotonic() + 20
    while any(map(alive, processes)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(alive, processes))
    assert not wanted & holders()
    # Segments of MPI libraries have names of their own.
    left = {name for name in set(Path("/dev/shm").iterdir()) - before if "arena" in name.name}
    assert not left
