"""Starting applications under the real mpirun."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from runner.mpi.library import Library
from tests.started import started

ROOT = Path(__file__).parents[2]
# Without these, Open MPI 5 spends a second in btl/ofi at every start.
TRANSPORT = ["--mca", "pml", "ob1", "--mca", "btl", "^ofi"]


class Finished:
    """One finished mpirun: exit code, both outputs, and the JSON of the last line."""

    def __init__(self, process: subprocess.CompletedProcess[str]) -> None:
        self.code = process.returncode
        self.out = process.stdout
        self.err = process.stderr

    @property
    def result(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return parsed


Launch = Callable[..., Finished]

SERIES = """
import importlib, json, sys
from runner.apps.common_mpi import run, single_threaded_blas
single_threaded_blas()
main = importlib.import_module("runner.apps." + sys.argv[1] + ".application").main
series = json.loads(sys.argv[2])
run("series", "multiple", lambda comm: max([main(comm, words, 0.0) for words in series]))
"""


def results_of(
    launch: Launch, ranks: int, app: str, lines: Sequence[Sequence[str]]
) -> list[dict[str, Any]]:
    """The result of each line of options of an application, run one after the other by one job.

    On two ranks the last line is started once more by itself, by the command line.
    """
    done = launch(ranks, "-c", SERIES, app, json.dumps(lines))
    assert done.code == 0, done.err + done.out
    found = [json.loads(line) for line in done.out.splitlines() if line.startswith("{")]
    assert len(found) == len(lines)
    if ranks != 2:
        return found
    alone = launch(ranks, "-m", f"runner.apps.{app}", *lines[-1])
    assert alone.code == 0, alone.err + alone.out
    return [*found, alone.result]


REFUSED = """
import importlib, inspect, json, sys
from runner.apps.common_errors import AppError
from runner.apps.common_mpi import run, single_threaded_blas
single_threaded_blas()
main = importlib.import_module("runner.apps." + sys.argv[1] + ".application").main

# Some applications are told when their process started.
begin = [0.0][: len(inspect.signature(main).parameters) - 2]

def told(comm, words):
    try:
        return [main(comm, words, *begin), "it ran"]
    except AppError as error:
        return [error.exit_code, str(error)]

def each(comm):
    for words in json.loads(sys.argv[2]):
        seen = comm.gather(told(comm, words))
        if comm.rank == 0:
            print(json.dumps(seen))
    return 0

run("refused", "multiple", each)
"""


def check_refusals(
    launch: Launch, ranks: int, app: str, refusals: Sequence[tuple[str, str]]
) -> None:
    """Each line of options is refused with its words: all ranks raise the same, nothing is printed.

    One job tries all lines; the first is also started by the command line: one message, code 2.
    """
    lines = [options.split() for options, _ in refusals]
    done = launch(ranks, "-c", REFUSED, app, json.dumps(lines))
    assert done.code == 0, done.err + done.out
    seen = [json.loads(line) for line in done.out.splitlines()]
    for (options, words), (first, *others) in zip(refusals, seen, strict=True):
        assert first[0] == 2, f"{options}: {first}"
        assert words in first[1], f"{options}: {first}"
        assert others == [first] * (ranks - 1)
    alone = launch(ranks, "-m", f"runner.apps.{app}", *lines[0])
    assert alone.code == 2, alone.err
    assert alone.err.count(f"{app.replace('_', '-')}: error:") == 1
    assert refusals[0][1] in alone.err
    assert "Traceback" not in alone.err
    assert alone.out == ""


@pytest.fixture
def launch(library: Library) -> Launch:
    """``launch(ranks, "-m", "module", ..., env={})`` runs Python under mpirun and waits for it."""
    old = library.family == "openmpi" and library.version_tuple < (5,)
    placement = ["--oversubscribe"] if old else ["--map-by", ":OVERSUBSCRIBE"]
    options = [*placement, "--bind-to", "none", *TRANSPORT] if library.family == "openmpi" else []

    def run(
        ranks: int,
        *arguments: str,
        env: dict[str, str] | None = None,
        program: str = sys.executable,
    ) -> Finished:
        command = [library.launcher, "-n", str(ranks), *options, program, *arguments]
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        everything = {**os.environ, **root, **(env or {})}
        return Finished(started(command, cwd=ROOT, env=everything, timeout=180))

    return run
