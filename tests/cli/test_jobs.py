"""MPI jobs beside each other on one node: what is said of them, and how they get own cores."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from autotune.targets import jobs
from runner import lock
from runner.cpus import available_cpus, cpu_list, cpus_of
from runner.jobs import find_jobs
from runner.lock import place as lock_place
from runner.mpi.library import Library
from tests.cli.conftest import Cli
from tests.mpis import NAMES, library_named
from tests.other_jobs import other_jobs

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.skipif(len(available_cpus()) < 2, reason="needs two CPUs"),
]


@pytest.fixture(scope="module")
def neighbours(open_mpi: Library, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[int]]:
    """The launchers of two jobs of one rank each, started as usual: both are on the first core."""
    line = (open_mpi.launcher, "-n", "1", "PROGRAM")
    with other_jobs(open_mpi, tmp_path_factory.mktemp("jobs"), [line, line]) as pids:
        yield pids


@pytest.fixture
def measuring(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not below the lock of the tests, where nothing is said; and every job is named."""
    monkeypatch.setattr(jobs, "MOST", 1000)
    monkeypatch.setenv(lock_place.FILE_VARIABLE, str(work / "machine.lock"))
    monkeypatch.delenv(lock.VARIABLE, raising=False)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if "4.1" in n else n for n in NAMES]
)
def test_the_printed_lines_keep_jobs_apart(cli: Cli, work: Path, name: str) -> None:
    library = library_named(name)
    said = json.loads(cli("cluster", "split", "2", "--mpi", library.launcher, "--json", "-").out)
    printed = [shlex.split(job["command"]) for job in said["jobs"]]
    plain = [[library.launcher, "-n", "1", "PROGRAM"]] * 2
    with other_jobs(library, work / "jobs", [*printed, *plain]) as pids:
        seen = {job.pid: job.cpus or set() for job in find_jobs()}
    apart, usual = [seen[pid] for pid in pids[:2]], [seen[pid] for pid in pids[2:]]
    assert apart == [cpus_of(job["cpus"]) for job in said["jobs"]]
    assert not apart[0] & apart[1]
    assert usual[0] & usual[1]


def test_more_jobs_than_cores_are_refused(cli: Cli, library: object) -> None:
    outcome = cli("cluster", "split", str(len(available_cpus()) + 1))
    assert outcome.code == 2
    assert "[jobs.too_many]" in outcome.err


def test_doctor_names_jobs_and_the_cpus_that_they_share(cli: Cli, neighbours: list[int]) -> None:
    words = " ".join(cli("doctor", "--quick").out.split())
    found = json.loads(cli("doctor", "--quick", "--json", "-").out)["findings"]
    said = {finding["what"]: finding for finding in found}
    named = {job["pid"]: job for job in said["MPI jobs"]["data"]["jobs"]}
    first = cpu_list(cpus_below(neighbours[0]))
    for pid in neighbours:
        assert [rank["cpus"] for rank in named[pid]["ranks"]] == [first]
        assert named[pid]["bound"]
        assert f"(pid {pid}, user " in words
    pairs = {frozenset(p["pids"]): p["cpus"] for p in said["shared CPUs"]["data"]["shared"]}
    assert pairs[frozenset(neighbours)] == first
    assert said["shared CPUs"]["code"] == "jobs.shared_cpus"
    assert "autotune cluster split" in said["shared CPUs"]["advice"]  # data


def cpus_below(launcher: int) -> frozenset[int]:
    [job] = [one for one in find_jobs() if one.pid == launcher]
    return job.cpus or frozenset()


OPTIONS = ("-n", "1", "--no-guard", "--store", "r.db")
SEARCH = ("search", "--space", "null", "--strategy", "random", "--trials", "1", "--min-gain", "40")


@pytest.mark.usefixtures("measuring")
@pytest.mark.parametrize("command", [("run",), SEARCH])
def test_a_measurement_names_each_job_on_its_cpus_once(
    cli: Cli, neighbours: list[int], mpi_shell: str, command: tuple[str, ...]
) -> None:
    outcome = cli(*command, *OPTIONS, "--", mpi_shell, "true")
    assert outcome.code == 0, outcome.text
    assert [outcome.err.count(f"(pid {pid}, user ") for pid in neighbours] == [1, 1]


@pytest.mark.usefixtures("measuring")
def test_on_cpus_of_its_own_a_measurement_names_no_job(
    cli: Cli, neighbours: list[int], mpi_shell: str, work: Path
) -> None:
    place = work / "configs" / "clusters"
    place.mkdir(parents=True)
    free = cpu_list(available_cpus() - cpus_below(neighbours[0]))
    (place / "own.toml").write_text(f'name = "own"\ncpus = "{free}"\n')
    outcome = cli("run", "--cluster", "own", *OPTIONS, "--", mpi_shell, "true")
    assert outcome.code == 0, outcome.text
    assert not [pid for pid in neighbours if f"pid {pid}" in outcome.err]


@pytest.mark.slow
def test_a_definition_for_some_cpus_is_written(cli: Cli, mpi_shell: str) -> None:
    last = str(max(available_cpus()))
    assert cli("cluster", "init", "last", "--cpus", last).code == 0
    said = " ".join(cli("cluster", "show", "last").out.split())
    assert f"CPUs {last} " in said
    assert "1 core" in said
    done = cli("run", "--cluster", "last", *OPTIONS, "--json", "r.json", "--", mpi_shell, "true")
    assert f"CPUs: {last}\n" in done.out
    assert json.loads(Path("r.json").read_text())["run"]["bindings"] == [last]


@pytest.mark.parametrize("wrong", ["3-1", "4095"])
def test_cpus_that_make_no_definition(cli: Cli, open_mpi: Library, work: Path, wrong: str) -> None:
    outcome = cli("cluster", "init", "other", "--cpus", wrong)
    assert outcome.code == (2 if wrong == "3-1" else 1)
    assert wrong in outcome.err
    assert not list(work.rglob("*.toml"))


def test_below_the_lock_of_others_nothing_is_said(
    cli: Cli, neighbours: list[int], mpi_shell: str
) -> None:
    assert "MPI job" not in cli("run", *OPTIONS, "--", mpi_shell, "true").err
