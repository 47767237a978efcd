"""MPI jobs of other programs: whose they are, which processes are ranks, where these may run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.cpus import available_cpus
from runner.jobs import JobRank, MpiJob, find_jobs, shared_cpus
from runner.mpi.library import Library
from runner.supervise.process_tree import environ, parent_of
from tests.mpis import NAMES, library_named
from tests.other_jobs import other_jobs
from tests.runner.supervising import eventually

pytestmark = pytest.mark.mpi
NOBODY = 65534


@pytest.fixture(scope="module", params=NAMES)
def job(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Library, int]]:
    """A library, and the launcher of a job of two ranks, each below a shell and beside a helper."""
    library = library_named(request.param)
    place = tmp_path_factory.mktemp("job") / "place"
    # The shell has the rank's variables, too, and so has what else it starts.
    wrapper = ("sh", "-c", '"$@" & r=$!; sleep 60 & h=$!; wait $r; kill $h', "sh")
    line = (library.launcher, "-n", "2", "PROGRAM")
    if library.family == "openmpi" and len(available_cpus()) < 2:
        pytest.skip("needs two CPUs")
    with other_jobs(library, place, [line], wrapper) as [pid]:
        yield library, pid


def found(pid: int) -> list[MpiJob]:
    return [one for one in find_jobs() if one.pid == pid]


def test_a_job_is_found_with_its_ranks(job: tuple[Library, int]) -> None:
    library, pid = job
    [seen] = found(pid)
    assert len(seen.ranks) == 2
    for rank in seen.ranks:
        command = Path(f"/proc/{rank.pid}/cmdline").read_bytes()
        assert command.startswith(sys.executable.encode()), "neither the shell nor its helper"
        assert rank.cpus == os.sched_getaffinity(rank.pid)
    assert seen.library is not None
    assert seen.library.family == library.family
    # The options of the launcher depend on the generation.
    assert (seen.library.version_tuple >= (5,)) == (library.version_tuple >= (5,)) or (
        library.family == "mpich"
    )
    assert seen.readable
    assert seen.user == Path(f"/proc/{pid}").owner()
    assert "-n 2" in seen.command


def test_a_job_of_this_process_is_none_of_others(job: tuple[Library, int]) -> None:
    _, pid = job
    [rank, _] = found(pid)[0].ranks
    # As that rank would see it, the shell above it, and what started the launcher.
    for root in (rank.pid, parent_of(rank.pid), parent_of(pid)):
        assert pid not in [one.pid for one in find_jobs(root)]


def as_nobody(work: Callable[[], Any]) -> Any:
    """The result of ``work`` in a process of the user nobody."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(write, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text)


def test_a_job_of_another_user_is_told_as_not_readable(job: tuple[Library, int]) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root, to give it up")
    _, pid = job

    def look() -> list[Any]:
        return [
            (one.readable, len(one.ranks), one.user, sorted(one.cpus or ())) for one in found(pid)
        ]

    assert as_nobody(look) == [[False, 2, "root", sorted(found(pid)[0].cpus or ())]]


def test_ranks_without_a_launcher_are_those_that_loaded_mpi(library: Library) -> None:
    """As under srun, where the shell of an interactive job has the variable of a rank, too."""
    text = "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; input()"

    def rank(number: str, program: str) -> subprocess.Popen[bytes]:
        env = {**os.environ, "PMI_RANK": number}
        words = [sys.executable, "-c", program]
        return subprocess.Popen(words, stdin=subprocess.PIPE, env=env)

    loaded, plain = rank("0", text), rank("1", "input()")
    try:

        def ranks() -> list[int]:
            return [rank.pid for one in find_jobs(root=0) for rank in one.ranks]

        assert eventually(lambda: loaded.pid in ranks())
        assert b"PMI_RANK" in environ(plain.pid)
        assert plain.pid not in ranks()
        assert loaded.pid not in [r.pid for one in find_jobs() for r in one.ranks], "it is our own"
    finally:
        loaded.communicate(b"\n")
        plain.communicate(b"\n")


def test_jobs_share_the_cpus_on_which_both_may_run() -> None:
    one, other, unknown = (
        MpiJob(pid, "", "", tuple(JobRank(0, cpus) for cpus in ranks), None, True)
        for pid, ranks in enumerate([({0}, {1}), ({1, 2}, None), (None,)])
    )
    assert shared_cpus([one, other, unknown]) == [(one, other, {1})]
    assert unknown.cpus is None
    assert not unknown.bound
