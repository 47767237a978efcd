"""Thread level serialized: no two threads of a process are ever inside MPI at once."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mate.alone import build
from tests.mate.mpi_checks import CHECKS
from tests.mate.test_mpi import Start, start
from tests.trace.conftest import mpicc

__all__ = ["mpicc", "start"]

pytestmark = pytest.mark.mpi

Watched = Callable[..., subprocess.CompletedProcess[str]]

BEGIN = """
import os, sys
os.execve(sys.executable, [sys.executable, *sys.argv[1:]], {{**os.environ, **{added}}})
"""
EVERYTHING = """
import sys, threading, time
import numpy as np
from runner.runtimes import mate
config = mate.Config(
    workers=2, ranks_per_process=4, affinity="none", in_process={in_process},
    thread_level="{level}", idle_sleep_us=0,
)
comm = mate.world(config)
from mpi4py import MPI

async def main(ctx):
    end = time.monotonic() + {seconds}
    going = np.ones(1)
    status = MPI.Status()
    # Made before the other ranks send anything.
    made = None if ctx.local_rank else MPI.DOUBLE.Create_vector(4, 1, 4).Commit()
    column = await ctx.local_bcast(made)
    while going[0]:
        field, got = np.ones((4, 4)), np.zeros(4)
        after, before = (ctx.rank + 1) % ctx.size, (ctx.rank - 1) % ctx.size
        {step}
        going[0] = time.monotonic() < end
        await ctx.allreduce(going, going, "min")

mate.run(main, config, comm=comm)
"""
EXCHANGE = "await ctx.waitall([ctx.irecv(got, before, 3, status), ctx.isend(field[0], after, 3)])"
STEPS = {
    "Type_size": "await ctx.waitall([ctx.irecv((got, 4, MPI.DOUBLE), before), "
    "ctx.isend((field, 1, column), after)])",
    "Reduce_local": "late = ctx.irecv(np.zeros(1), before, 5); "
    "await ctx.allreduce(field[0].copy(), got, MPI.MAX); "
    "await ctx.waitall([late, ctx.isend(np.zeros(1), after, 5)])",
    "Get_count": EXCHANGE + "; assert status.Get_count(MPI.DOUBLE) == 4",
    "properties": EXCHANGE + "; assert comm.size and column.extent and comm.Get_rank() < 9",
    "functions": EXCHANGE + "; MPI.Wtime(); MPI.Get_processor_name()",
}


@pytest.fixture(scope="module")
def library_alone(mpicc: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(mpicc, tmp_path_factory.mktemp("alone"))


@pytest.fixture
def watched(start: Start, library_alone: Path, tmp_path: Path) -> Watched:
    """``watched(processes, *words)``: the same as ``start``, ended where two threads call MPI."""
    calls = tmp_path / "calls"

    def run(processes: int, *words: str) -> subprocess.CompletedProcess[str]:
        added = {"LD_PRELOAD": str(library_alone), "ALONE_CALLS": str(calls)}
        done = start(processes, "-c", BEGIN.format(added=added), *words)
        if done.returncode == 0:
            counted = [int(line) for line in calls.read_text().split()]
            assert len(counted) == processes, counted
            assert min(counted) > 50, f"the library has seen {counted} calls"
        return done

    return run


@pytest.mark.slow
def test_all_checks_hold_with_one_thread_in_mpi(watched: Watched) -> None:
    done = watched(2, "-m", "tests.mate.mpi_checks", "2", "4", "serialized")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    told = json.loads(done.stdout)
    assert set(told) == set(CHECKS)
    assert not any(told.values()), "\n".join(f"{n}:\n{p}" for n, p in told.items() if p)


STEPS["all"] = "\n        ".join(STEPS.values())
CALLED = [
    # Each step by itself when slow.
    pytest.param(name, place, marks=[] if name == "all" else pytest.mark.slow)
    for name in STEPS
    for place in (False, True)
]


@pytest.mark.parametrize(("name", "in_process"), CALLED)
def test_what_ranks_call_is_called_alone(
    watched: Watched, tmp_path: Path, name: str, in_process: bool
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        EVERYTHING.format(step=STEPS[name], in_process=in_process, level="serialized", seconds=0.3)
    )
    done = watched(1 if in_process else 2, str(program))
    assert done.returncode == 0, done.stderr


def test_the_end_by_a_failure_is_alone_too(watched: Watched, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    step = (
        "if ctx.rank == 0: time.sleep(0.1); sys.exit('this is the end')\n"
        "        own = ctx.rank\n"
        "        while own:\n"
        "            await ctx.waitall([ctx.irecv(got, own, 9), ctx.isend(field[0], own, 9)])"
    )
    program.write_text(
        EVERYTHING.format(step=step, in_process=False, level="serialized", seconds=0.2)
    )
    done = watched(2, str(program))
    assert done.returncode != 0
    assert "this is the end" in done.stderr
    assert "two threads" not in done.stderr


NEVER_BACK = """
import sys, threading, time
from runner.runtimes import mate
from runner.runtimes.mate.call_lock import CallLock
CallLock.ABORT_S = 0.3
config = mate.Config(workers=2, ranks_per_process=2, affinity="none", thread_level="serialized")
comm = mate.world(config)
from mpi4py import MPI
graph, inside = mate.Graph("wrong"), threading.Event()

async def main(ctx):
    await ctx.barrier()
    if ctx.rank == 0:
        inside.set()
        # The guard leaves one-sided operations alone; the other process never calls it.
        MPI.Win.Create(bytearray(8), comm=comm)
    if ctx.rank == 1:
        inside.wait()
        time.sleep(0.1)
        {end}
    await ctx.recv(bytearray(1), ctx.rank)

mate.run(main, config, comm=comm)
"""


@pytest.mark.parametrize(
    ("end", "code", "told"),
    [
        ("comm.Abort(7)", 7, ""),
        ("raise ValueError('enough')", 1, "enough"),
        pytest.param(*("await ctx.execute(graph)", 2, " wrong "), marks=pytest.mark.slow),
    ],
)
def test_the_job_ends_though_a_thread_is_inside_mpi_for_ever(
    start: Start, tmp_path: Path, end: str, code: int, told: str
) -> None:
    program = tmp_path / "program.py"
    program.write_text(NEVER_BACK.format(end=end))
    done = start(2, str(program))
    assert done.returncode == code, done.stderr
    assert told in done.stderr


COMPILED = """
import time
import numpy as np
from runner.runtimes import mate
config = mate.Config(
    workers=2, ranks_per_process=4, affinity="none", thread_level="serialized", idle_sleep_us=0
)
comm = mate.world(config)
graph = mate.Graph("exchange")

class Part:
    def __init__(self, ctx):
        self.ctx, self.sent, self.got = ctx, np.ones(1), np.zeros(1)
        self.after, self.before = (ctx.rank + 2) % ctx.size, (ctx.rank - 2) % ctx.size

@graph.region(depends=["swap*"], compiled=True)
def swap(part, i):
    part.ctx.irecv(part.got, part.before, 3)
    part.ctx.isend(part.sent, part.after, 3)

async def main(ctx):
    part = Part(ctx)
    await ctx.execute(graph, 1, state=part)
    if ctx.rank % 2:
        await ctx.execute(graph, 300, state=part)
        return
    for _ in range(30):
        requests = [ctx.irecv(part.got, part.before, 4), ctx.isend(part.sent, part.after, 4)]
        comm.Get_rank()
        await ctx.waitall(requests)

mate.run(main, config, comm=comm)
"""


def test_compiled_and_python_code_do_not_call_mpi_at_once(watched: Watched, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(COMPILED)
    done = watched(2, str(program))
    assert done.returncode == 0, done.stderr


def test_the_library_sees_two_threads(watched: Watched, tmp_path: Path) -> None:
    """The instrument is right: without the lock of ``serialized`` it ends the program."""
    program = tmp_path / "program.py"
    program.write_text(
        EVERYTHING.format(step=EXCHANGE, in_process=False, level="multiple", seconds=5)
    )
    done = watched(2, str(program))
    assert done.returncode != 0
    assert "two threads inside MPI" in done.stderr  # data
