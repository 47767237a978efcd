"""Faults of a Slurm under searches whose ranks srun starts: no finished run is lost."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autotune.store import Store
from runner.scheduler import find
from tests.chaos.conftest import carrying
from tests.mpi_environments import environment as mpi_environment
from tests.servers import missing_for_slurm, slurm

WHY = missing_for_slurm()
pytestmark = [
    pytest.mark.chaos,
    pytest.mark.mpi,
    pytest.mark.skipif(WHY is not None, reason=str(WHY)),
]
PATIENCE_S = 60.0
PROGRAM = """
import os, sys, time
from mpi4py import MPI
free = MPI.COMM_WORLD.allreduce(len(os.sched_getaffinity(0)), op=MPI.MIN) > 1
time.sleep(float(sys.argv[1]))
if MPI.COMM_WORLD.rank == 0:
    print("time =", 0.5 if free else 1.0, "s")
"""


@pytest.fixture(scope="module")
def conf() -> Iterator[str]:
    with slurm() as environment:
        yield environment["SLURM_CONF"]


class Place:
    """A folder with a program, its results database, and jobs that search."""

    def __init__(self, folder: Path, mark: str) -> None:
        self.folder, self.mark = folder, mark
        self.store = folder / "r.db"
        (folder / "bound.py").write_text(PROGRAM)
        self.program = ["srun", "-n", "2", sys.executable, str(folder / "bound.py")]
        self.own = [sys.executable, "-m", "autotune"]
        self.mpi = ["--no-guard", "--timeout", "30", "--mpi", str(mpi_environment("mpich"))]

    @property
    def search(self) -> list[str]:
        options = ["--space", "srun", "--trials", "5", "--min-gain", "40", "--runs", "40"]
        options += ["--metric", r"time = (\S+)", "--store", str(self.store)]
        return [*self.own, "search", *self.mpi, *options, "--", *self.program, "0.1", self.mark]

    def run(self, seconds: float) -> list[str]:
        return [*self.own, "run", *self.mpi, "--", *self.program, str(seconds), self.mark]

    def submit(self, words: list[str], *options: str) -> str:
        job = self.folder / "job"
        job.write_text(f"#!/bin/sh\nexec {shlex.join(words)}\n")
        line = ["sbatch", "--parsable", "--ntasks=2", "--exclusive", "--open-mode=append"]
        line += [f"--output={self.folder}/log", *options, str(job)]
        return output(line).strip()

    @property
    def log(self) -> str:
        path = self.folder / "log"
        return path.read_text() if path.exists() else ""

    @property
    def orders(self) -> list[int]:
        """The numbers of all stored runs."""
        if not self.store.exists():
            return []
        with Store.open(str(self.store)) as store:
            studies = store.studies()
            return [run.order for study in studies for run in store.runs(study.id)]

    def wait(self, done: Callable[[], object], what: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while not done():
            assert time.monotonic() < end, f"{what}: {self.log}"
            time.sleep(0.2)

    def wait_for_end(self, job: str) -> None:
        self.wait(lambda: find("slurm").states([job])[job] == "ended", f"end of {job}")

    def check_whole(self, before: int) -> None:
        """The search has its answer, and the runs from before are among its runs."""
        assert "best seen" in self.log  # data
        assert sorted(self.orders) == list(range(len(self.orders)))
        assert len(self.orders) > before >= 3
        with Store.open(str(self.store)) as store:
            (study,) = store.studies()
            assert store.get_study(study.id).result is not None


def output(words: list[str]) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


@pytest.fixture
def place(work: Path, mark: str, conf: str, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("SLURM_CONF", conf)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setenv("AUTOTUNE_LOCK_FILE", str(work / "lock"))
    return Place(work, mark)


@pytest.mark.parametrize("how", ["cancelled", "requeued", "node"])
def test_a_job_that_ends_in_a_search(place: Place, how: str, fault: Callable[[str], None]) -> None:
    """The job, or its next start, continues where it stopped."""
    job = place.submit(place.search, "--requeue")
    place.wait(lambda: len(place.orders) >= 3, "three runs")
    fault(how)
    if how == "cancelled":
        output(["scancel", job])
        place.wait_for_end(job)
    elif how == "requeued":
        output(["scontrol", "requeue", job])
    else:
        node = output(["sinfo", "--noheader", "--Node", "--format=%N"]).strip()
        output(["scontrol", "update", f"nodename={node}", "state=down", "reason=test"])
    place.wait(lambda: not carrying(place.mark), "the end of all processes")
    before = len(place.orders)
    if how == "cancelled":
        job = place.submit(place.search)
    else:
        place.wait(lambda: find("slurm").states([job])[job] == "pending", "queue")
        # Slurm waits two minutes; a node that still has the job refuses it, and is drained.
        place.wait(lambda: not carrying(f"slurmstepd: [{job}."), "the end of the job's daemons")
        output(["scontrol", "update", f"jobid={job}", "StartTime=now"])
        if how == "node":  # It registers again by itself, or is brought back.
            words = ["scontrol", "update", f"nodename={node}", "state=resume"]
            subprocess.run(words, capture_output=True, check=False)
    place.wait_for_end(job)
    place.check_whole(before)


def test_the_time_limit_of_a_job_in_a_run(place: Place, fault: Callable[[str], None]) -> None:
    """Slurm's shortest limit is a minute."""
    fault("time limit")
    line = place.run(300)
    line[line.index("30")] = "300"
    job = place.submit(line, "--time=1")
    time.sleep(30)
    place.wait_for_end(job)
    end = find("slurm").end_of(job)
    assert end is not None, place.log
    assert end.cause == "time_limit"


@pytest.mark.parametrize("who", ["srun", "autotune", "all"])
def test_kills_in_a_run(place: Place, who: str, fault: Callable[[str], None]) -> None:
    """A step whose srun is gone is cancelled; of one whom nobody is left to cancel, Slurm's own
    limit ends it."""
    line = place.run(300)
    job = place.submit(["sh", "-c", f"{shlex.join(line)}; echo ended; sleep 300"])
    place.wait(lambda: "autotune-" in steps(job), "a step")
    time.sleep(1)
    fault(f"{who} killed")
    found = {kind: processes(kind, place.mark) for kind in ("srun", "autotune")}
    assert all(found.values())
    for pid in found["srun"] if who == "srun" else found["autotune"]:
        os.kill(pid, signal.SIGKILL)
    if who == "all":
        for pid in found["srun"]:
            os.kill(pid, signal.SIGKILL)
        # The step's own limit is two minutes: looked at here is that it has one.
        limits = output(["squeue", "--steps", "--noheader", f"--jobs={job}", "--format=%j %l"])
        assert any(
            line.split()[-1] == "2:00" for line in limits.splitlines() if "autotune-" in line
        )
    else:
        place.wait(lambda: "autotune-" not in steps(job), "the end of the step")
        place.wait(lambda: "ended" in place.log, "the end of the run")
    output(["scancel", job])
    place.wait_for_end(job)


def steps(job: str) -> str:
    return output(["squeue", "--steps", "--noheader", f"--jobs={job}", "--format=%j"])


def processes(kind: str, mark: str) -> list[int]:
    """Processes with the mark: srun, or autotune itself."""
    found = []
    for pid in carrying(mark):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        is_srun = Path(os.fsdecode(words[0])).name == "srun"
        is_own = b"autotune" in words[:4]
        if (kind == "srun" and is_srun) or (
            kind == "autotune" and is_own and b"-c" not in words[:2]
        ):
            found.append(pid)
    return found


def test_an_array_of_searches(place: Place, fault: Callable[[str], None]) -> None:
    """The tasks of an array are one study; the second finds the runs of the first."""
    fault("array")
    job = place.submit(place.search, "--array=0-1")
    place.wait(lambda: not output(["squeue", "--noheader", f"--jobs={job}"]).strip(), "the array")
    place.check_whole(3)
