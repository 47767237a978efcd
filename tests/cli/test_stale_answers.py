"""A rebuilt program behind a wrapper gets an answer of its own, never that of the old program."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from autotune.store import Store
from runner.mpi.library import Library
from tests.cli.conftest import Cli
from tests.mpis import built

SOURCE = """
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    usleep(US);
    if (rank == 0) printf("seconds %g\\n", US / 1e6);
    MPI_Finalize();
    return 0;
}
"""
SPACE = """
[parameters.btl_self_eager_limit]
levels = [8192]
"""

pytestmark = pytest.mark.mpi


def build(library: Library, work: Path, microseconds: int) -> None:
    """Build ``bin/v`` as a linker does: a new file in the place of the old one."""
    folder = work / "build"
    folder.mkdir(exist_ok=True)
    made = built(library, folder, SOURCE, f"-DUS={microseconds}")
    (work / "bin").mkdir(exist_ok=True)
    made.replace(work / "bin" / "v")


OPTIONS = (
    "search", "-n", "1", "--space", "one.toml", "--strategy", "random", "--trials", "1",
    "--metric", "seconds ([0-9.e+-]+)", "--no-guard", "--mpi", "openmpi-5.0",
)  # fmt: skip


def search(cli: Cli, *program: str) -> dict[str, Any]:
    outcome = cli(*OPTIONS, "--json", "result.json", "--quiet", "--", *program)
    assert outcome.code == 0, outcome.text
    found: dict[str, Any] = json.loads(Path("result.json").read_text())
    return found


def launches() -> int:
    with Store.open() as store:
        return sum(study.runs for study in store.studies())


@pytest.fixture
def here(work: Path, open_mpi: Library) -> Path:
    (work / "one.toml").write_text(SPACE)
    (work / "runv.sh").write_text("#!/bin/sh\nexec bin/v\n")
    build(open_mpi, work, 20000)
    return work


@pytest.mark.parametrize(
    "wrapper",
    [("sh", "runv.sh"), pytest.param(("bash", "-c", "bin/v; true"), marks=pytest.mark.slow)],
)
def test_a_rebuilt_program_is_measured_anew(
    cli: Cli, here: Path, open_mpi: Library, wrapper: tuple[str, ...]
) -> None:
    first = search(cli, *wrapper)
    assert [row["path"] for row in first["executables"]] == [str(here / "bin/v")]
    assert first["origin"]["files"][str(here / "bin/v")] == first["executables"][0]["sha256"]
    runs = launches()

    build(open_mpi, here, 20000)  # The same bytes in a new file.
    assert search(cli, *wrapper)["study"] == first["study"]
    assert launches() == runs

    build(open_mpi, here, 40000)
    second = search(cli, *wrapper)
    assert launches() > runs
    assert second["study"] != first["study"]
    assert second["default"]["median_s"] == pytest.approx(0.04)
    shown = cli("show", first["study"], "--json", "-")
    assert json.loads(shown.out)["executables"] == first["executables"]
    assert len(json.loads(shown.out)["changed"]) == 1

    runs = launches()
    assert search(cli, *wrapper)["study"] == second["study"]
    build(open_mpi, here, 20000)
    assert search(cli, *wrapper)["study"] == first["study"]
    assert launches() == runs


def test_a_rebuilt_library_is_measured_anew(cli: Cli, here: Path, open_mpi: Library) -> None:
    part = SOURCE.replace("int main(", "int part(")
    whole = "int part(int, char **); int main(int c, char **v) { return part(c, v); }"

    def library(microseconds: int) -> None:
        folder = here / "build"
        made = built(open_mpi, folder, part, "-shared", "-fPIC", f"-DUS={microseconds}")
        made.replace(here / "libpart.so")

    library(20000)
    words = (f"-L{here}", "-lpart", f"-Wl,-rpath,{here}")
    shutil.copy(
        built(open_mpi, here / "build", whole, "-Wl,--no-as-needed", *words), here / "whole"
    )
    first = search(cli, "./whole")
    assert {row["kind"]: row["path"] for row in first["executables"]} == {
        "program": str(here / "whole"),
        "library": str(here / "libpart.so"),
    }
    library(40000)
    second = search(cli, "./whole")
    assert second["study"] != first["study"]
    assert second["default"]["median_s"] == pytest.approx(0.04)


def test_a_program_that_changes_during_the_search_ends_it(
    cli: Cli, here: Path, open_mpi: Library
) -> None:
    """The runs of both programs are stored, those of the second one do not count."""
    shutil.copy(here / "bin/v", here / "old")
    build(open_mpi, here, 40000)
    shutil.copy(here / "bin/v", here / "new")
    shutil.copy(here / "old", here / "bin/v")
    (here / "runs").write_text("")
    # In its third run it is replaced.
    (here / "runv.sh").write_text(
        'echo >> runs\n[ "$(wc -l < runs)" = 3 ] && cp new bin/w && mv bin/w bin/v\nexec bin/v\n'
    )
    stopped = cli(*OPTIONS, "--", "sh", "runv.sh")
    assert (stopped.code, "[study.program_changed]" in stopped.err) == (1, True), stopped.text
    with Store.open() as store:
        (study,) = store.studies()
        states = [run.record.state for run in store.runs(study.id)]
    assert states == ["ok"] * (len(states) - 1) + ["interrupted"]
    assert 2 <= len(states) <= 3
    found = search(cli, "sh", "runv.sh")
    assert found["default"]["median_s"] == pytest.approx(0.04)
    assert study.hash[:12] != found["study"]


def test_a_copy_that_the_wrapper_removes(cli: Cli, here: Path, open_mpi: Library) -> None:
    """Its content is known; whether it would be the same now shows the next run alone."""
    (here / "runv.sh").write_text("cp bin/v v.$$\n./v.$$\ncode=$?\nrm v.$$\nexit $code\n")
    first = search(cli, "sh", "runv.sh")
    (row,) = first["executables"]
    assert row["sha256"] == hashlib.sha256((here / "bin/v").read_bytes()).hexdigest()
    runs = launches()
    again = cli(*OPTIONS, "--", "sh", "runv.sh")
    assert again.code == 0, again.text
    assert launches() == runs
