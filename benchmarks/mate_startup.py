"""Start-up of the MATE runtime and CPU time of idle workers; a part of ``benchmarks.mate_cost``."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
import time

from benchmarks.mate_messages import WAIT_FROM_S, share_of_core
from benchmarks.mpi_programs import ROOT
from runner import mate

EMPTY = """
import sys
from runner import mate

async def nothing(ctx):
    pass

mate.run(nothing, mate.Config(core=sys.argv[1]))
"""
"""An empty job of one rank; the first argument is the core."""


def startup_s(core: str) -> float:
    """Wall time in seconds of a process that runs an empty job of one rank, imports included.

    Bytecode and machine code are stored by the first call of each core, which is longer. Without
    stored bytecode (``PYTHONDONTWRITEBYTECODE``) each start would compile the modules of the core.
    """
    words = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    words["PYTHONPYCACHEPREFIX"] = _bytecode().name
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", EMPTY, core], check=True, cwd=ROOT, env=words)
    return time.perf_counter() - begin


@functools.cache
def _bytecode() -> tempfile.TemporaryDirectory[str]:
    """A folder for bytecode, which is removed when this process ends."""
    return tempfile.TemporaryDirectory(prefix="bytecode-")


def idle_share(core: str, seconds: float) -> float:
    """CPU share of a worker without any work, after the first millisecond of its wait.

    The other worker of the process runs the only rank, which sleeps.
    """

    async def main(ctx: mate.Context) -> float:
        time.sleep(WAIT_FROM_S)
        return share_of_core(os.getpid(), seconds)

    (share,) = mate.run(main, mate.Config(core=core, workers=2, ranks_per_process=1)).results
    return float(share)
