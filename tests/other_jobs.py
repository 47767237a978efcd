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
from runner.supervise.process_tree import is_alive
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
def other_jobs(
    library: Library, place: Path, lines: Sequence[Sequence[str]], wrapper: Sequence[str] = ()
) -> Iterator[list[int]]:
    """The process ids of the launchers of these lines; all ranks of their ``-n`` have started.

    PROGRAM in a line becomes the program, behind ``wrapper``. ``place`` is an empty directory.
    """
    places = [place / str(i) for i in range(len(lines))]
    pids = [_start(library, at, line, wrapper) for at, line in zip(places, lines, strict=True)]
    try:
        for at, line in zip(places, lines, strict=True):
            ranks = int(line[line.index("-n") + 1])
            there = eventually(lambda at=at, n=ranks: len(list(at.glob("rank*"))) == n, 60)
            assert there, (at / "log").read_text()
        yield pids
    finally:
        for at in places:
            (at / "end").touch()
        for pid in pids:
            assert eventually(lambda pid=pid: not is_alive(pid), 60)


def _start(library: Library, place: Path, line: Sequence[str], wrapper: Sequence[str]) -> int:
    place.mkdir(parents=True)
    program = [*wrapper, sys.executable, "-c", RANK, str(place)]
    words = [one for word in line for one in (program if word == "PROGRAM" else [word])]
    kind = adapter(library)
    env = kind.environment(LaunchSpec(("x",), 1), dict(os.environ))
    env |= {"OMPI_MCA_btl": "^ofi", **kind.python_variables(env)}
    # The shell ends at once: init inherits the launcher.
    background = f"{shlex.join(words)} > {shlex.quote(str(place / 'log'))} 2>&1 & echo $!"
    started = subprocess.run(
        ["sh", "-c", background], env=env, stdout=subprocess.PIPE, text=True, check=True
    )
    return int(started.stdout)
