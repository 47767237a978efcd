"""Several ranks under real mpirun: data under any schedule, who makes progress, kills, programs."""

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
APP = "runner.programs.apps.daps"
SCHEDULES, SLEEPER = "tests.intranode.daps.schedules", "tests.intranode.daps.sleeper"
MODES = "none,thread,ghosts:1,dynamic"
DEALT = "product, dealt and slept"
PROGRAMS = {
    "capability": "--size 800000 --strided-size 3000 --sleep-ms 5",
    "product": "--width 24 --edge 7 --dgemms 9,5 --messages 33,200",
    DEALT: "--width 24 --edge 7 --dgemms 9,5 --messages 3,40 --tasks dealt --compute sleep",
    "stencil": "--cells 301 --steps 9",
}


def words(name: str, nodes: int) -> tuple[str, ...]:
    program = ["--program", name.partition(",")[0], *PROGRAMS[name].split()]
    rounds = str(3 - nodes)
    return (APP, *program, "--modes", MODES, "--rounds", rounds, "--nodes", str(nodes))


CASES = [(name, nodes) for name in PROGRAMS for nodes in (1, 2)]
FEW = [case for case in CASES if case not in (("product", 1), (DEALT, 2), ("stencil", 1))]
TOGETHER = {
    3: [(SCHEDULES, "1", "5", "3"), (SCHEDULES, "3", "8", "2"), (SLEEPER, "1")],
    4: [(SCHEDULES, "2", "0", "3"), (SLEEPER, "2"), *(words(*case) for case in FEW)],
}


@pytest.mark.parametrize(
    ("ranks", "nodes", "first", "seeds"),
    [
        # The configurations of these seeds have every way of progress.
        *[(3, 1, 5, 3), (4, 2, 0, 3), (3, 3, 8, 2)],
        *(
            pytest.param(ranks, nodes, 0, seeds, marks=pytest.mark.slow)
            for ranks, nodes, seeds in (
                *[(1, 1, 5), (2, 1, 8), (3, 1, 8), (2, 2, 8), (4, 2, 8), (6, 2, 5)],
                *[(3, 3, 8), (6, 3, 5), (9, 3, 3)],
            )
        ),
    ],
)
def test_data_are_right_under_any_schedule(
    shared: Start, ranks: int, nodes: int, first: int, seeds: int
) -> None:
    done = shared(ranks, SCHEDULES, *(str(number) for number in (nodes, first, seeds)))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_data_are_right_under_mpich() -> None:
    done = python_ranks(library_named("mpich"), 2, ("-m", SCHEDULES, "2", "0", "4"))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("nodes", "ranks"), [(1, 3), (2, 4)])
def test_a_rank_that_computes_gets_progress_from_whom_the_mode_says(
    shared: Start, nodes: int, ranks: int
) -> None:
    done = shared(ranks, SLEEPER, str(nodes))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "how", ["barrier", pytest.param("message", marks=pytest.mark.slow), "window", "holder"]
)
def test_a_killed_rank_is_noticed_on_all_nodes(start: Start, how: str, tmp_path: Path) -> None:
    # Without recovery the launcher would kill the others first.
    words = ("-m", "tests.intranode.daps.killed", how, "0.1", str(tmp_path))
    start(4, *words, more=("--enable-recovery",))
    said = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert set(said) == {"0", "2", "3"}
    assert all(text.startswith("intranode.rank_lost: ") for text in said.values())
    assert "rank 1 (process " in said["0"]
    assert all("(process " not in said[rank] and "connection" in said[rank] for rank in "23")


@pytest.mark.parametrize("cases", [FEW, pytest.param(CASES, marks=pytest.mark.slow)])
def test_programs_verify_their_data_in_all_modes(
    shared: Start, cases: list[tuple[str, int]]
) -> None:
    for case in cases:
        check_program(*case, shared(4, *words(*case)))


def check_program(name: str, nodes: int, done: Finished) -> None:
    program, result = name.partition(",")[0], verified(done)
    assert [result[key] for key in ("app", "program", "ranks", "nodes", "assumed_nodes")] == [
        *("daps", program, 4, nodes, nodes)
    ]
    cells = {cell["mode"]: cell for cell in result["cells"]}
    assert ",".join(cells) == MODES
    assert all(len(cell["runs"]) == 3 - nodes and cell["seconds"] > 0 for cell in cells.values())
    assert cells["none"]["by_others"] == 0
    assert result["seconds"] == cells["dynamic"]["seconds"]
    assert result["seconds"] == pytest.approx(result["us"] / 1e6)
    assert ("DGEMM" in done.stdout) is ("sleep" in PROGRAMS[name].split())
    parts = {"capability": "put get accumulate send", "product": "stage1 stage2"}
    assert all(result[part] > 0 for part in parts.get(program, "communication").split())


REFUSED = [
    "--program none",
    "--modes none,fast",
    "--modes ghosts:2 --nodes 1",
    "--modes ghosts:1 --nodes 2",
    "--ghosts 1",
    "--thread-place dedicated",
    "--width 8",
    "--size 12",
    "--operations put,fly",
    "--program product --dgemms 1",
    "--program product --compute guess",
    "--nodes 3",
    "--poll-gap-us -1",
]


def test_what_cannot_be_is_refused(lines: Commands, snapshot: SnapshotAssertion) -> None:
    calls = [["tests.intranode.daps.refusals", nodes] for nodes in "12"]
    found = lines(2, [*calls, *([APP, *words.split()] for words in REFUSED)])
    assert [refusals_of(done) for done in found[:2]] == snapshot(name="calls")
    ended = zip(REFUSED, found[2:], strict=True)
    assert {words: refusal_of(done, "daps") for words, done in ended} == snapshot(name="options")


def test_a_thread_of_its_own_needs_a_core(start: Start) -> None:
    """All cores are used up by ranks; with cores enough it runs."""
    import os

    ranks = len(os.sched_getaffinity(0)) // 2 + 1
    words = "--program stencil --cells 64 --rounds 1 --modes thread:dedicated --steps"
    done = start(ranks, "-m", APP, *words.split(), "2")
    assert done.returncode == 2
    assert "--thread-place dedicated" in done.stderr  # data
    assert f" {ranks} ranks " in done.stderr
    if ranks > 1:
        done = start(ranks - 1, "-m", APP, *words.split(), "2")
        assert done.returncode == 0, done.stderr


BROKEN = """
from runner.programs.apps.common.mpi import run
from runner.programs.apps.daps.application import main
from runner.runtimes.intranode.daps.daps import Daps
from runner.runtimes.intranode.daps.window import Window

def spoilt(kind, name, at):
    plain, calls = getattr(kind, name), []
    def wrong(self, *given):
        calls.append(1)
        if len(calls) == 2:
            given[at][...] += 1.0
        return plain(self, *given)
    setattr(kind, name, wrong)
    return lambda: setattr(kind, name, plain)

def each(comm):
    for change, words in (
        ((Window, "accumulate", 1), "capability --size 80 --strided-size 80 --sleep-ms 0"),
        ((Window, "accumulate", 1), "product --width 8 --edge 3"),
        ((Daps, "isend", 0), "stencil --cells 32"),
    ):
        mend = spoilt(*change)
        code = main(comm, f"--program {words} --rounds 1".split())
        mend()
        assert code == 1, words
    return 1

run("daps", "single", each)
"""


def test_wrong_data_are_noticed(start: Start) -> None:
    """The second call adds or sends something else."""
    done = start(2, "-c", BROKEN)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr, done.stderr
    assert done.stdout.count('"verified": false') == 3
