"""How many files a reader passes from the command to the launch of a program."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import runner
from runner.supervise.client import Supervisor
from runner.supervise.messages import ExecRequest, ExecResult
from tests.cli.conftest import Cli

ROOT = Path(runner.__file__).parents[1]
SERVER = "runner/supervise/server.py"
"""It forks the launcher, in a process of its own."""
BEGIN = "autotune/cli/search.py"
PROCEDURE = "autotune/study/procedure.py"
LOOP = "autotune/study/loop.py"
BENCH = "autotune/measurement/bench.py"
PROOF = "autotune/study/proof.py"


def passed() -> tuple[str, ...]:
    """Our files on the stack, from the command's own on."""
    frame = sys._getframe(1)
    files: dict[str, None] = {}
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in ("autotune", "runner"):
            files[path.relative_to(ROOT).as_posix()] = None
        if frame.f_back is None:
            break
        frame = frame.f_back
    way = (*reversed(files), SERVER)
    return way[way.index(BEGIN) :]


@pytest.mark.mpi
@pytest.mark.slow
def test_a_reader_passes_eight_files_to_the_fork_and_six_in_a_proof(
    cli: Cli, library: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways: set[tuple[str, ...]] = set()
    run = Supervisor.run

    def noted(self: Supervisor, request: ExecRequest) -> ExecResult:
        ways.add(passed())
        return run(self, request)

    monkeypatch.setattr(Supervisor, "run", noted)
    assert "fork" in (ROOT / SERVER).read_text(encoding="utf-8")
    done = cli(
        *("search", "--app", "micro", "--no-guard", "--strategy", "random", "--trials", "4"),
        *("--runs", "60", "--store", "r.db"),
    )
    assert done.code == 0, done.err
    traced = "runner/trace/run.py"  # The first run also counts the program's MPI calls.
    ways = {tuple(file for file in way if file != traced) for way in ways}
    # The test's own frame stands for client.py, whose method it replaced.
    ways = {(*way[:-1], "runner/supervise/client.py", way[-1]) for way in ways}
    searches = [way for way in ways if LOOP in way]
    trials = [way for way in searches if BENCH not in way]
    assert trials
    assert all(len(way) <= 8 for way in trials), trials
    after = [way[way.index(PROCEDURE) :] for way in ways if PROCEDURE in way]
    proofs = [way for way in after if way[1] == PROOF]
    assert proofs
    assert all(len(way) <= 6 for way in proofs), proofs
    # The bench decides when the default runs; since it has a file of its own, this way has nine.
    if longer := [way for way in searches if len(way) > 8]:
        assert all(len(way) == 9 and BENCH in way for way in longer), longer
        pytest.xfail("the way to a run of the default has nine files, with the bench")
