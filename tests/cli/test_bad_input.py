"""Everything a user can get wrong: one clear message, exit code 2 or 1, nothing lost."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from tests.cli.conftest import Cli


def refused(cli: Cli, *words: str | Path, code: int = 2) -> str:
    outcome = cli(*words)
    assert outcome.code == code, outcome.text
    return outcome.err


def test_a_command_that_does_not_exist(cli: Cli) -> None:
    assert "serch" in refused(cli, "serch")


@pytest.mark.mpi
def test_unknown_names_are_refused_with_what_there_is(cli: Cli, library: object) -> None:
    assert "jacobi3d" in refused(cli, "search", "--app", "jacobi3")
    assert "openmpi" in refused(cli, "search", "--app", "jacobi3d", "--space", "openmpy")
    assert "ga" in refused(cli, "search", "--app", "jacobi3d", "--strategy", "gaa")
    assert "tiny" in refused(cli, "search", "--app", "jacobi3d", "--input", "tinny")
    assert "local" in refused(cli, "search", "--app", "jacobi3d", "--cluster", "lokal")


@pytest.mark.mpi
def test_an_unknown_parameter_or_value(cli: Cli, library: object) -> None:
    text = refused(cli, "run", "--app", "jacobi3d", "-s", "btl_sm_eager_limt=4096")
    assert "btl_sm_eager_limt" in text
    text = refused(cli, "run", "--app", "jacobi3d", "-s", "mpi_yield_when_idle=5")
    assert "mpi_yield_when_idle" in text
    assert "column" in refused(cli, "run", "--app", "jacobi3d", "-s", "=3")


def test_nothing_to_run_and_too_much_to_run(cli: Cli) -> None:
    assert "--app" in refused(cli, "search")
    assert "[usage.conflict]" in refused(cli, "search", "--app", "jacobi3d", "--", "/bin/true")


def test_a_budget_that_its_own_proof_needs(cli: Cli) -> None:
    text = refused(cli, "search", "-n", "2", "--runs", "20", "--", "/bin/true")
    assert "[budget.too_small]" in text
    assert "--runs 20" in text


def test_a_missing_program(cli: Cli) -> None:
    assert "./nowhere" in refused(cli, "search", "--ranks", "2", "--", "./nowhere")


def test_a_number_of_ranks_is_needed(cli: Cli) -> None:
    assert "--ranks" in refused(cli, "search", "--", "/bin/true")


def test_broken_patterns(cli: Cli) -> None:
    text = refused(cli, "search", "-n", "2", "--metric", "time (", "--", "/bin/true")
    assert "--metric" in text
    text = refused(cli, "search", "-n", "2", "--metric", "time", "--", "/bin/true")
    assert "[metric.pattern]" in text


def test_mpirun_inside_mpirun(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    assert "inside" in refused(cli, "search", "--app", "jacobi3d")


def test_two_numbers_of_ranks(cli: Cli) -> None:
    text = refused(cli, "search", "-n", "2", "--", "mpirun", "-np", "4", "/bin/true")
    assert "contradict" in text


@pytest.mark.mpi
def test_a_foreign_database_is_not_touched(cli: Cli, library: object, work: Path) -> None:
    place = work / "theirs.db"
    with sqlite3.connect(place) as theirs:
        theirs.execute("create table t (x)")
    before = place.read_bytes()
    refused(cli, "run", "--app", "jacobi3d", "--store", place)
    assert place.read_bytes() == before
    (work / "notes.txt").write_text("no database at all, but some text of a user" * 100)
    refused(cli, "run", "--app", "jacobi3d", "--store", work / "notes.txt")


@pytest.mark.mpi
def test_an_unwritable_result_file_is_refused_before_the_work(cli: Cli, library: object) -> None:
    assert "no/where.json" in refused(cli, "search", "--app", "jacobi3d", "--json", "no/where.json")


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("script", "words", "state", "named"),
    [
        ("exit 3", [], "failed", " 3"),
        ("kill -ABRT $$", [], "failed", "6"),
        ("sleep 60", ["--timeout", "0.6"], "timeout", "0.6 s"),
        ("echo no MPI here", [], "no_mpi", "MPI_Init"),
    ],
)
def test_programs_that_go_wrong(
    cli: Cli, library: object, script: str, words: list[str], state: str, named: str
) -> None:
    options = ("-n", "1", "--no-guard", *words, "--json", "r.json")
    outcome = cli("run", *options, "--", "sh", "-c", script)
    assert outcome.code == 1
    assert json.loads(Path("r.json").read_text())["run"]["state"] == state
    assert named in outcome.text


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("words", "state"),
    [
        (["--metric", "seconds ([0-9.]+)"], "no_metric"),
        (["--verify", "SUCCESS"], "unverified"),
    ],
)
def test_output_without_what_is_looked_for(
    cli: Cli, mpi_shell: str, words: list[str], state: str
) -> None:
    options = ("-n", "1", "--no-guard", *words, "--json", "r.json")
    outcome = cli("run", *options, "--", mpi_shell, "true")
    assert outcome.code == 1
    run = json.loads(Path("r.json").read_text())["run"]
    assert run["state"] == state
    assert run["reason"] in outcome.text.replace("\n", " ")


@pytest.mark.mpi
def test_a_search_whose_default_fails_says_why(cli: Cli, mpi_shell: str) -> None:
    program = (mpi_shell, "echo boom >&2; exit 7")
    text = refused(cli, "search", "-n", "1", "--no-guard", "--", *program, code=1)
    assert "default" in text
    assert "code 7" in text
    assert "boom" in text


@pytest.mark.mpi
def test_singletons_are_refused(cli: Cli, mpi_shell: str) -> None:
    # The ranks drop what makes them find each other, as a program of another MPI would.
    script = 'unset $(env | grep -Eo "^(PMIX|OMPI_COMM|PRTE)[^=]*"); exec $0 true'
    outcome = cli(
        *("run", "-n", "2", "--no-guard", "--json", "r.json"),
        *("--", "sh", "-c", script, mpi_shell),
    )
    assert outcome.code == 1
    run = json.loads(Path("r.json").read_text())["run"]
    assert (run["state"], run["world_size"]) == ("singletons", 1)
    assert run["reason"] in " ".join(outcome.text.split())


@pytest.mark.mpi
def test_more_ranks_than_allowed(cli: Cli, library: object) -> None:
    assert "4096" in refused(cli, "search", "--app", "jacobi3d", "--ranks", "5000")
