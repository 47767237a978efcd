"""A worker that fails before the ranks run ends the job in words: nobody goes on waiting."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from runner.runtimes import mate
from runner.runtimes.workers import affinity
from tests.mate.test_mpi import Start, start
from tests.started import ROOT

__all__ = ["start"]

PROGRAM = """
import sys
from runner.runtimes import mate
from runner.runtimes.workers import affinity

comm = None

def spoilt(workers, kind, masks, mine):
    # One worker of one process gets a CPU that no machine has.
    cpu = 9999 if comm is None or comm.rank == 1 else None
    return [None] * (workers - 1) + [cpu]

affinity.cpu_places = spoilt
{more}

async def main(ctx):
    print("a rank runs", flush=True)
    await ctx.barrier()

config = mate.Config(workers={workers}, affinity="none", thread_level="{level}")
if {mpi}:
    comm = mate.world(config)
try:
    mate.run(main, config, comm=comm)
except mate.MateError as error:
    sys.exit(f"program: {{error}}")
"""
SURPRISE = "def pin(cpu, error):\n    if cpu: raise RuntimeError('a surprise')\naffinity.pin = pin"
IN_WORDS = " 9999 (Invalid argument)"
"""The CPU and the system's own words."""


def text(**given: object) -> str:
    return PROGRAM.format(**{"more": "", "level": "multiple", "mpi": False, **given})


@pytest.mark.parametrize("workers", [1, 3])
def test_in_one_process(workers: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", text(workers=workers)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("program: ")
    assert IN_WORDS in done.stderr
    assert "--affinity none" in done.stderr  # data
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_what_nobody_expected_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def pin(cpu: int | None, error: object) -> None:
        raise RuntimeError("a surprise")

    async def main(ctx: mate.Context) -> None:
        raise AssertionError("no rank may run")

    monkeypatch.setattr(affinity, "pin", pin)
    with pytest.raises(RuntimeError, match="a surprise"):
        mate.run(main, mate.Config(workers=2, affinity="none"))


def test_a_thread_that_the_system_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    begin, begun = threading.Thread.start, []

    def refuse(thread: threading.Thread) -> None:
        if begun:
            raise RuntimeError("can't start new thread")
        begun.append(thread)
        begin(thread)

    async def main(ctx: mate.Context) -> None:
        raise AssertionError("no rank may run")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="new thread"):
        mate.run(main, mate.Config(workers=2, affinity="none"))
    begun[0].join(30)
    assert not begun[0].is_alive()


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("processes", "more", "level"),
    [
        (2, "", "multiple"),
        (3, SURPRISE, "serialized"),
        *(
            pytest.param(*more, marks=pytest.mark.slow)
            for more in itertools.product([2, 3], ["", SURPRISE], ["multiple", "serialized"])
            if more not in [(2, "", "multiple"), (3, SURPRISE, "serialized")]
        ),
    ],
)
def test_over_processes(
    start: Start, tmp_path: Path, processes: int, more: str, level: str
) -> None:
    program = tmp_path / "program.py"
    program.write_text(text(workers=2, more=more, level=level, mpi=True))
    done = start(processes, str(program))
    assert done.returncode == 1, (done.returncode, done.stderr)
    assert "(process 1)" in done.stderr
    assert ("RuntimeError: a surprise" if more else IN_WORDS) in done.stderr
    assert "a rank runs" not in done.stdout
