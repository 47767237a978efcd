"""Ranks under real mpirun: all algorithms against plain MPI, kills, refusals, the programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.intranode.programs import Start, refused, silent, verified
from tests.mpis import library_named
from tests.started import python_ranks

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize(
    ("ranks", "nodes"),
    [
        (1, "1"),
        (2, "1,2"),
        (3, "1,3"),
        (4, "1,2,4"),
        (5, "5"),
        (6, "2,3"),
        (6, "turns:3"),
        (8, "2"),
        pytest.param(8, "4", marks=pytest.mark.slow),
        pytest.param(8, "turns:4", marks=pytest.mark.slow),
        (9, "3"),
        pytest.param(12, "3", marks=pytest.mark.slow),
        pytest.param(15, "5", marks=pytest.mark.slow),
    ],
)
def test_all_algorithms_agree_with_plain_mpi(start: Start, ranks: int, nodes: str) -> None:
    done = start(ranks, "-m", "tests.intranode.mcoll.checks", nodes, str(ranks))
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split("checks done: ")[1]) > 20


def test_all_algorithms_agree_under_mpich() -> None:
    """Handles and statuses have other sizes there."""
    words = ("-m", "tests.intranode.mcoll.checks", "1,2", "7")
    done = python_ranks(library_named("mpich"), 2, words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split("checks done: ")[1]) > 20


def test_a_killed_rank_is_noticed(start: Start, tmp_path: Path) -> None:
    # Without recovery the launcher would kill the others first.
    start(4, "-m", "tests.intranode.mcoll.killed", str(tmp_path), more=("--enable-recovery",))
    said = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert set(said) == {"0", "2", "3"}
    # A rank that has noticed it ends, which others may notice, too.
    assert all("waits, but these have died: " in s for s in said.values())
    assert all("local rank 1 (process " in s for s in said.values())


def test_what_cannot_be_is_refused(start: Start) -> None:
    silent(start(2, "-m", "tests.intranode.mcoll.refusals"))


@pytest.mark.parametrize(
    ("operation", "words", "cells"),
    [
        ("allgather", "--sizes 8,3000 --forms auto,bruck,ring,rd,library", 10),
        ("allgather", "--sizes 1 --forms bruck --compare-objects 1,2,0 --compare-radix 2,0", 6),
        ("allreduce", "--sizes 0,8,4000 --forms bruck,ring,library --same-bits off", 9),
        ("scatter", "--sizes 5 --forms tree,library --compare-objects 1,2 --copy publish", 3),
    ],
)
def test_a_loop_verifies_its_data_and_counts(
    start: Start, operation: str, words: str, cells: int
) -> None:
    more = [*words.split(), "--operation", operation, "--nodes", "2", "--rounds", "2"]
    result = verified(start(4, "-m", "runner.apps.mcoll", *more, "--times", "6"))
    assert (result["app"], result["operation"], result["nodes"]) == ("mcoll", operation, 2)
    assert len(result["cells"]) == cells
    for cell in result["cells"]:
        assert len(cell["runs_us"]) == 2
        assert (cell["messages"] is None) == (cell["form"] == "library")


def test_auto_changes_at_the_switches(start: Start) -> None:
    words = "--sizes 8,64,512 --nodes 2 --times 2 --rounds 1 --allgather-switch 64"
    done = start(2, "-m", "runner.apps.mcoll", *words.split(), "--allgather-mpi-from", "512")
    forms = [cell["form"] for cell in verified(done)["cells"]]
    assert forms == ["bruck", "ring", "library"]


def test_published_settings_are_those_of_the_program(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "mcoll.json"
    path.write_text('{"schema": "mcoll/1", "settings": {"allgather": "ring"}}')
    words = ["--nodes", "2", "--times", "2", "--rounds", "1", "--mcoll-config", str(path)]
    result = verified(start(2, "-m", "runner.apps.mcoll", *words))
    assert result["configured"] == str(path)
    assert [cell["form"] for cell in result["cells"]] == ["ring"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--operation none", "--operation none: expected one of allgather, allreduce"),
        ("--forms tree", "--forms tree: expected some of auto, bruck, ring, rd, library"),
        ("--operation allreduce --sizes 12", "--sizes 12: expected a multiple of 8 bytes"),
        ("--nodes 2", "--nodes 2: 3 ranks cannot be split into so many equal nodes"),
        ("--nodes -1", "--nodes -1: expected 0 or more"),
        ("--nodes 3 --forms rd", "--allgather rd: 3 nodes; recursive doubling needs a power"),
        ("--objects 9", "--objects 9: a node has 3 ranks; expected 0 (all) to 3"),
        ("--compare-objects 1,8", "--objects 8: a node has 3 ranks"),
        ("--objects 1 --radix 3", "--radix 3: 1 objects have no more than 2"),
        ("--waiting never", "--waiting never: expected one of auto, spin"),
        ("--mcoll-config nowhere.json", "the published settings in nowhere.json"),
    ],
)
def test_a_wrong_command_is_one_message(start: Start, words: str, text: str) -> None:
    refused(start(3, "-m", "runner.apps.mcoll", *words.split()), f"mcoll: error: {text}")


def test_help_is_printed_once(start: Start) -> None:
    done = start(2, "-m", "runner.apps.mcoll", "--help")
    assert done.returncode == 0
    assert done.stdout.count("usage:") == 1
