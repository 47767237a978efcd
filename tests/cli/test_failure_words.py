"""Why a program failed, as a user reads it, with real programs under the launchers here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autotune.comparison.noise import TRIES
from autotune.study.study_request import SearchRequest
from autotune.targets import target
from autotune.targets.request import TargetRequest
from autotune.workers.worker_request import WorkerRequest, requests_of, with_request
from tests.cli.conftest import Cli
from tests.mpis import NAMES, built, library_named

FAILS = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1 && argv[1][0] == 'w')
        fprintf(stderr, "solver: the matrix is singular at row 7\n");
    if (rank == 1 && argv[1][0] == 'a')
        abort();
    if (rank == 1 && argv[1][1] == 'm')
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (rank == 1)
        exit(3);
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Finalize();
}
"""


@pytest.mark.mpi
@pytest.mark.parametrize(
    "name", [n if n == "openmpi-5" else pytest.param(n, marks=pytest.mark.slow) for n in NAMES]
)
def test_the_first_complaint_is_the_reason(cli: Cli, name: str, work: Path) -> None:
    mpi = library_named(name)
    program = built(mpi, work, FAILS)
    for how, reason in (
        ("words", "solver: the matrix is singular at row 7"),  # data
        ("wm", "solver: the matrix is singular at row 7"),  # data
        ("silent", " 3: "),
        (".m", " 3"),
        ("abort", "(signal 6)"),
    ):
        done = cli("run", "--no-guard", "-n", "2", "--mpi", mpi.launcher, "--", program, how)
        assert done.code == 1
        first = done.out.splitlines()[0]
        assert first.startswith("failed: ")
        assert reason in first
        assert not {"\0", "\ufffd"} & set(done.text)
        assert "Exit code:" not in first  # data
        assert "End of error message" not in done.text  # data


@pytest.mark.mpi
def test_no_run_is_endless(cli: Cli, mpi_shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody says how long a run may take, there is a limit, and it is said at the start."""
    monkeypatch.setattr(target, "LONGEST_RUN_S", 0.8)
    words = ("--no-guard", "-n", "1", "--", mpi_shell, "sleep 600")
    for command in (
        ("run",),
        ("search", "--trials", "1"),
        ("compare", "default", "bind_to=none"),
    ):
        done = cli(*command, *words)
        assert done.code == 1
        assert "0.800 s" in done.err
        assert "0.8 s" in " ".join(done.text.split())


OPENMPI = [name for name in NAMES if name.startswith("openmpi")]
UNSTARTED = """
rule=$(printf '%74s' | tr ' ' -)
printf '%s\\n' "$rule" 'A requested component was not found.' '' 'Component: nothere' "$rule" \\
    '[vm:1] *** An error occurred in MPI_Init' >&2
sleep 600
"""


@pytest.mark.mpi
@pytest.mark.parametrize("name", OPENMPI)
def test_a_bad_value_of_a_parameter_file_is_named(
    cli: Cli, name: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its value and its file, also where the launcher does not end by itself."""
    mpi = library_named(name)
    file = work / "home" / ".openmpi" / "mca-params.conf"
    file.parent.mkdir(parents=True)
    file.write_text("pml = nothere\n")
    monkeypatch.setenv("HOME", str(work / "home"))
    program = built(mpi, work, FAILS)
    words = ("--no-guard", "-n", "2", "--mpi", mpi.launcher, "--timeout", "20")
    done = cli("run", *words, "--json", "-", "--", program, "silent")
    run = json.loads(done.out)["run"]
    assert run["state"] in ("failed", "timeout")
    assert "pml = nothere" in run["reason"]
    assert str(file) in run["reason"]


@pytest.mark.mpi
def test_a_launcher_that_goes_on_after_a_failed_start(cli: Cli) -> None:
    words = ("--no-guard", "-n", "1", "--timeout", "3", "--json", "-")
    done = cli("run", *words, "--", "sh", "-c", UNSTARTED)
    run = json.loads(done.out)["run"]
    assert run["state"] == "timeout"
    assert "Component: nothere" in run["reason"]


def test_workers_get_the_input_and_the_choice() -> None:
    asked = TargetRequest(
        program=("./p",), ranks=2, metric="t=(.)", metric_choice="last", stdin="steps.txt"
    )
    request = WorkerRequest(SearchRequest(target=asked, strategy="ga", trials=3), "/home/user")
    stored = json.loads(json.dumps(with_request(None, request)))
    [found] = requests_of(stored)
    assert found.search.target == asked.model_copy(update={"command": ""})
    assert (found.search.target.stdin, found.search.target.metric_choice) == ("steps.txt", "last")


def test_noise_ends_after_a_few_runs_that_fail(cli: Cli, mpi_shell: str, work: Path) -> None:
    """The first run works: it leaves a file that the others do not expect."""
    program = "echo x >> runs; test $(wc -l < runs) = 1"
    words = ("noise", "--no-guard", "--ranks", "1", "--store", "r.db")
    done = cli(*words, "--", mpi_shell, program)
    assert done.code == 1
    assert "[default.fails]" in done.err
    assert len((work / "runs").read_text().splitlines()) == 1 + TRIES
