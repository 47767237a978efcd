"""Ranks and OpenMP threads: real hybrid programs, compiled here, under the real launcher."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from autotune.store import Store
from tests.cli.conftest import Cli
from tests.mpis import NAMES, built, library_named

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs"),
]
SOURCE = (Path(__file__).parents[1] / "hybrid.c").read_text()
SPACE = ("--space", "hybrid", "-n", "2", "--no-guard", "--store", "r.db", "--verify", "sum right")


def hybrid(place: Path, name: str = "openmpi-5") -> tuple[str, Path]:
    """The launcher of a library and the program compiled for it."""
    library = library_named(name)
    return library.launcher, built(library, place, SOURCE, "-fopenmp", "-O1")


def run(cli: Cli, work: Path, setting: str, *program: str | Path, mpi: str) -> dict[str, Any]:
    words = ("run", "--mpi", mpi, *SPACE, "--setting", setting, "--json", "run.json")
    outcome = cli(*words, "--", *program)
    found: dict[str, Any] = json.loads((work / "run.json").read_text())["run"]
    found["text"] = outcome.text
    return found


@pytest.mark.parametrize(
    "name", [n if n == "openmpi-5" else pytest.param(n, marks=pytest.mark.slow) for n in NAMES]
)
def test_each_layout_solves_the_same_problem(cli: Cli, work: Path, name: str) -> None:
    mpi, program = hybrid(work, name)
    for setting, layout in [
        ("default", "2 ranks with 1 threads"),  # data
        ("threads=2", "1 ranks with 2 threads"),  # data
        ("processes=1", "1 ranks with 1 threads"),  # data
    ]:
        found = run(cli, work, setting, program, mpi=mpi)
        assert (found["state"], found["verified"]) == ("ok", True), found["text"]
        assert layout in found["stdout_tail"]
        threads = found["read_back"].get("threads")
        assert (threads or {}).get("state") == ("in force" if "threads" in setting else None)


@pytest.mark.parametrize("binding", ["close", "spread"])
def test_bound_threads_are_seen_on_cores_of_their_own(cli: Cli, work: Path, binding: str) -> None:
    mpi, program = hybrid(work)
    setting = f"threads=2,OMP_PROC_BIND={binding},OMP_PLACES=cores"
    found = run(cli, work, setting, program, mpi=mpi)
    assert found["state"] == "ok", found["text"]
    assert found["read_back"]["threads"]["state"] == "in force"
    assert found["read_back"]["bind_to"]["state"] == "in force"
    assert "autotune-thread" not in found["stderr_tail"]


def test_a_program_that_chooses_its_threads_itself_is_refused(cli: Cli, work: Path) -> None:
    mpi, program = hybrid(work)
    found = run(cli, work, "threads=2", program, "1000", "3", mpi=mpi)
    assert (found["state"], found["reason"]) == ("not_read_back", "threads=2 became 3")


def test_threads_of_a_program_without_openmp_are_not_observable(cli: Cli, work: Path) -> None:
    library = library_named("openmpi-5")
    program = built(library, work)
    found = run(cli, work, "threads=2", program, mpi=library.launcher)
    assert found["read_back"]["threads"]["state"] == "not observable"  # data
    assert found["read_back"]["threads"]["source"] in " ".join(found["text"].split())


def test_the_number_of_threads_of_the_environment_is_replaced_and_this_is_said(
    cli: Cli, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mpi, program = hybrid(work)
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    found = run(cli, work, "default", program, mpi=mpi)
    assert "2 ranks with 1 threads" in found["stdout_tail"]  # data
    assert "OMP_NUM_THREADS=7" in found["text"]


@pytest.mark.slow
def test_a_search_over_ranks_and_threads_tells_its_layouts(cli: Cli, work: Path) -> None:
    mpi, program = hybrid(work)
    words = (
        "search", "--mpi", mpi, *SPACE, "--strategy", "exhaustive", "-O", "order=grid",
        "--trials", "3", "--pareto", "--metric", "time ([0-9.]+) s", "--json", "result.json",
        "--", program,
    )  # fmt: skip
    outcome = cli(*words)
    assert outcome.code == 0, outcome.text
    rows = json.loads((work / "result.json").read_text())["layouts"]
    assert {(row["ranks"], row["threads"]) for row in rows} == {(2, 1), (1, 2), (1, 1)}
    assert all(row["core_s"] == pytest.approx(row["time_s"] * row["cores"]) for row in rows)
    assert any(row["pareto"] for row in rows)
    assert "core-s" in outcome.out
    with Store.open("r.db") as store:
        before = len(store.runs(1))
    assert cli(*words).code == 0
    with Store.open("r.db") as store:
        assert len(store.runs(1)) == before
    assert json.loads((work / "result.json").read_text())["layouts"] == rows
