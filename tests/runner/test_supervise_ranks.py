"""Which process is which rank and where it may run, seen from outside."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from runner.mpi.library import Library
from runner.supervise import ExecResult, Supervisor
from tests.runner.supervising import MARK, eventually, marked, request, script

# Starts argv[1] "ranks"; rank N is bound to CPU N modulo the CPUs there are, as a launcher would.
LAUNCHER = """
import os, subprocess, sys
cpus = sorted(os.sched_getaffinity(0))
for rank in range(int(sys.argv[1])):
    subprocess.Popen(sys.argv[2:], env={**os.environ, 'TEST_RANK': str(rank)},
                     preexec_fn=lambda: os.sched_setaffinity(0, {cpus[rank % len(cpus)]}))
for rank in range(int(sys.argv[1])):
    os.wait()
"""


def launch(started: int, *program: str, ranks: int) -> ExecResult:
    asked = script(LAUNCHER, rank_env=("TEST_RANK",), ranks=ranks)
    words = (*asked.argv, str(started), *program)
    with Supervisor() as supervisor:
        return supervisor.run(dataclasses.replace(asked, argv=words))


def test_all_ranks_with_their_cpus() -> None:
    result = launch(3, "sleep", "0.6", ranks=3)
    cpus = sorted(os.sched_getaffinity(0))
    assert result.ranks is not None
    assert [seen.rank for seen in result.ranks] == [0, 1, 2]
    assert [seen.cpus for seen in result.ranks] == [str(cpus[n % len(cpus)]) for n in range(3)]
    assert {Path(seen.exe).name for seen in result.ranks} <= {"sleep", "coreutils", "busybox"}


def test_wrapper_shell_is_not_the_rank() -> None:
    result = launch(1, "sh", "-c", "sleep 0.6; true", ranks=1)
    assert result.ranks is not None
    assert "sh" not in Path(result.ranks[0].exe).name.replace("sleep", "")


@pytest.mark.parametrize(("ranks", "expected"), [(1, 2), (3, 2)])
def test_other_than_expected_is_not_seen(ranks: int, expected: int) -> None:
    assert launch(ranks, "sleep", "0.5", ranks=expected).ranks is None


def test_too_short_is_seen_whole_or_not_at_all() -> None:
    """Whether a look meets such a program is chance; half an answer would be wrong."""
    seen = launch(2, "sleep", "0", ranks=2).ranks
    assert seen is None or [one.rank for one in seen] == [0, 1]


def test_rank_of_the_caller_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_RANK", "0")
    with Supervisor() as supervisor:
        assert (
            supervisor.run(request("sleep", "0.2", rank_env=("TEST_RANK",), ranks=1)).ranks is None
        )


def mpirun(library: Library, ranks: int, *program: str, **options: object) -> dict[str, object]:
    new = library.version_tuple >= (5,)
    over = ("--map-by", ":OVERSUBSCRIBE") if new else ("--oversubscribe",)
    words = (library.launcher, *over, "-n", str(ranks), *program)
    return {"argv": words, "rank_env": ("OMPI_COMM_WORLD_RANK",), "ranks": ranks, **options}


@pytest.fixture
def mpi_env(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")


@pytest.mark.mpi
@pytest.mark.usefixtures("mpi_env")
def test_four_oversubscribed_ranks_are_seen(open_mpi: Library) -> None:
    asked = mpirun(open_mpi, 4, "sleep", "1.5")
    with Supervisor() as supervisor:
        result = supervisor.run(request(*asked.pop("argv"), **asked))  # type: ignore[misc]
    assert result.exit_code == 0, result.stderr_tail
    assert result.ranks is not None
    assert [seen.rank for seen in result.ranks] == [0, 1, 2, 3]
    assert all(seen.cpus for seen in result.ranks)
    assert result.leftovers == ()


@pytest.mark.mpi
@pytest.mark.usefixtures("mpi_env")
@pytest.mark.parametrize("end", ["limit", "launcher killed"])
def test_no_rank_outlives_its_run(
    open_mpi: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """Ranks that ignore SIGTERM; ended by the time limit, or orphaned by a killed mpirun."""
    # Of this test alone: its other form may run in the next process at the same time.
    mark = f"ranks-{end}-{os.getpid()}"
    monkeypatch.setenv(MARK, mark)
    # One rank only, and when all have started: a later one would find the supervisor as parent.
    alone = '[ "$OMPI_COMM_WORLD_RANK" = 0 ] && sleep 0.5 && kill -9 $PPID; '
    kill = alone if end == "launcher killed" else ""
    text = f"trap '' TERM; {kill}while :; do sleep 0.2; done"
    limit = 1.5 if end == "limit" else 60.0
    asked = mpirun(open_mpi, 4, "sh", "-c", text, timeout_s=limit, grace_s=0.5, linger_s=0.1)
    with Supervisor() as supervisor:
        result = supervisor.run(request(*asked.pop("argv"), **asked))  # type: ignore[misc]
    mine = {os.getpid()}
    assert eventually(lambda: set(marked(mark)) <= mine, 1.0)
    assert result.timed_out == (end == "limit")
    if end == "launcher killed":
        assert result.signal == 9
        assert any(left.name == "sh" for left in result.leftovers)


def test_waiting_helper_can_fail() -> None:
    """eventually() must be able to say no, or the checks above say nothing."""
    assert not eventually(lambda: False, 0.05)
