"""A launcher that fails by itself before any rank began is started again; a program is not, but to
see whether it reads its standard input."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from runner.launch import LAUNCHES, Runner
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.types import LaunchSpec, RunRecord
from tests.mpis import built

WORDS = "The PMIx server's listener thread failed to start. We cannot"


def launched(
    library: Library,
    place: Path,
    failures: int,
    program: str,
    stdin: str | None = None,
    runs: int = 1,
) -> tuple[RunRecord, int]:
    """The last of some runs, whose launcher fails so often at first, and how often it started.

    ``program``: the commands at the end of the program.
    """
    own = built(library, place)
    count, launcher = place / "count", place / "launcher"
    launcher.write_text(
        f"#!/bin/sh\necho >> {count}\n"
        f'[ "$(wc -l < {count})" -gt {failures} ] && exec {library.launcher} "$@"\n'
        f'echo "{WORDS}" >&2\nexit 213\n'
    )
    launcher.chmod(0o755)
    library = dataclasses.replace(library, launcher=str(launcher))
    options = ("--mca", "btl", "^ofi")
    spec = LaunchSpec(
        program=("sh", "-c", f"{own} && {program}"),
        ranks=1,
        launch_options=options,
        timeout_s=60,
        stdin=stdin,
    )
    with Runner(adapter(library), guard=False) as runner:
        record = [runner.run(spec) for _ in range(runs)][-1]
    return record, len(count.read_text().splitlines())


@pytest.mark.mpi
def test_it_is_started_again(open_mpi: Library, tmp_path: Path) -> None:
    record, starts = launched(open_mpi, tmp_path, LAUNCHES - 1, "true")
    assert (record.state, starts) == ("ok", LAUNCHES)


@pytest.mark.mpi
def test_but_not_for_ever(open_mpi: Library, tmp_path: Path) -> None:
    record, starts = launched(open_mpi, tmp_path, 99, "true")
    assert (record.exit_code, starts) == (213, LAUNCHES)
    assert record.state == "failed"


@pytest.mark.mpi
def test_a_program_that_says_so_itself_is_not_run_again(open_mpi: Library, tmp_path: Path) -> None:
    program = f'echo "{WORDS}" >&2; exit 1'
    record, starts = launched(open_mpi, tmp_path, 0, program, stdin="/dev/null")
    assert (record.state, starts) == ("failed", 1)


@pytest.mark.mpi
def test_asked_once_whether_it_reads_input(open_mpi: Library, tmp_path: Path) -> None:
    program = "echo no steps >&2; exit 1"
    record, starts = launched(open_mpi, tmp_path, 0, program, runs=3)
    assert (record.exit_code, starts) == (1, 4)
    assert "no steps" in record.reason
