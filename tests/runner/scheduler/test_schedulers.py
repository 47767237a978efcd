"""Every scheduler: submit, look, cancel; a real Slurm where it is installed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from autotune.testing import SchedulerContract
from runner.errors import RunnerError
from runner.scheduler import Scheduler, allocation, find, names
from runner.scheduler.slurm import SlurmScheduler
from tests.refusals import refused
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


class TestLocal(SchedulerContract):
    @pytest.fixture
    def scheduler(self) -> Scheduler:
        return find("local")


@pytest.mark.skipif(WHY is not None, reason=str(WHY))
@pytest.mark.usefixtures("_slurm")
class TestSlurm(SchedulerContract):
    @pytest.fixture
    def scheduler(self) -> Scheduler:
        return find("slurm")

    def test_says_why_a_job_ended(self, scheduler: Scheduler, place: Path) -> None:
        cancelled = scheduler.submit(self.job(place, "import time; time.sleep(600)"))
        by_itself = scheduler.submit(self.job(place, "raise SystemExit(3)"))
        self.wait(scheduler, cancelled, "running")
        assert scheduler.end_of(cancelled) is None
        scheduler.cancel([cancelled])
        self.wait(scheduler, by_itself, "ended")
        end = scheduler.end_of(cancelled)
        assert end is not None
        assert end.cause == "cancelled"
        assert scheduler.end_of(by_itself) is None
        assert scheduler.end_of("99999999") is None


def test_names() -> None:
    assert {"local", "slurm"} <= set(names())
    with refused(RunnerError, "scheduler.unknown"):
        find("lsf")


def test_the_first_part_of_a_heterogeneous_job() -> None:
    """Seen with Slurm 22.05.8: the variables without a suffix are missing."""
    parts = {"NODELIST": ("n1", "n2"), "NUM_NODES": ("1", "3"), "CPUS_PER_NODE": ("4", "8(x3)")}
    variables = {
        f"SLURM_JOB_{name}_HET_GROUP_{part}": values[part]
        for name, values in parts.items()
        for part in (0, 1)
    }
    job = allocation(variables)
    assert (job.nodes, job.count, job.slots, job.several) == ("n1", 1, 4, False)


def test_where_slurm_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with refused(RunnerError, "scheduler.missing"):
        SlurmScheduler().require()
