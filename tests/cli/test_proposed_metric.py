"""The figure of merit that a program prints: proposed, and taken by --metric auto."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from autotune.store import Store
from autotune.targets.figures import output_notes, proposal_of
from runner.types import RunRecord
from tests.case_table import case_table
from tests.cli.conftest import Cli

OUTPUTS = Path(__file__).parents[1] / "cases" / "outputs"


@pytest.fixture
def prints(mpi_shell: str, work: Path) -> Any:
    """The words of a program whose first rank prints one of the forty outputs."""

    def words(name: str, stream: str = "1") -> list[str]:
        return [mpi_shell, f"test $RANK -gt 0 || cat {OUTPUTS / name}.txt >&{stream}"]

    return words


def run(cli: Cli, *words: str) -> tuple[int, dict[str, Any]]:
    done = cli("run", "-n", "2", "--no-guard", "--json", "run.json", *words)
    return done.code, json.loads(Path("run.json").read_text())


def test_the_wall_time_counts_and_the_figure_is_proposed(cli: Cli, prints: Any) -> None:
    code, document = run(cli, "--", *prints("lammps-melt"))
    assert (code, document["run"]["metric_s"]) == (0, None)
    proposed = document["proposed_metric"]
    assert proposed["program"] == "LAMMPS"
    assert proposed["value"] == pytest.approx(10.4091)
    words = shlex.split(shlex.join(proposed["options"]))
    code, document = run(cli, *words, "--", *prints("lammps-melt"))
    assert document["run"]["metric_s"] == pytest.approx(10.4091)
    assert document["proposed_metric"] is None


def test_auto_takes_the_figure_and_the_check_of_the_result(cli: Cli, prints: Any) -> None:
    options = ("--metric", "auto", "--store", "figures.db")
    for runs in (2, 3):  # The run that shows what is printed is made once.
        code, document = run(cli, *options, "--", *prints("qe-silicon"))
        assert (code, document["run"]["verified"]) == (0, True)
        assert document["run"]["metric_s"] == pytest.approx(5.64)
        with Store.open("figures.db") as store:
            assert sum(study.runs for study in store.studies()) == runs
    assert run(cli, *options, "--", *prints("qe-unconverged"))[1]["run"]["state"] == "unverified"


def test_patterns_of_the_user_stay(cli: Cli, prints: Any) -> None:
    options = ("--metric", "auto", "--verify", "JOB DONE", "--metric-choice", "first")
    code, document = run(cli, *options, "--", *prints("qe-unconverged"))
    assert code == 1  # --verify-absent of the table finds the words of a wrong result.
    assert document["run"]["verified"] is False


def test_auto_without_a_certain_figure_is_refused(cli: Cli, prints: Any) -> None:
    code, document = run(cli, "--metric", "auto", "--", *prints("elk-aluminium"))
    assert (code, document["code"]) == (2, "metric.auto_none")


def test_a_figure_on_standard_error_is_read_by_auto_and_by_the_printed_command(
    cli: Cli, prints: Any
) -> None:
    document = run(cli, "--metric", "auto", "--", *prints("gromacs", "2"))[1]
    assert document["run"]["metric_s"] == pytest.approx(1 / 45.227)
    printed = record("gromacs", "stderr_tail")
    (note,) = output_notes(printed, proposal_of(printed), tuple(prints("gromacs", "2")))
    command = shlex.split(note.words.rpartition("\n")[2])
    document = run(cli, "--metric", "auto", *command)[1]
    assert document["run"]["metric_s"] == pytest.approx(1 / 45.227)


def test_auto_reads_the_figure_that_a_known_program_adds_to_its_file(
    cli: Cli, mpi_shell: str
) -> None:
    """A program that is a script keeps its MPI library behind the shell that prints the file."""
    Path("hpcc").write_text(f'#!/bin/sh\nexec {mpi_shell} "$@"\n')
    Path("hpcc").chmod(0o755)
    plain = run(cli, "--", "./hpcc", "true")[1]["run"]
    text = f"test $RANK -gt 0 || cat {OUTPUTS / 'hpcc.txt'} >> hpccoutf.txt"
    document = run(cli, "--metric", "auto", "--", "./hpcc", text)[1]
    assert document["run"]["metric_s"] == pytest.approx(1 / 1.90164e9)
    assert document["run"]["verified"] is True
    mpi = [(row["mpi_name"], row["mpi_version"]) for row in (plain, document["run"])]
    assert mpi[0] == mpi[1]


def record(name: str, stream: str = "stdout_tail") -> RunRecord:
    text = (OUTPUTS / f"{name}.txt").read_text()
    record = RunRecord(state="ok", wall_s=1.0, exit_code=0)
    setattr(record, stream, text)
    return record


@case_table(
    ("name", "stream", "program", "codes"),
    [
        ("lammps-melt", "stdout_tail", ("lmp",), ["metric.proposed"]),
        ("qe-unconverged", "stdout_tail", ("pw.x",), ["metric.proposed", "output.says_wrong"]),
        ("gromacs-water", "stderr_tail", ("gmx_mpi",), ["metric.elsewhere"]),
        ("elk-aluminium", "stdout_tail", ("elk-lapw",), []),
    ],
)
def test_notes_on_an_output(
    name: str, stream: str, program: tuple[str, ...], codes: list[str]
) -> None:
    printed = record(name, stream)
    notes = output_notes(printed, proposal_of(printed), program)
    assert [note.code for note in notes] == codes


def test_the_end_of_an_output_on_standard_error_is_known_by_the_program() -> None:
    printed = record("gromacs", "stderr_tail")
    printed.stderr_tail = printed.stderr_tail[printed.stderr_tail.index("Performance:") :]
    found = proposal_of(printed, ("/usr/bin/gmx_mpi", "mdrun"))
    assert found is not None
    assert (found.program, found.source) == ("GROMACS", "standard error")  # data


def test_a_program_that_prints_to_a_file_is_known_by_its_name() -> None:
    silent = RunRecord(state="ok", wall_s=1.0, exit_code=0)
    (note,) = output_notes(silent, None, ("/opt/hpcc/bin/hpcc",))
    assert (note.code, note.data["place"]) == ("metric.elsewhere", "hpccoutf.txt")
    assert output_notes(silent, None, ("./solver",)) == []


def test_a_search_proposes_in_its_document(cli: Cli, prints: Any) -> None:
    words = ("-n", "1", "--no-guard", "--trials", "1", "--min-gain", "40", "--json", "search.json")
    cli("search", *words, "--", *prints("own-ring"))
    proposed = json.loads(Path("search.json").read_text())["proposed_metric"]
    assert proposed["options"][:2] == ["--metric", r"ring *time: *(\S+)"]
