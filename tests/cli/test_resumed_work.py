"""Programs that continue from their files: stopped, and measured truly once the files are fresh."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from autotune.store import Store
from runner.mpi.library import Library
from tests.cli.conftest import Cli
from tests.mpis import built

pytestmark = pytest.mark.mpi
RESUMES = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int begin = access(argv[1], F_OK) ? 0 : 100;
    clock_t start = clock();
    while (begin == 0 && clock() - start < atof(argv[2]) * CLOCKS_PER_SEC)
        ;
    fclose(fopen(argv[1], "w"));
    printf("steps %d..100\\nElapsed: %g s\\n", begin, begin ? 0.001 : 1.0);
    MPI_Finalize();
    return 0;
}
"""
"""Does the whole work in some seconds of CPU time, unless its state file is there."""
REFUSES = "set -C; : > out.nc"
METRIC = ("--metric", "Elapsed: ([0-9.]+)")
LONG, SHORT = "0.4", "0"
"""CPU seconds of the whole work: a multiple of a start, and no more than a start."""


@pytest.fixture
def resumes(library: Library, work: Path) -> list[str]:
    built(library, work, RESUMES)
    return ["./program", "state.cpt"]


def begins(work: Path) -> list[str]:
    """With which step each stored run began."""
    with Store.open(str(work / "r.db")) as store:
        studies = [study.id for study in store.studies()]
        return [run.record.stdout_tail.split("..")[0] for s in studies for run in store.runs(s)]


@pytest.mark.parametrize("command", ["search", "noise", "compare"])
def test_resumed_work_is_stopped_with_the_reason(
    cli: Cli, library: Library, work: Path, resumes: list[str], command: str
) -> None:
    words = {
        "search": ("search", "--trials", "3"),
        "noise": ("noise",),
        "compare": ("compare", "default", "bind_to=none"),
    }[command]
    done = cli(
        *words, "--no-guard", "-n", "1", "--store", "r.db", *METRIC, "--",
        *resumes, LONG,
    )  # fmt: skip
    assert done.code == 1
    assert "[work.resumed]" in done.err
    assert "--before 'rm -f state.cpt'" in done.err
    first, *later = begins(work)
    assert (first, set(later)) == ("steps 0", {"steps 100"})
    # B ran once or twice, too: the order in a block is random.
    assert len(later) in ((3, 4) if command == "compare" else (2,))
    if command == "search":
        # The same command does not start the program again: its checkpoint is still there.
        again = cli(
            *words, "--no-guard", "-n", "1", "--store", "r.db", *METRIC, "--", *resumes, LONG
        )
        assert (again.code, "[work.resumed]" in again.err) == (1, True)
        assert len(begins(work)) == 3


def test_resumed_work_of_a_program_that_prints_no_time(
    cli: Cli, library: Library, work: Path, resumes: list[str]
) -> None:
    done = cli("noise", "--no-guard", "-n", "1", "--store", "r.db", "--", *resumes, LONG)
    assert (done.code, "[work.resumed]" in done.err) == (1, True)


@pytest.mark.parametrize("how", ["before", "fresh_dir"])
def test_with_fresh_files_every_run_does_the_whole_work(
    cli: Cli, library: Library, work: Path, resumes: list[str], how: str
) -> None:
    (work / "state.cpt").write_text("100")  # Of a run by hand.
    folder = work / "input"
    folder.mkdir()
    shutil.copy(work / "program", folder)
    options = ("--before", "rm -f state.cpt") if how == "before" else ("--fresh-dir", "input")
    done = cli(
        "noise", "--runs", "6", "--no-guard", "-n", "1", "--store", "r.db", "--json", "r.json",
        *METRIC, *options, "--", *resumes, SHORT,
    )  # fmt: skip
    assert done.code == 0, done.text
    assert begins(work) == ["steps 0"] * 7
    assert json.loads((work / "r.json").read_text())["median_s"] >= 0.8
    assert sorted(p.name for p in folder.iterdir()) == ["program"]
    assert not [p for p in work.iterdir() if p.name.startswith(".autotune")]


def test_the_options_are_part_of_the_study(
    cli: Cli, library: Library, work: Path, resumes: list[str]
) -> None:
    for options in (
        (),
        ("--before", "rm -f state.cpt"),
        ("--fresh-dir", "."),
        ("--before", "true"),
    ):
        store = work.parent / "elsewhere.db"
        done = cli(
            "run", "--no-guard", "-n", "1", "--store", store, *options, "--", *resumes, SHORT
        )
        assert done.code == 0, done.text
    with Store.open(str(store)) as opened:
        assert [study.runs for study in opened.studies()] == [1] * 4


def test_a_program_that_writes_its_results_is_not_stopped(
    cli: Cli, library: Library, work: Path
) -> None:
    built(library, work, RESUMES.replace("? 0 : 100", "? 0 : 0"))
    done = cli("noise", "--runs", "6", "--no-guard", "-n", "1", "--", "./program", "out", "0.1")
    assert done.code == 0, done.text


@pytest.mark.parametrize("command", ["run", "noise"])
def test_a_file_that_exists_names_the_options(
    cli: Cli, mpi_shell: str, work: Path, command: str
) -> None:
    few = ("--runs", "6") if command == "noise" else ()
    words = (command, *few, "--no-guard", "-n", "1", "--store", work.parent / "r.db")
    program = ("--", mpi_shell, REFUSES)
    if command == "run":
        assert cli(*words, *program).code == 0
    done = cli(*words, *program)
    assert done.code == 1
    assert ("[work.file_exists]" in done.err) == (command == "noise")
    assert "--before" in done.text
    assert "--fresh-dir" in done.text
    assert cli(*words, "--before", "rm -f out.nc", *program).code == 0


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--before", "rm 'x"), 2, "before.quotation"),
        (("--before", " "), 2, "before.empty"),
        (("--before", "sh -c 'echo reason; exit 3'"), 1, "before.failed"),
        (("--fresh-dir", "nowhere"), 2, "fresh_dir.missing"),
        (("--fresh-dir", "/"), 2, "fresh_dir.root"),
        (("--fresh-dir", "."), 2, "fresh_dir.store"),
    ],
)
def test_what_cannot_be_prepared_is_refused(
    cli: Cli,
    library: Library,
    work: Path,
    resumes: list[str],
    options: tuple[str, str],
    code: int,
    said: str,
) -> None:
    done = cli("run", "--no-guard", "-n", "1", "--store", "r.db", *options, "--", *resumes, SHORT)
    assert (done.code, f"[{said}]" in done.err) == (code, True), done.text
    assert ("reason" in done.err) == (said == "before.failed")
    assert not (work / "state.cpt").exists()
