"""Real MPI jobs that are no children of the tests, as those of other users of the machine are."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.types import LaunchSpec
from tests.runner.supervising import eventually

# Each rank says that MPI has started, and waits to be ended, a minute at most.
RANK = """
import os, pathlib, sys, time
from mpi4py import MPI
place = pathlib.Path(sys.argv[1])
(place / f"rank{MPI.COMM_WORLD.rank}").touch()
end = time.monotonic() + 60
while not (place / "end").exists() and time.monotonic() < end:
    time.sleep(0.02)
"""


@contextmanager
def other_job(
    library: Library, place: Path, line: Sequence[str], ranks: int, wrapper: Sequence[str] = ()
) -> Iterator[int]:
    """The process id of the launcher of a job whose ``ranks`` ranks have started.

    PROGRAM in ``line`` becomes the program, behind ``wrapper``. ``place`` is an empty directory.
    """
    place.mkdir()
    program = [*wrapper, sys.executable, "-c", RANK, str(place)]
    words = [one for word in line for one in (program if word == "PROGRAM" else [word])]
    kind = adapter(library)
    env = kind.environment(LaunchSpec(("x",), 1), dict(os.environ))
    env |= {"OMPI_MCA_btl": "^ofi", **kind.python_variables(env)}
    log = place / "log"
    # The shell ends at once: init inherits the launcher.
    started = subprocess.run(
        ["sh", "-c", f"{shlex.join(words)} > {shlex.quote(str(log))} 2>&1 & echo $!"],
        env=env,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    pid = int(started.stdout)
    try:
        there = eventually(lambda: len(list(place.glob("rank*"))) == ranks, 30)
        assert there, log.read_text()
        yield pid
    finally:
        (place / "end").touch()
        assert eventually(lambda: not Path(f"/proc/{pid}").exists(), 30)
