"""What is said of other MPI jobs, and what to do, by where they run."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from autotune.targets import jobs
from runner.cpus import available_cpus, core_sets, cpu_list
from runner.jobs import JobRank, MpiJob
from runner.mpi.library import Library

EVERY = available_cpus()
OPEN_MPI, MPICH = Library("openmpi", "5.0", "", "mpirun"), Library("mpich", "4.0", "", "mpirun")
pytestmark = pytest.mark.skipif(len(EVERY) < 2, reason="needs two CPUs")


def job(pid: int, cpus: frozenset[int] | None, library: Library | None = OPEN_MPI) -> MpiJob:
    return MpiJob(pid, f"mpirun -n 1 ./p{pid}", "ann", (JobRank(pid, cpus),), library, True)


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> list[MpiJob]:
    """The jobs of this node, to be filled: real ones are on the cores that their launchers take."""
    found: list[MpiJob] = []
    monkeypatch.setattr(jobs, "find_jobs", lambda: tuple(found))
    return found


def test_free_cores_are_offered(there: list[MpiJob]) -> None:
    own, theirs = core_sets(2, EVERY)
    there.append(job(7, theirs))
    free = cpu_list(EVERY - theirs)
    [who, what] = jobs.shared_notes(None, 1)
    assert (who.code, who.data) == ("jobs.shared_cpus", {"pids": [7]})
    assert jobs.job_words(there[0]) in who.words
    assert what.data == {"cpus": free}
    assert jobs.shared_notes(own, 1) == []
    # More ranks than free cores: the cores are divided.
    assert jobs.shared_notes(None, len(EVERY))[1].code == "jobs.own_cores"


@pytest.mark.parametrize("library", [OPEN_MPI, MPICH, None])
def test_a_job_on_all_cores_gets_a_line_of_its_launcher(
    there: list[MpiJob], library: Library | None
) -> None:
    own, theirs = core_sets(2, EVERY)
    there.append(job(7, EVERY, library))
    who, shares = jobs.shared_notes(None, 1)
    _, line, here, _ = shares.words.splitlines()
    assert jobs.job_words(there[0]) in who.words
    listed = cpu_list(theirs)
    if library is None:
        assert "taskset" not in line
        assert f" {listed}," in line
    else:
        assert line.startswith(f"  pid 7:  taskset -c {listed} mpirun -n 1 ")
        assert ("hwloc_default_cpu_list" in line) == (library is OPEN_MPI)
    assert here.endswith(f"--cpus {cpu_list(own)}")


def test_what_cannot_be_divided_is_told(there: list[MpiJob]) -> None:
    there += [job(pid, EVERY) for pid in range(1, len(EVERY) + 1)]
    assert [note.code for note in jobs.shared_notes(None, 1)[1:]] == ["jobs.too_many"]
    # The CPUs of several nodes, or of a testbed, are not chosen here.
    assert len(jobs.shared_notes(None, 1, one_node=False)) == 1


def test_a_job_whose_cpus_are_not_readable_counts(there: list[MpiJob]) -> None:
    there.append(job(7, None))
    who = jobs.shared_notes(frozenset({min(EVERY)}), 1)[0]
    assert who.data == {"pids": [7]}


def test_a_job_is_named_with_where_it_runs(
    monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.setattr("runner.jobs.available_cpus", lambda: frozenset(range(4)))
    places = (frozenset({0, 1}), frozenset(range(4)), None)
    assert [jobs.job_words(job(7, cpus)) for cpus in places] == snapshot


def test_few_of_many_jobs_are_named(there: list[MpiJob]) -> None:
    there += [job(pid, EVERY) for pid in range(1, jobs.MOST + 3)]
    note = jobs.shared_notes(None, 1, one_node=False)[0]
    assert note.words.count("user ann") == jobs.MOST  # data
    assert "; and 2 more" in jobs.jobs_words(there)
