"""Parallel regions on the threads of gcc's OpenMP run-time."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from runner.errors import RunnerError
from runner.programs.apps.jacobi3d.block import Block
from runner.runtimes.core import openmp
from runner.runtimes.core.kernels import load
from tests.case_table import case_table

SIZE = (9, 8, 7)
MEMBERS = """
import threading, ctypes
from runner.runtimes.core import openmp
seen = set()
@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def member(data):
    seen.add(threading.get_native_id())
run = openmp.library().GOMP_parallel
run(ctypes.cast(member, ctypes.c_void_p), None, 0, 0)
print(openmp.max_threads(), len(seen))
"""


def block() -> Block:
    made = Block(SIZE, (0, 0, 0), SIZE, 4)
    made.reset()
    return made


@case_table("planes", [1, 2, 3])
def test_every_task_is_done_once_whatever_the_team(planes: int) -> None:
    """There are more tasks than threads, or fewer."""
    whole, shared = block(), block()
    z0, z1, *rest = shared.whole
    cuts = [(z, min(z + planes, z1), *rest) for z in range(z0, z1, planes)]
    shared.share(cuts)
    for _ in range(3):
        whole.step()
        shared.step()
    assert np.array_equal(whole.interior, shared.interior)


def test_the_environment_says_how_many_threads_there_are() -> None:
    env = {**os.environ, "OMP_NUM_THREADS": "3"}
    done = subprocess.run(
        [sys.executable, "-c", MEMBERS], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["3", "3"]


def test_a_kernel_with_another_number_of_arrays_is_refused() -> None:
    kernels = load("runner.programs.apps.common.kernels")
    arrays = [np.zeros(4), np.zeros(4), np.zeros(8, np.uint64)]
    with pytest.raises(ValueError, match=r"\bpack\b.*\b3\b"):
        openmp.ParallelRegion(kernels, [("pack", arrays)])


def test_the_run_time_of_a_wheel_takes_the_place_of_a_missing_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(openmp, "LIBRARY", "libgomp.so.999")
    assert openmp.library.__wrapped__().omp_get_max_threads() >= 1
    monkeypatch.setattr(openmp, "_brought", lambda: iter(()))
    with pytest.raises(RunnerError, match="libgomp1"):
        openmp.library.__wrapped__()
