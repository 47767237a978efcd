"""Starting applications under the real mpirun."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from runner.mpi.library import Library
from tests.apps.commands import BROKEN, ended
from tests.started import RANKS_PATH, started

ROOT = Path(__file__).parents[2]
# Without these, Open MPI 5 spends a second in btl/ofi at every start.
TRANSPORT = ["--mca", "pml", "ob1", "--mca", "btl", "^ofi"]
# Beside other work ranks that spin take a time slice for every message.
WAITING = ["--mca", "mpi_yield_when_idle", "1"]


class Finished:
    """One finished mpirun: exit code, both outputs, and the JSON of the last line."""

    def __init__(self, process: subprocess.CompletedProcess[str]) -> None:
        self.process = process
        self.code = process.returncode
        self.out = process.stdout
        self.err = process.stderr

    @property
    def result(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return parsed


Launch = Callable[..., Finished]


def run_commands(
    launch: Launch,
    ranks: int,
    commands: Sequence[Sequence[str]],
    *,
    broken: str = "",
    env: dict[str, str] | None = None,
) -> list[Finished]:
    """What each command does, a module with its options; one job runs them one after the other.

    ``broken``: text of a program that changes what is run.  If it defines ``CHANGES``, each command
    that begins with ``broken:NAME`` has one of these.
    """
    program = f"CHANGES = dict()\n{broken}\nfrom tests.apps.commands import main\nmain(CHANGES)"
    job = launch(ranks, "-c", program, json.dumps(commands), env=env)
    return [Finished(done) for done in ended(job.process, commands)]


def run_lines(
    launch: Launch, ranks: int, app: str, lines: Sequence[Sequence[str]], **more: Any
) -> list[Finished]:
    """The same for lines of options of one application."""
    commands = []
    for line in lines:
        first = [word for word in line[:1] if word.startswith(BROKEN)]
        commands.append([*first, f"runner.programs.apps.{app}", *line[len(first) :]])
    return run_commands(launch, ranks, commands, **more)


class Job:
    """Groups of lines of an application that one job runs for all tests of a file."""

    def __init__(
        self, ranks: int, app: str, groups: Mapping[str, Sequence[Sequence[str]]], **more: Any
    ) -> None:
        self.ranks, self.app, self.groups, self.more = ranks, app, groups, more
        self.found: dict[str, list[Finished]] = {}

    def of(self, launch: Launch, group: str) -> list[Finished]:
        """What the lines of a group did; the first test that asks starts the job."""
        if not self.found:
            every = [line for lines in self.groups.values() for line in lines]
            found = iter(run_lines(launch, self.ranks, self.app, every, **self.more))
            self.found = {
                name: list(itertools.islice(found, len(lines)))
                for name, lines in self.groups.items()
            }
        return self.found[group]


def results_of(
    launch: Launch, ranks: int, app: str, lines: Sequence[Sequence[str]], **more: Any
) -> list[dict[str, Any]]:
    """The result of each line of :func:`run_lines`, all of which succeed."""
    return successes(run_lines(launch, ranks, app, lines, **more))


def successes(found: Sequence[Finished]) -> list[dict[str, Any]]:
    for done in found:
        assert done.code == 0, f"{done.process.args}: {done.err}{done.out}"
    return [done.result for done in found]


def refusal_of(done: Finished, app: str) -> str:
    """The one message with which options are refused: code 2, and nothing else is printed.

    Without the number of cores that this machine has.
    """
    assert done.code == 2, done.err
    begin = f"{app.replace('_', '-')}: error: "
    (line,) = (line for line in done.err.splitlines() if begin in line)
    assert "Traceback" not in done.err
    assert done.out == ""
    return re.sub(r"(?<=use only )[0-9].*", "N", line.partition(begin)[2])


@pytest.fixture
def launch(library: Library) -> Launch:
    """``launch(ranks, "-m", "module", ..., env={})`` runs Python under mpirun and waits for it."""
    old = library.family == "openmpi" and library.version_tuple < (5,)
    placement = ["--oversubscribe"] if old else ["--map-by", ":OVERSUBSCRIBE"]
    options = (
        [*placement, "--bind-to", "none", *TRANSPORT, *WAITING]
        if library.family == "openmpi"
        else []
    )

    def run(
        ranks: int,
        *arguments: str,
        env: dict[str, str] | None = None,
        program: str = sys.executable,
    ) -> Finished:
        command = [library.launcher, "-n", str(ranks), *options, program, *arguments]
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        everything = {**os.environ, **root, "PYTHONPATH": RANKS_PATH, **(env or {})}
        return Finished(started(command, cwd=ROOT, env=everything, timeout=180))

    return run
