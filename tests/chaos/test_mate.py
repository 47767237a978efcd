"""MATE jobs that are ended in the middle: every process ends soon, and the message says why."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.mpi.library import Library
from tests.chaos.conftest import carrying

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.chaos, pytest.mark.mpi]
ROUNDS = 5
SOON_S = 20
PROGRAM = """
import os, signal, sys, time
import numpy as np
from runner.runtimes import mate

graph = mate.Graph("endless")

@graph.region(depends=["python*"], compiled=True)
def compute(part, i):
    for k in range(part.length):
        part.sum[0] += k * 1e-9
    part.ctx.isend(part.sum, part.after, 3)
    part.ctx.irecv(part.got, part.before, 3)

@graph.region("python", depends=["compute"])
def python(part, i):
    if part.ctx.rank == 1 and time.monotonic() > part.end:
        if END == "raises":
            raise ValueError("the rank has had enough")
        if END == "aborts":
            MPI.COMM_WORLD.Abort(7)
        if END == "killed":
            os.kill(os.getpid(), signal.SIGKILL)

class Part:
    def __init__(self, ctx):
        self.ctx, self.length = ctx, 3000
        self.after, self.before = (ctx.rank + 1) % ctx.size, (ctx.rank - 1) % ctx.size
        self.sum, self.got = np.zeros(1), np.zeros(1)
        self.end = time.monotonic() + AFTER

async def main(ctx):
    await ctx.execute(graph, 1, state=(part := Part(ctx)))
    await ctx.barrier()
    part.end = time.monotonic() + AFTER
    if ctx.rank == 0: print("runs", flush=True)
    await ctx.execute(graph, 10**9, state=part)

END, AFTER = sys.argv[1], float(sys.argv[2])
config = mate.Config(workers=2, ranks_per_process=3, affinity="none")
comm = mate.world(config) if END != "alone" else None
if comm is not None:
    from mpi4py import MPI
mate.run(main, config, comm=comm)
"""
TOLD = {
    "raises": "ValueError: the rank has had enough",
    "aborts": "",
    "killed": "",
    "interrupted": "",
    "alone": "KeyboardInterrupt",
}


@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize("end", TOLD)
def test_a_job_that_is_ended(
    end: str, seed: int, open_mpi: Library, mark: str, fault: Callable[[str], None], tmp_path: Path
) -> None:
    fault(f"mate {end}")
    after = random.Random(f"{end} {seed}").uniform(0.001, 0.6)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, str(program), end, str(after), mark]
    if end != "alone":
        command = [open_mpi.launcher, "--bind-to", "none", "--oversubscribe", "-n", "2", *command]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "runs\n"
        if end in ("interrupted", "alone"):
            time.sleep(after)
            process.send_signal(signal.SIGINT)
        told = process.communicate(timeout=after + SOON_S)[1]
    except subprocess.TimeoutExpired:
        left = {process.pid, *carrying(mark)}
        for one in left:
            os.kill(one, signal.SIGKILL)
        pytest.fail(f"{SOON_S} s later there were still {len(left)} processes")
    assert process.returncode != 0
    assert TOLD[end] in told
