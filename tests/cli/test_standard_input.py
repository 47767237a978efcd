"""Programs that read their standard input, under the launchers that are here."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from autotune.store import Store
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.outcome import WAITS_FOR_INPUT
from runner.types import LaunchSpec
from tests.cli.conftest import Cli
from tests.mpis import NAMES, built, library_named

pytestmark = pytest.mark.mpi
READS = r"""
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int rank, n = 0;
    long bytes = 0;
    MPI_Request all;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && scanf("%d", &n) != 1) {
        fprintf(stderr, "no number of steps\n");
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    while (rank == 0 && getchar() != EOF)
        bytes++;
    MPI_Ibcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD, &all);
    for (int over = 0; !over; usleep(1000))
        MPI_Test(&all, &over, MPI_STATUS_IGNORE);
    if (rank == 1 && getchar() != EOF)
        MPI_Abort(MPI_COMM_WORLD, 4);
    if (rank == 0)
        printf("steps %d, %ld bytes behind, time 0.5 s\n", n, bytes);
    return MPI_Finalize();
}
"""
"""Rank 0 reads a number and then to the end; another rank has nothing to read, and sleeps."""


@pytest.fixture(
    params=[pytest.param(n, marks=pytest.mark.slow) if "4.1" in n else n for n in NAMES]
)
def mpi(request: pytest.FixtureRequest) -> Library:
    return library_named(request.param)


def test_the_file_reaches_rank_0_whole(cli: Cli, mpi: Library, work: Path) -> None:
    program = built(mpi, work, READS)
    (work / "large input").write_text("7\n" + "x" * 3_000_000)
    done = cli(
        "run", "--no-guard", "-n", "2", "--mpi", mpi.launcher, "--stdin", "large input",
        "--verify", "steps 7, 3000001 bytes", "--json", "r.json", "--", program,
    )  # fmt: skip
    assert done.code == 0, done.text
    run = json.loads((work / "r.json").read_text())["run"]
    assert run["verified"] is True
    # The command that is shown can be typed.
    assert str(work / "large input") in shlex.join(run["command"])


def test_an_empty_input_is_told_as_such(cli: Cli, mpi: Library, work: Path) -> None:
    """Told at once, not after the time limit: by the program where it meets the end, by the
    launch where the launcher (Open MPI 5) keeps the input open for ever."""
    program = built(mpi, work, READS)
    done = cli("run", "--no-guard", "-n", "2", "--mpi", mpi.launcher, "--", program)
    assert done.code == 1
    said = " ".join(done.out.split())
    assert "--stdin FILE" in said
    if mpi.version_tuple >= (5,) and mpi.family == "openmpi":
        assert WAITS_FOR_INPUT in said
    assert "1 h 0 min" in done.err


def test_a_program_that_reads_nothing_is_left_alone(cli: Cli, mpi_shell: str) -> None:
    """Longer than the watch takes to tell, and a child of rank 0 that reads another pipe."""
    done = cli("run", "--no-guard", "-n", "2", "--", mpi_shell, "sleep 2.5 | cat")
    assert done.code == 0, done.text


@pytest.mark.slow
def test_the_search_of_a_program_that_waits_ends_with_the_reason(
    cli: Cli, open_mpi: Library, mpi_shell: str
) -> None:
    program = ("--", mpi_shell, "test $RANK -gt 0 || read words")
    done = cli("search", "--no-guard", "-n", "2", "--budget", "10m", *program)
    assert done.code == 1
    assert "10 min 0 s" in done.err
    assert "standard input" in done.err
    assert "--stdin FILE" in done.err


def test_the_content_is_part_of_the_study_not_its_name(
    cli: Cli, mpi_shell: str, work: Path
) -> None:
    for name, text in (("a", "1"), ("b", "2"), ("c", "1")):
        (work / name).write_text(text)
        done = cli(
            "run", "--no-guard", "-n", "1", "--store", "r.db", "--stdin", name, "--",
            mpi_shell, "cat > /dev/null",
        )  # fmt: skip
        assert done.code == 0, done.text
    with Store.open("r.db") as store:
        assert [study.runs for study in store.studies()] == [1, 2]


def test_the_input_of_an_app_file(cli: Cli, mpi_shell: str, work: Path) -> None:
    (work / "steps.txt").write_text("12\n")
    script = "test $RANK -gt 0 || sed 's/^/steps /'"
    (work / "configs" / "apps").mkdir(parents=True)
    (work / "configs" / "apps" / "reader.toml").write_text(
        f'name = "reader"\ncommand = ["{mpi_shell}", "{script}"]\nverify = "steps 12"\n'
        'default_input = "small"\ndefault_ranks = 2\n'
        '[inputs.small]\nstdin = "steps.txt"\n[inputs.gone]\nstdin = "nothere.txt"\n'
    )
    done = cli("run", "--no-guard", "--app", "reader")
    assert done.code == 0, done.text
    done = cli("run", "--no-guard", "--app", "reader", "--input", "gone")
    assert done.code == 2
    assert "[app.stdin_unreadable]" in done.err
    assert "nothere.txt" in done.err


def test_a_file_that_cannot_be_read(cli: Cli, library: Library, work: Path) -> None:
    for name, why in (("nothere", "No such file"), (".", "Is a directory")):  # data
        done = cli("search", "-n", "2", "--stdin", name, "--", "/bin/true")
        assert done.code == 2
        assert "--stdin: " in done.err
        assert why in done.err


@pytest.mark.parametrize(("version", "end"), [("4.1.8", " ./p < /in.txt"), ("5.0.11", " sh ./p")])
def test_the_line_that_is_printed(version: str, end: str) -> None:
    """Behind the line where the launcher hands it over whole; else rank 0 opens it."""
    from autotune.config.app import App
    from autotune.config.cluster import read_cluster
    from autotune.space import DEFAULT
    from autotune.targets.target import Target

    found = Library("openmpi", version, "/m", "/m/mpirun")
    app = App(name="p", command=("./p",), stdin="/dev/null", literal=True)
    target = Target(app, None, 2, read_cluster("local"), found, 2)
    line = target.mpirun_line(adapter(found), None, DEFAULT)
    assert line.endswith(end.replace("/in.txt", "/dev/null"))
    spec = LaunchSpec(("./p",), 2, stdin="/in.txt")
    assert "< /in.txt" in " ".join(adapter(found).command(spec, Path()))
