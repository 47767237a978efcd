"""This process, its threads and its programs on some CPUs only."""

from __future__ import annotations

import os
import subprocess
import threading

import pytest

from runner.cpus import CpuBinding
from runner.errors import RunnerError
from tests.refusals import refused

SHOW = ("sh", "-c", "grep Cpus_allowed_list /proc/self/status")


def test_threads_and_programs_stay_there() -> None:
    before = os.sched_getaffinity(0)
    one = frozenset({max(before)})
    end = threading.Event()
    old = threading.Thread(target=end.wait)
    old.start()
    assert old.native_id is not None
    with CpuBinding(one):
        new = threading.Thread(target=end.wait)
        new.start()
        assert new.native_id is not None
        for thread in (0, old.native_id, new.native_id):
            assert os.sched_getaffinity(thread) == one
        told = subprocess.run(SHOW, capture_output=True, text=True, check=True).stdout
        assert told.split()[-1] == str(max(before))
    for thread in (0, old.native_id, new.native_id):
        assert os.sched_getaffinity(thread) == before
    end.set()


def test_nothing_is_changed_without_cpus() -> None:
    before = os.sched_getaffinity(0)
    with CpuBinding(None):
        assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize("cpus", [frozenset({4095}), frozenset()])
def test_cpus_that_are_not_there_are_refused(cpus: frozenset[int]) -> None:
    with refused(RunnerError, "cluster.cpus"):
        CpuBinding(cpus)
