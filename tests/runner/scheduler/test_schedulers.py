"""Every scheduler: submit, look, cancel; a real Slurm where it is installed."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.errors import RunnerError
from runner.scheduler import Job, Scheduler, find, names
from runner.scheduler.slurm import Slurm
from tests.servers import missing_for_slurm, slurm

WHY = missing_for_slurm()


@pytest.fixture(scope="module")
def _slurm() -> Iterator[None]:
    with slurm() as environment:
        before = os.environ.get("SLURM_CONF")
        os.environ["SLURM_CONF"] = environment["SLURM_CONF"]
        yield
        if before is None:
            del os.environ["SLURM_CONF"]
        else:
            os.environ["SLURM_CONF"] = before


@pytest.fixture(
    params=[
        "local",
        pytest.param("slurm", marks=pytest.mark.skipif(WHY is not None, reason=str(WHY))),
    ]
)
def scheduler(request: pytest.FixtureRequest) -> Scheduler:
    if request.param == "slurm":
        request.getfixturevalue("_slurm")
    return find(request.param)


def job(work: Path, program: str) -> Job:
    words = (sys.executable, "-c", program, "a b", "$HOME", "quote'd")
    return Job(words, "test", work / "job.log", cwd=str(work))


def wait(scheduler: Scheduler, ids: list[str], state: str) -> None:
    end = time.monotonic() + 60
    while any(s != state for s in scheduler.states(ids).values()):
        assert time.monotonic() < end, scheduler.states(ids)
        time.sleep(0.2)


def test_a_job_runs_with_its_words_as_they_are(scheduler: Scheduler, work: Path) -> None:
    program = "import os, sys; print(sys.argv[1:], os.getcwd())"
    number = scheduler.submit(job(work, program))
    wait(scheduler, [number], "ended")
    log = work / "job.log"
    end = time.monotonic() + 10
    while not (log.exists() and log.read_text()) and time.monotonic() < end:
        time.sleep(0.1)
    assert log.read_text().strip() == f"['a b', '$HOME', \"quote'd\"] {work}"


def test_a_job_is_cancelled(scheduler: Scheduler, work: Path) -> None:
    number = scheduler.submit(job(work, "import time; time.sleep(600)"))
    wait(scheduler, [number], "running")
    scheduler.cancel([number])
    wait(scheduler, [number], "ended")
    scheduler.cancel([number])  # What has ended is no error.


def test_an_unknown_job_has_ended(scheduler: Scheduler) -> None:
    assert scheduler.states(["99999999"]) == {"99999999": "ended"}


def test_names() -> None:
    assert {"local", "slurm"} <= set(names())
    with pytest.raises(RunnerError, match="expected one of"):
        find("lsf")


def test_where_slurm_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(RunnerError, match="sbatch, squeue, scancel not found"):
        Slurm().require()
