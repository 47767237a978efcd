"""One program under two MPI libraries, as the command line compares them."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import autotune
from autotune.store import Store
from runner.mpi.library import Library
from tests.cli.conftest import Cli
from tests.mpis import NAMES, built, library_named

pytestmark = pytest.mark.mpi
PROGRAM = """#!/bin/sh
exec MPI_SHELL 'echo took ${TAKES_S:-1.000} s'
"""
"""Its figure does not depend on the machine, but on the launcher below."""
METRIC = ("--metric", "took ([0-9.]+) s")


@pytest.fixture
def slower(open_mpi: Library, work: Path, mpi_shell: str) -> Path:
    """A second installation: the launcher of this one, under which the program takes longer."""
    place = work / "slower" / "bin"
    place.mkdir(parents=True)
    launcher = place / "mpirun"
    launcher.write_text(f'#!/bin/sh\nexport TAKES_S=1.500\nexec {open_mpi.launcher} "$@"\n')
    launcher.chmod(0o755)
    (place / "ompi_info").symlink_to(Path(open_mpi.bin) / "ompi_info")
    program = work / "program"
    program.write_text(PROGRAM.replace("MPI_SHELL", mpi_shell))
    program.chmod(0o755)
    return place


def document(place: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(place.read_text())
    return found


def line(one: Library, other: Path, work: Path) -> tuple[list[str | Path], list[str | Path]]:
    """A comparison and its program.

    The installation was not built where the second launcher lies, so the check of the library
    inside the ranks needs --clean-env.
    """
    words: list[str | Path] = [
        "compare", "--mpi", one.bin, "--mpi", other, "--clean-env", "-n", "1", *METRIC,
        "--pairs", "6", "--store", "r.db", "--json", "r.json",
    ]  # fmt: skip
    return words, ["--", work / "program"]


@pytest.mark.usefixtures("quiet")
def test_each_run_is_stored_with_its_library_and_the_command_continues(
    cli: Cli, work: Path, open_mpi: Library, slower: Path
) -> None:
    words, program = line(open_mpi, slower, work)
    studies = set()
    for _ in range(2):
        done = cli(*words, "--runs", "4", *program)
        assert done.code == 0, done.text
        studies.add(document(work / "r.json")["study"])
    data = document(work / "r.json")
    assert len(studies) == 1
    assert (data["faster"], data["pairs"], data["outcome"]) == (None, 2, "continue")
    assert data["mpi"]["b"] == {
        "name": "openmpi", "version": open_mpi.version, "path": str(slower),
        "program": str(work / "program"),
    }  # fmt: skip
    with Store.open(work / "r.db") as store:
        runs = store.runs(store.find_study(data["study"]).id)
    # Every command warms up both sides once; no pair is measured twice.
    second = f"mpi=openmpi-{open_mpi.version}"
    assert Counter((run.setting_key, run.phase) for run in runs if run.record.valid) == {
        (key, phase): 2 for key in ("default", second) for phase in ("warmup", "compare:0")
    }
    assert {(run.setting_key, run.record.command[0]) for run in runs} == {
        ("default", open_mpi.launcher),
        (second, str(slower / "mpirun")),
    }


def _joined(text: str) -> str:
    """The text without blanks: a long path is folded at the end of a line."""
    return "".join(text.split())


@pytest.mark.slow
@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("turned", [False, True])
def test_the_faster_library_is_named(
    cli: Cli, work: Path, open_mpi: Library, slower: Path, turned: bool
) -> None:
    words, program = line(open_mpi, slower, work)
    if turned:
        words[2], words[4] = words[4], words[2]
    done = cli(*words, *program)
    assert done.code == 0, done.text
    title = f"openmpi {open_mpi.version} in"
    words_of_it = f"{title} {open_mpi.bin} is faster than {title} {slower}"
    assert _joined(words_of_it) in _joined(done.out)
    assert "95 % interval" in " ".join(done.out.split())
    assert max(map(len, done.out.splitlines())) <= 80
    data = document(work / "r.json")
    assert data["faster"] == ("b" if turned else "a")
    assert data["outcome"] == ("better" if turned else "worse")
    assert data["gain"] == pytest.approx(1.5 - 1 if turned else 1 / 1.5 - 1)
    shown = cli("show", data["study"], "--store", "r.db")
    assert _joined(words_of_it) in _joined(shown.out)


def test_a_library_under_which_nothing_runs_is_named(
    cli: Cli, work: Path, open_mpi: Library, slower: Path
) -> None:
    (slower / "mpirun").write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && exec {open_mpi.launcher} --version\nexit 3\n'
    )
    outcome = cli(
        "compare", "--mpi", open_mpi.bin, "--mpi", slower, "-n", "1", "--no-guard", "--store",
        "r.db", "--", work / "program",
    )  # fmt: skip
    assert outcome.code == 1
    assert "[compare.fails]" in outcome.err
    with Store.open("r.db") as store:
        failed = [run.phase for run in store.runs(1) if not run.record.valid]
    assert failed == ["warmup", "compare:0"], "it is not started pair after pair"
    assert f"openmpi {open_mpi.version} in {slower}" in outcome.err


def wrong(cli: Cli, *words: str | Path) -> str:
    outcome = cli("compare", *words)
    assert outcome.code == 2, outcome.text
    return " ".join(outcome.err.split())


def test_what_cannot_be_compared_is_refused(cli: Cli, open_mpi: Library, slower: Path) -> None:
    here = ("--mpi", open_mpi.bin)
    two = (*here, "--mpi", slower)
    program = ("-n", "1", "--", sys.executable, "program.py")
    assert "[mpi.same]" in wrong(cli, *here, "--mpi", f"openmpi-{open_mpi.version}", *program)
    assert "[mpi.count]" in wrong(cli, *two, *here, *program)
    assert "(default)" in wrong(cli, "default", *two, *program)
    assert "[compare.settings]" in wrong(cli, *here, *program)
    assert "--mpi" in wrong(cli, "default", "pml=ob1", "--program-b", "x", *program)
    named = ("--app", "jacobi3d", "--program-b", "x")
    assert "[program.second_build]" in wrong(cli, *two, *named)
    assert "[mpi.unknown]" in wrong(cli, *here, "--mpi", "nosuch", *program)


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(("openmpi-4.1", "openmpi-5"), marks=pytest.mark.slow),
        pytest.param(("openmpi-5", "mpich"), marks=pytest.mark.slow),
    ],
)
def test_a_python_program_runs_under_both(work: Path, names: tuple[str, str]) -> None:
    found = [library_named(name) for name in names]
    place = work / "program.py"
    place.write_text("from mpi4py import MPI\nprint(MPI.COMM_WORLD.size)\n")
    outcome = autotune.compare_libraries(
        found[0].launcher, found[1].launcher, [sys.executable, str(place)], ranks=2, verify="^2$",
        pairs=6, runs=7, guard=False, store=work / "r.db", watch=lambda event: None,
    )  # fmt: skip
    assert outcome.pairs >= 1, outcome.words
    assert outcome.libraries is not None
    seen = [(one["name"], one["version"]) for one in outcome.libraries.values()]
    assert seen == [(library.family, library.version) for library in found]


def test_each_library_gets_its_build(cli: Cli, work: Path) -> None:
    builds = {}
    for name in (NAMES[1], NAMES[2]):
        library = library_named(name)  # First: a directory of this name would be meant.
        (work / name).mkdir()
        builds[library.launcher] = built(library, work / name)
    (one, first), (other, second) = builds.items()
    words = [
        "compare",
        "--mpi",
        one,
        "--mpi",
        other,
        "--no-guard",
        "--store",
        "r.db",
        "--runs",
        "6",
    ]
    line = ["--", "mpirun", "-np", "2", first, "x"]
    assert "[program.other_abi]" in wrong(cli, *words[1:], *line)
    outcome = cli(*words, "--program-b", second, *line)
    assert outcome.code == 0, outcome.text
    with Store.open(work / "r.db") as store:
        runs = store.runs(store.studies()[0].id)
    assert all(run.record.valid for run in runs)
    ran = {(run.record.mpi_name, *run.record.command[-2:]) for run in runs}
    assert ran == {("openmpi", str(first), "x"), ("mpich", str(second), "x")}
