"""The contract of schedulers: they run a command line unchanged, report and cancel it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from runner.own_python import OWN_PYTHON
from runner.scheduler import Job, Scheduler

PATIENCE_S = 60.0
_LOG_S = 10.0
"""Seconds by which a log on a shared disk may appear after the job's end."""


class SchedulerContract:
    """The tests of a scheduler. Subclass it with a fixture ``scheduler``: one that is usable here,
    as returned by :func:`runner.scheduler.find`."""

    @pytest.fixture
    def scheduler(self) -> Scheduler:
        raise NotImplementedError

    @pytest.fixture
    def place(self, tmp_path: Path) -> Path:
        """A directory that the jobs see, too."""
        return tmp_path

    def test_a_job_runs_with_its_words_as_they_are(self, scheduler: Scheduler, place: Path) -> None:
        program = "import os, sys; print(sys.argv[1:], os.getcwd(), os.environ['A_VALUE'])"
        number = scheduler.submit(self.job(place, program))
        self.wait(scheduler, number, "ended")
        log = place / "job.log"
        end = time.monotonic() + _LOG_S
        while not (log.exists() and log.read_text(encoding="utf-8")) and time.monotonic() < end:
            time.sleep(0.1)
        assert (
            log.read_text(encoding="utf-8").strip() == f"['a b', '$HOME', \"quote'd\"] {place} a $b"
        )

    def test_cancels_a_job(self, scheduler: Scheduler, place: Path) -> None:
        number = scheduler.submit(self.job(place, "import time; time.sleep(600)"))
        self.wait(scheduler, number, "running")
        scheduler.cancel([number])
        self.wait(scheduler, number, "ended")
        scheduler.cancel([number])  # Cancelling an ended job is not an error.

    def test_an_unknown_job_counts_as_over(self, scheduler: Scheduler) -> None:
        assert scheduler.states(["99999999"]) == {"99999999": "ended"}

    def test_nobody_asked_for_is_nobody(self, scheduler: Scheduler) -> None:
        assert scheduler.states([]) == {}
        scheduler.cancel([])

    @staticmethod
    def job(place: Path, program: str) -> Job:
        """A job: a Python program in ``place``, with arguments that a shell would change."""
        words = (*OWN_PYTHON, "-c", program, "a b", "$HOME", "quote'd")
        return Job(words, "contract", place / "job.log", cwd=str(place), env={"A_VALUE": "a $b"})

    @staticmethod
    def wait(scheduler: Scheduler, number: str, state: str) -> None:
        """Wait until a job is in that state; fails after :data:`PATIENCE_S`."""
        end = time.monotonic() + PATIENCE_S
        while (current := scheduler.states([number])[number]) != state:
            assert time.monotonic() < end, f"job {number} is {current}, not {state}"
            time.sleep(0.2)
