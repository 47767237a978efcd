"""Every scheduler: submit, look, cancel; a real Slurm where it is installed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from autotune.testing import SchedulerContract
from runner.errors import RunnerError
from runner.scheduler import Scheduler, find, names
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


def test_names() -> None:
    assert {"local", "slurm"} <= set(names())
    with refused(RunnerError, "scheduler.unknown"):
        find("lsf")


def test_where_slurm_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with refused(RunnerError, "scheduler.missing"):
        SlurmScheduler().require()
