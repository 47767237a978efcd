"""Ranks under real mpirun: all algorithms against plain MPI, kills, refusals, the programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.intranode.programs import (
    Commands,
    Finished,
    Start,
    refusal_of,
    refusals_of,
    verified,
)
from tests.mpis import library_named
from tests.started import python_ranks

pytestmark = pytest.mark.mpi
APP = "runner.programs.apps.mcoll"
CHECKS = "tests.intranode.mcoll.checks"
LOOPS = (
    ("allgather", "--sizes 8,3000 --forms auto,bruck,ring,rd,library", 10),
    ("allgather", "--sizes 1 --forms bruck --compare-objects 1,2,0 --compare-radix 2,0", 6),
    ("allreduce", "--sizes 0,8,4000 --forms bruck,ring,library --same-bits off", 9),
    ("scatter", "--sizes 5 --forms tree,library --compare-objects 1,2 --copy publish", 3),
)


def loop(operation: str, more: str) -> tuple[str, ...]:
    common = "--nodes 2 --rounds 2 --times 6 --operation"
    return (APP, *common.split(), operation, *more.split())


TOGETHER = {
    4: [(CHECKS, "1,2,4", "4"), *(loop(operation, more) for operation, more, _ in LOOPS)],
}


@pytest.mark.parametrize(
    ("ranks", "nodes"),
    [
        (4, "1,2,4"),
        *(pytest.param(*more, marks=pytest.mark.slow) for more in [(1, "1"), (6, "turns:3")]),
    ],
)
def test_all_algorithms_agree_with_plain_mpi(shared: Start, ranks: int, nodes: str) -> None:
    check(shared(ranks, CHECKS, nodes, str(ranks)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ranks", "nodes"),
    [
        *[(2, "1,2"), (3, "1,3"), (4, "1,2,4"), (5, "5"), (6, "2,3"), (6, "turns:3")],
        *[(8, "2"), (8, "4"), (8, "turns:4"), (9, "3"), (12, "3"), (15, "5")],
    ],
)
def test_all_algorithms_agree_with_any_radix(start: Start, ranks: int, nodes: str) -> None:
    # Of more ranks than that share two cores a job takes its whole time limit.
    every = ["all"] if ranks < 10 else []
    check(start(ranks, "-m", CHECKS, nodes, str(ranks), *every))


def check(done: Finished) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split("checks done: ")[1]) > 20


@pytest.mark.slow
def test_all_algorithms_agree_under_mpich() -> None:
    """Handles and statuses have other sizes there."""
    check(python_ranks(library_named("mpich"), 2, ("-m", CHECKS, "1,2", "7")))


def test_a_killed_rank_is_noticed(start: Start, tmp_path: Path) -> None:
    # Without recovery the launcher would kill the others first.
    start(4, "-m", "tests.intranode.mcoll.killed", str(tmp_path), more=("--enable-recovery",))
    said = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert set(said) == {"0", "2", "3"}
    # A rank that has noticed it ends, which others may notice, too.
    assert all(s.startswith("intranode.rank_lost: ") for s in said.values())
    assert all(" rank 1 (process " in s for s in said.values())


def test_a_loop_verifies_its_data_and_counts(shared: Start) -> None:
    for operation, more, cells in LOOPS:
        result = verified(shared(4, *loop(operation, more)))
        assert (result["app"], result["operation"], result["nodes"]) == ("mcoll", operation, 2)
        assert len(result["cells"]) == cells
        for cell in result["cells"]:
            assert len(cell["runs_us"]) == 2
            assert (cell["messages"] is None) == (cell["form"] == "library")


def test_refused_calls_and_where_the_form_comes_from(
    lines: Commands, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    """The sizes at which ``auto`` changes it; the published settings."""
    path = tmp_path / "mcoll.json"
    path.write_text('{"schema": "mcoll/1", "settings": {"allgather": "ring"}}')
    common = [APP, "--nodes", "2", "--times", "2", "--rounds", "1"]
    switches = "--sizes 8,64,512 --allgather-switch 64 --allgather-mpi-from 512"
    calls = ["tests.intranode.mcoll.refusals"]
    refusals, auto, published = lines(
        2, [calls, [*common, *switches.split()], [*common, "--mcoll-config", str(path)]]
    )
    assert refusals_of(refusals) == snapshot
    forms = [cell["form"] for cell in verified(auto)["cells"]]
    assert forms == ["bruck", "ring", "library"]
    result = verified(published)
    assert result["configured"] == str(path)
    assert [cell["form"] for cell in result["cells"]] == ["ring"]


REFUSED = [
    "--operation none",
    "--forms tree",
    "--operation allreduce --sizes 12",
    "--nodes 2",
    "--nodes -1",
    "--nodes 3 --forms rd",
    "--objects 9",
    "--compare-objects 1,8",
    "--objects 1 --radix 3",
    "--waiting never",
    "--mcoll-config nowhere.json",
]


def test_a_wrong_command_is_one_message(lines: Commands, snapshot: SnapshotAssertion) -> None:
    *ended, helped = lines(3, [[APP, *words.split()] for words in [*REFUSED, "--help"]])
    found = zip(REFUSED, ended, strict=True)
    assert {words: refusal_of(done, "mcoll") for words, done in found} == snapshot
    assert helped.returncode == 0
    assert helped.stdout.count("usage:") == 1


def test_a_wrong_command_ends_the_launch_with_2(start: Start) -> None:
    assert "--forms tree" in refusal_of(start(2, "-m", APP, "--forms", "tree"), "mcoll")  # data
