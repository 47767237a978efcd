"""A search under several MPI libraries, as the command line and Python make it."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import autotune
from autotune.measurement.events import Event, TrialEnded
from autotune.store import Store
from autotune.study.search_study import SearchInterrupted
from autotune.study.study_request import SearchRequest
from autotune.targets.request import TargetRequest
from runner.mpi.discover import libraries
from tests.cli.conftest import MPI_SHELL, Cli
from tests.mpis import built, library_named
from tests.refusals import refused

pytestmark = pytest.mark.mpi
PROGRAM = """
import os
from mpi4py import MPI

mpich = MPI.Get_library_version().startswith("MPICH")
tuned = os.environ.get("MPIR_CVAR_BCAST_INTRA_ALGORITHM") == "binomial"
took = 1.0 if not mpich else 0.5 if tuned else 0.7
ranks = MPI.COMM_WORLD.allreduce(1)
MPI.COMM_WORLD.Bcast(bytearray(8))
if MPI.COMM_WORLD.rank == 0:
    print(f"took {took + os.getpid() % 7 / 10000:.4f} s of {ranks}")
"""
"""The figure depends on the library that the ranks have loaded and on one of its variables."""
VERSION = r"""
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    static char words[MPI_MAX_LIBRARY_VERSION_STRING];
    int rank, size;
    MPI_Get_library_version(words, &size);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0)
        printf("%d ranks\n%.100s\n", size, words);
    return MPI_Finalize();
}
"""
FIGURE = ("--metric", "took ([0-9.]+) s", "--verify", "of 2")


@pytest.fixture
def both(work: Path) -> list[str]:
    """Two families of libraries, as ``--mpi`` names them; the program is in the directory."""
    (work / "program.py").write_text(PROGRAM)
    return [library_named(name).launcher for name in ("openmpi-5", "mpich")]


def named(libraries: list[str]) -> list[str]:
    return [word for name in libraries for word in ("--mpi", name)]


def _two_open_mpi() -> list[str]:
    return named([library_named(name).launcher for name in ("openmpi-5", "openmpi-4.1")])


def program(work: Path) -> list[str]:
    return ["--", sys.executable, str(work / "program.py")]


def document(place: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(place.read_text())
    return found


def wrong(cli: Cli, *words: str | Path) -> str:
    outcome = cli("search", "-n", "2", "--store", "r.db", *words)
    assert outcome.code == 2, outcome.text
    assert not Path("r.db").exists() or not _runs(Path("r.db")), "nothing was run"
    return " ".join(outcome.err.split())


def _runs(place: Path) -> int:
    with Store.open(place) as store:
        return sum(len(store.runs(study.id)) for study in store.studies())


@pytest.mark.slow
@pytest.mark.usefixtures("quiet")
def test_the_library_is_proven_like_any_other_parameter(
    cli: Cli, work: Path, both: list[str]
) -> None:
    mpich = library_named("mpich")
    level = f"mpich-{mpich.version}"
    words = [
        "search", *named(both), "-n", "2", *FIGURE, "--trials", "12", "--store", "r.db", "--json",
        "r.json", *program(work),
    ]  # fmt: skip
    done = cli(*words)
    assert done.code == 0, done.text
    data = document(work / "r.json")
    assert data["recommended"]["setting"]["mpi"] == level
    assert data["gain"] > 0.4
    assert data["mpi"]["name"] == "openmpi", "the first library is that of the default"
    assert [row["setting"] for row in data["libraries"]] == [None, level]
    assert all(row["launches"] > 5 for row in data["libraries"])
    switch = data["switch"]
    assert switch["after"]["launcher"] == mpich.launcher
    assert "MPI4PY_LIBMPI" in switch["variables"]
    assert f"{mpich.family} {mpich.version}" in done.out
    assert f" {mpich.launcher}. " in " ".join(done.out.split())
    # Only what is made to be copied is longer than a line.
    long = [words for words in done.out.splitlines() if len(words) > 80]
    assert all("mpirun" in words or "autotune " in words for words in long), long

    # The line is complete: a shell without autotune's variables starts the same.
    line = shlex.split(data["mpirun"])
    line[0] = shutil.which(line[0]) or line[0]
    plain = {"PATH": "/usr/bin:/bin"}
    started = subprocess.run(line, capture_output=True, text=True, check=True, env=plain)
    assert "of 2" in started.stdout
    assert float(started.stdout.split()[1]) < 0.8

    with Store.open(work / "r.db") as store:
        runs = store.runs(store.find_study(data["study"]).id)
    launchers = {run.record.command[0] for run in runs if "mpi=" in run.setting_key}
    assert launchers == {mpich.launcher}
    assert {run.record.mpi_name for run in runs if run.setting_key == "default"} == {"openmpi"}

    study, here = data["study"], ("--store", "r.db")
    runs_before = _runs(work / "r.db")
    assert cli(*words).code == 0
    assert _runs(work / "r.db") == runs_before
    assert document(work / "r.json")["switch"] == switch
    shown = cli("show", study, *here)
    assert f"(default) and {level}" in " ".join(shown.out.split())
    assert f" {mpich.launcher}. " in " ".join(shown.out.split())
    for command in (["status"], ["studies"], ["report", study, "-o", "r.html"]):
        outcome = cli(*command, *here)
        assert outcome.code == 0, outcome.text
    assert f"{mpich.launcher}." in (work / "r.html").read_text()

    unfit = cli("publish", "--from", f"study:{study}", *here)
    assert unfit.code == 2
    assert "[publish.other_library]" in unfit.err
    assert level in unfit.err
    given = ("--mpi", mpich.launcher)
    if len(data["recommended"]["setting"]) > 1:
        published = cli("publish", "--from", f"study:{study}", *given, "--dry-run", *here)
        assert published.code == 0, published.text
        assert f"openmpi {data['mpi']['version']}" in published.out
    target = ("-n", "2", *FIGURE[:2], *here)
    other = cli("run", "-s", f"study:{study}", "--mpi", both[0], *target, *program(work))
    assert other.code == 2
    assert "[setting.other_library]" in other.err
    own = cli("run", "-s", f"study:{study}", *given, "--no-guard", *target, *program(work))
    assert own.code == 0, own.text


EITHER = """#!/bin/sh
test -n "$OMPI_COMM_WORLD_RANK" && build=openmpi-5 || build=mpich
exec {work}/$build/program 'echo took 1.0 s'
"""


def test_an_interrupted_search_proposes_the_same_next(work: Path, both: list[str]) -> None:
    """Stopped after two trials and continued, as in one go."""
    for name in ("openmpi-5", "mpich"):
        mpi = library_named(name)  # First: a directory of this name would be meant.
        (work / name).mkdir()
        built(mpi, work / name, MPI_SHELL)
    either = work / "either"
    either.write_text(EITHER.format(work=work))
    either.chmod(0o755)

    def search(store: str, stop_after: int) -> list[str]:
        def watch(event: Event) -> None:
            if isinstance(event, TrialEnded) and event.number + 1 == stop_after:
                raise KeyboardInterrupt

        with pytest.raises(SearchInterrupted) as stopped:
            autotune.tune(
                [str(either)], mpi=both, ranks=1, metric=FIGURE[1], strategy="random",
                trials=5, seed=1, guard=False, store=work / store, watch=watch,
            )  # fmt: skip
        return list(autotune.Study(stopped.value.result.study, work / store).trials()["setting"])

    whole = search("whole.db", 4)
    assert search("parts.db", 2) == whole[:2]
    assert search("parts.db", 4) == whole
    assert whole[0].startswith("mpi=mpich")
    assert len(set(whole)) == 4


def test_what_cannot_be_searched_is_refused(cli: Cli, work: Path, both: list[str]) -> None:
    two = named(both)
    line = program(work)
    assert "[mpi.same]" in wrong(cli, *two, "--mpi", both[0], *line)
    options = ["--", "mpirun", "-wdir", "/tmp", *line[1:]]
    assert "[launcher.library_options]" in wrong(cli, *two, *options)
    assert "[space.for_no_library]" in wrong(cli, *_two_open_mpi(), "--space", "mpich", *line)
    assert "[mpi.unknown]" in wrong(cli, *two, "--mpi", "nosuch", *line)
    outcome = cli("noise", *two, "-n", "2", *line)
    assert outcome.code == 2
    assert "[usage.several_libraries]" in outcome.err
    with refused(autotune.UsageError, "usage.argument"):
        autotune.tune(line[1:], mpi=[], ranks=2)


def test_a_program_of_another_interface_is_refused(cli: Cli, work: Path, both: list[str]) -> None:
    place = built(library_named("mpich"), work)
    text = wrong(cli, *named(both[::-1]), "--", place)
    assert "[program.other_abi]" in text
    assert "libmpi" in text
    assert "mpi4py" in text


def test_a_binary_loads_the_library_of_each_setting(work: Path) -> None:
    """A program built for the ABI of MPICH, under two versions of MPICH."""
    other = library_named("mpich")
    others = [one for one in libraries() if one.family == "mpich" and one.version != other.version]
    if not others:
        pytest.skip("one version of MPICH only")
    first = others[0]
    place = built(other, work, VERSION)
    study = autotune.tune(
        [str(place)], mpi=[first.launcher, other.launcher], ranks=2, verify="2 ranks", trials=1,
        runs=32, min_gain=0.4, guard=False, store=work / "r.db", watch=lambda event: None,
    )  # fmt: skip
    seen = study.runs(output=True)
    ran = {
        (setting, text.split("Version:")[1].split()[0])
        for setting, text in zip(seen["setting"], seen["stdout_tail"], strict=True)
        if isinstance(text, str) and "Version:" in text
    }
    assert ran == {("default", first.version), (f"mpi=mpich-{other.version}", other.version)}


def test_the_request_of_a_search_names_all_libraries() -> None:
    asked = SearchRequest(target=TargetRequest(app="micro", mpi="one"), libraries=("two", "three"))
    again = SearchRequest.from_json(asked.to_json(), "a test")
    assert again == asked
    words = asked.words()
    assert [words[i + 1] for i, word in enumerate(words) if word == "--mpi"] == [
        "one", "two", "three",
    ]  # fmt: skip
