"""Several ranks under real mpirun: data under any schedule, who makes progress, kills, programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.intranode.programs import Start, refused, silent, verified
from tests.mpis import library_named
from tests.started import python_ranks

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize(
    ("ranks", "nodes", "seeds"),
    [
        (1, 1, 5),
        (2, 1, 8),
        (3, 1, 8),
        (2, 2, 8),
        (4, 2, 8),
        (6, 2, 5),
        (3, 3, 8),
        (6, 3, 5),
        (9, 3, 3),
    ],
)
def test_data_are_right_under_any_schedule(
    start: Start, ranks: int, nodes: int, seeds: int
) -> None:
    done = start(ranks, "-m", "tests.intranode.daps.schedules", str(nodes), "0", str(seeds))
    assert done.returncode == 0, done.stdout + done.stderr


def test_data_are_right_under_mpich() -> None:
    words = ("-m", "tests.intranode.daps.schedules", "2", "0", "4")
    done = python_ranks(library_named("mpich"), 2, words)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("nodes", "ranks"), [(1, 3), (2, 4)])
def test_a_rank_that_computes_gets_progress_from_whom_the_mode_says(
    start: Start, nodes: int, ranks: int
) -> None:
    done = start(ranks, "-m", "tests.intranode.daps.sleeper", str(nodes))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("how", ["barrier", "message", "window", "holder"])
def test_a_killed_rank_is_noticed_on_all_nodes(start: Start, how: str, tmp_path: Path) -> None:
    # Without recovery the launcher would kill the others first.
    words = ("-m", "tests.intranode.daps.killed", how, "0.1", str(tmp_path))
    start(4, *words, more=("--enable-recovery",))
    said = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert set(said) == {"0", "2", "3"}
    assert all("waits, but these have died: rank " in text for text in said.values())
    assert "rank 1 (process " in said["0"]
    assert all("(its connection is closed)" in said[rank] for rank in "23")


@pytest.mark.parametrize("nodes", [1, 2])
def test_what_cannot_be_is_refused(start: Start, nodes: int) -> None:
    silent(start(2, "-m", "tests.intranode.daps.refusals", str(nodes)))


MODES = "none,thread,ghosts:1,dynamic"
PROGRAMS = {
    "capability": "--size 800000 --strided-size 3000 --sleep-ms 5",
    "product": "--width 24 --edge 7 --dgemms 9,5 --messages 33,200",
    "product, dealt and slept": "--width 24 --edge 7 --dgemms 9,5 --messages 3,40 --tasks dealt "
    "--compute sleep",
    "stencil": "--cells 301 --steps 9",
}


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_verifies_its_data_in_all_modes(start: Start, name: str, nodes: int) -> None:
    program = name.partition(",")[0]
    words = ["--program", program, *PROGRAMS[name].split(), "--modes", MODES, "--rounds", "2"]
    done = start(4, "-m", "runner.apps.daps", *words, "--nodes", str(nodes))
    result = verified(done)
    assert [result[key] for key in ("app", "program", "ranks", "nodes", "assumed_nodes")] == [
        *("daps", program, 4, nodes, nodes)
    ]
    cells = {cell["mode"]: cell for cell in result["cells"]}
    assert ",".join(cells) == MODES
    assert all(len(cell["runs"]) == 2 and cell["seconds"] > 0 for cell in cells.values())
    assert cells["none"]["by_others"] == 0
    assert result["seconds"] == cells["dynamic"]["seconds"]
    assert result["seconds"] == pytest.approx(result["us"] / 1e6)
    assert ("simulated computing" in done.stdout) is ("sleep" in PROGRAMS[name].split())
    parts = {"capability": "put get accumulate send", "product": "stage1 stage2"}
    assert all(result[part] > 0 for part in parts.get(program, "communication").split())


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--program none", "--program none: expected one of capability, product, stencil"),
        ("--modes none,fast", "--modes fast: expected none, thread, thread:dedicated, ghosts:N"),
        ("--modes ghosts:2 --nodes 1", "--ghosts 2: a node has 2 ranks; expected fewer ghosts"),
        ("--modes ghosts:1 --nodes 2", "--ghosts 1: a node has 1 ranks; expected fewer ghosts"),
        ("--ghosts 1", "--ghosts 1 with --progress dynamic: expected --progress ghosts"),
        ("--thread-place dedicated", "--thread-place dedicated with --progress dynamic"),
        ("--width 8", "--width needs --program product"),
        ("--size 12", "--size 12: expected a multiple of 8 bytes"),
        (
            "--operations put,fly",
            "argument --operations: 'fly': expected some of put, get, accumulate, send",
        ),
        (
            "--program product --dgemms 1",
            "argument --dgemms: expected two whole numbers as 130,50, not '1'",
        ),
        ("--program product --compute guess", "--compute guess: expected one of dgemm, sleep"),
        ("--nodes 3", "--nodes 3: expected 0 to 2"),
        ("--poll-gap-us -1", "--poll-gap-us -1: expected 0 to 1000000"),
    ],
)
def test_a_wrong_command_is_one_message(start: Start, words: str, text: str) -> None:
    refused(start(2, "-m", "runner.apps.daps", *words.split()), f"daps: error: {text}")


def test_a_thread_of_its_own_needs_a_core(start: Start) -> None:
    """All cores are used up by ranks; with cores enough it runs."""
    import os

    ranks = len(os.sched_getaffinity(0)) // 2 + 1
    words = "--program stencil --cells 64 --rounds 1 --modes thread:dedicated --steps"
    done = start(ranks, "-m", "runner.apps.daps", *words.split(), "2")
    assert done.returncode == 2
    assert f"--thread-place dedicated: {ranks} ranks have" in done.stderr
    if ranks > 1:
        done = start(ranks - 1, "-m", "runner.apps.daps", *words.split(), "2")
        assert done.returncode == 0, done.stderr


BROKEN = {
    "capability": ("daps.window.Window.accumulate", "capability --size 80 --sleep-ms 0"),
    "product": ("daps.window.Window.accumulate", "product --width 8 --edge 3"),
    "stencil": ("daps.daps.Daps.isend", "stencil --cells 32"),
}


@pytest.mark.parametrize("program", BROKEN)
def test_wrong_data_are_noticed(start: Start, program: str) -> None:
    """The second call adds or sends something else."""
    place, words = BROKEN[program]
    owner, _, name = place.rpartition(".")
    module, _, kind = owner.rpartition(".")
    code = f"""
from runner.intranode.{module} import {kind} as Broken
plain, calls = Broken.{name}, []
def wrong(self, *given):
    calls.append(1)
    at = 0 if isinstance(given[0], type(self)) or "isend" == "{name}" else 1
    if len(calls) == 2:
        given[at][...] += 1.0
    return plain(self, *given)
Broken.{name} = wrong
from runner.apps.common_mpi import run
from runner.apps.daps.application import main
run("daps", "single", lambda comm: main(comm, "--program {words} --rounds 1".split()))
"""
    done = start(2, "-c", code)
    assert done.returncode == 1, done.stderr
    assert "verification failed: the data are wrong" in done.stdout
