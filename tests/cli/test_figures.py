"""Programs that print their figure several times, or not where it is looked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runner.mpi.library import Library
from tests.cli.conftest import Cli

pytestmark = pytest.mark.mpi
# The largest does not come last.
EVERY_RANK = "printf 'rank %d: solve time = %s s\\n' $RANK 0.46 $RANK 0.25"
METRIC = ("--metric", "solve time = ([0-9.]+)")


@pytest.fixture
def program(work: Path, mpi_shell: str) -> list[str]:
    return ["--", mpi_shell, EVERY_RANK]


def run(cli: Cli, *words: str, ranks: int = 1) -> tuple[dict[str, Any], str]:
    done = cli("run", "--no-guard", "-n", str(ranks), "--json", "r.json", *words)
    assert done.code == 0, done.text
    return json.loads(Path("r.json").read_text())["run"], done.err


def test_the_largest_counts_and_that_is_said(
    cli: Cli, library: Library, program: list[str]
) -> None:
    found, said = run(cli, *METRIC, *program, ranks=2)
    assert (found["metric_s"], found["metric_count"]) == (0.46, 4)
    assert "--metric-choice" in said


def test_a_figure_that_is_longer_than_its_run_is_told(cli: Cli, mpi_shell: str) -> None:
    metric = ("--metric", "elapsed ([0-9]+)")
    found, said = run(cli, *metric, "--", mpi_shell, "echo elapsed 98765")
    assert found["metric_s"] == 98765
    assert "98765" in said


def test_a_printed_unit_is_read(cli: Cli, mpi_shell: str) -> None:
    metric = ("--metric", "elapsed ([0-9.]+)")
    found, said = run(cli, *metric, "--", mpi_shell, "echo elapsed 12.5 ms")
    assert found["metric_s"] == pytest.approx(0.0125)
    assert "--metric-rate" not in said


@pytest.mark.parametrize(("choice", "figure"), [("sum", 1.42), ("mean", 0.355), ("max", 0.46)])
def test_a_stated_choice(
    cli: Cli, library: Library, program: list[str], choice: str, figure: float
) -> None:
    found, said = run(cli, *METRIC, "--metric-choice", choice, *program, ranks=2)
    assert found["metric_s"] == pytest.approx(figure)
    assert "--metric-choice" not in said


@pytest.mark.parametrize(("choice", "figure"), [("first", 1.0), ("last", 3.0)])
def test_progress_of_one_rank(cli: Cli, mpi_shell: str, choice: str, figure: float) -> None:
    script = "test $RANK -gt 0 || printf 'time so far %s\\n' 1.0 7.5 3.0"
    metric = ("--metric", "time so far ([0-9.]+)", "--metric-choice", choice)
    assert run(cli, *metric, "--", mpi_shell, script, ranks=2)[0]["metric_s"] == figure


def test_the_choice_of_an_app_file(cli: Cli, work: Path, mpi_shell: str) -> None:
    (work / "p.sh").write_text(EVERY_RANK)
    text = (
        f'name = "p"\ncommand = ["{mpi_shell}", ". ./p.sh"]\nmetric = "solve time = ([0-9.]+)"\n'
        'metric_choice = "sum"\n'
    )
    Path("p.toml").write_text(text)
    assert run(cli, "--app", "./p.toml", ranks=2)[0]["metric_s"] == pytest.approx(1.42)
    Path("p.toml").write_text(text.replace("sum", "median"))
    done = cli("run", "-n", "2", "--app", "./p.toml")
    assert done.code == 2
    assert "metric_choice" in done.err


def test_a_choice_without_a_metric(cli: Cli, library: Library, program: list[str]) -> None:
    done = cli("run", "-n", "2", "--metric-choice", "last", *program)
    assert done.code == 2
    assert "metric.missing" in done.err


@pytest.mark.slow
def test_a_comparison_says_it_once(cli: Cli, open_mpi: Library, program: list[str]) -> None:
    done = cli(
        "compare", "default", "btl_sm_eager_limit=8192", "--no-guard", "--pairs", "6", "-n", "2",
        *METRIC, *program,
    )  # fmt: skip
    assert done.code == 0, done.text
    assert done.err.count("--metric-choice") == 1


@pytest.mark.parametrize("command", ["run", "search", "noise", "compare"])
def test_no_figure_shows_the_output_and_what_would_read_it(
    cli: Cli, open_mpi: Library, program: list[str], command: str
) -> None:
    settings = ["default", "btl_sm_eager_limit=8192"] if command == "compare" else []
    done = cli(
        command, *settings, "--no-guard", "-n", "2", "--metric", "Elapsed: ([0-9.]+)", *program
    )
    assert done.code == 1
    assert "  | rank 1: solve time = 0.46 s" in done.text  # data
    candidate = r"      --metric 'rank *[0-9]+: *solve *time *= *(\S+)'"
    assert candidate in done.text.splitlines()
    if command == "run":
        pattern = candidate.split("'")[1]
        assert run(cli, "--metric", pattern, *program, ranks=2)[0]["metric_s"] == 0.46


def test_figures_on_standard_error(cli: Cli, mpi_shell: str) -> None:
    program = (mpi_shell, "echo time 0.5 s >&2")
    words = ("run", "--no-guard", "-n", "1", "--metric", "time ([0-9.]+)", "--")
    done = cli(*words, *program)
    assert done.code == 1
    assert "-- sh -c 'exec \"$@\" 2>&1' sh PROGRAM ARGS" in done.text
    assert cli(*words, "sh", "-c", 'exec "$@" 2>&1', "sh", *program).code == 0


RATE = "echo rank $RANK reached $((4 - RANK)).0 GB/s"
CUT = "test $RANK -gt 0 || printf 'total: 1.030E+01\\nparts: 1,594\\n'"


def test_a_rate_in_the_place_of_a_time_is_refused(cli: Cli, mpi_shell: str) -> None:
    program = ("--no-guard", "-n", "2", "--", mpi_shell, RATE)
    for command in ("run", "search", "noise"):
        before = cli(command, "--metric", r"reached (\S+) GB/s", *program)
        assert before.code == 2
        assert "metric.rate" in before.err
    done = cli("run", "--metric", r"reached (\S+)", "--json", "r.json", *program)
    assert done.code == 1
    found = json.loads(Path("r.json").read_text())["run"]
    assert (found["state"], found["code"], found["metric_s"]) == ("no_metric", "metric.rate", None)
    assert r"--metric-rate 'reached (\S+)'" in done.text


def test_a_rate(cli: Cli, mpi_shell: str) -> None:
    """The figure of the slowest rank counts: the smallest rate."""
    program = ("--", mpi_shell, RATE)
    found, said = run(cli, "--metric-rate", r"reached (\S+)", *program, ranks=2)
    assert found["metric_s"] == pytest.approx(1 / 3e9)
    assert (found["metric_rate"], found["metric_unit"]) == (True, "GB/s")
    assert "--metric-choice" in said
    chosen = ("--metric-rate", r"reached (\S+)", "--metric-choice", "sum")
    found, _ = run(cli, *chosen, *program, ranks=2)
    assert found["metric_s"] == pytest.approx(1 / 7e9)
    done = cli("run", "--no-guard", "-n", "2", "--metric-rate", "reached ([0-9.]+)", *program)
    assert "metric 3 GB/s" in done.out


def test_a_time_in_the_place_of_a_rate_is_refused(cli: Cli, mpi_shell: str) -> None:
    program = ("--no-guard", "-n", "1", "--", mpi_shell, "echo took 3.5 seconds")
    assert cli("run", "--metric-rate", r"took (\S+) s", *program).code == 2
    done = cli("run", "--metric-rate", r"ook ([0-9.]+)", "--json", "r.json", *program)
    assert done.code == 1
    assert json.loads(Path("r.json").read_text())["run"]["code"] == "metric.time"


def test_a_pattern_that_cuts(cli: Cli, mpi_shell: str) -> None:
    program = ("--", mpi_shell, CUT)
    assert run(cli, "--metric", "total: ([0-9.]+)", *program)[0]["metric_s"] == pytest.approx(10.3)
    words = ("--no-guard", "-n", "1", "--metric", "parts: ([0-9.]+)", *program)
    done = cli("run", "--json", "r.json", *words)
    assert done.code == 1
    found = json.loads(Path("r.json").read_text())["run"]
    assert (found["state"], found["code"]) == ("no_metric", "metric.cut")
    assert "parts: 1,594" in found["reason"]
    assert "[metric.cut]" in cli("search", "--budget", "1m", *words).err
