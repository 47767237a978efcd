"""Patterns: every kind under MPI, the same work in every run, mistakes that are seen, wrong use."""

from __future__ import annotations

import re

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from autotune.config.app import load_app
from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.pattern.application import BUILDERS
from runner.programs.apps.pattern.exchange import ROUNDS, plan
from runner.programs.apps.pattern.options import KINDS, Options, parse
from runner.programs.apps.pattern.tasks import lengths
from runner.programs.apps.pattern.work import CELLS, Message, Work, share
from tests.apps.conftest import Launch, refusal_of, results_of, run_lines
from tests.case_table import case_table
from tests.refusals import refusal, refused

WORK = "--steps", "40", "--work", "3", "--imbalance", "0.4", "--seed", "7"


def options(*words: str) -> Options:
    return parse(list(words), 4)


@pytest.mark.mpi
@pytest.mark.parametrize(
    "ranks", [3, *(pytest.param(ranks, marks=pytest.mark.slow) for ranks in (2, 4))]
)
def test_every_kind_verifies(launch: Launch, ranks: int) -> None:
    lines = [[kind, "--size", size, *WORK] for size in ("8", "4096", "100000") for kind in KINDS]
    single = [[kind, "--steps", "1"] for kind in KINDS]
    found = results_of(launch, ranks, "pattern", lines + single)
    assert all(result["verified"] is True for result in found)
    for line, result in zip(lines, found, strict=False):
        assert (result["kind"], result["ranks"], f"{result['size']}") == (line[0], ranks, line[2])
        assert 0 < result["compute_s"] <= result["seconds"]
        given = options(*line)
        # One step comes before the clock starts.
        expected = 41 * sum(share(given, rank, ranks) for rank in range(ranks))
        if given.kind == "master-worker":
            expected = int(lengths(given, ranks - 1).sum())
        assert result["calls"] == expected


def test_wrong_use(snapshot: SnapshotAssertion) -> None:
    lines = [
        *("halo4d", "", "halo1d --size 12", "halo1d --imbalance 2", "halo1d --steps 0"),
        "halo1d --work -1",
    ]
    found = {line: refusal(AppUsageError, parse, line.split(), 2) for line in lines}
    found["1 rank"] = refusal(AppUsageError, parse, ["reduce"], 1)
    assert found == snapshot


@pytest.mark.mpi
def test_help_and_wrong_use_are_printed_once(launch: Launch) -> None:
    wrong, helped = run_lines(launch, 2, "pattern", [["halo4d"], ["--help"]])
    assert "halo4d" in refusal_of(wrong, "pattern")
    assert helped.code == 0
    assert all(helped.out.count(f"  {kind} ") == 1 for kind in KINDS)


def test_every_kind_has_a_program_and_an_input() -> None:
    assert list(BUILDERS) == list(KINDS)
    app = load_app("pattern")
    assert set(app.inputs) == set(KINDS)
    for name in KINDS:
        assert options(*app.program(name)[4:]).kind == name


def test_work_grows_from_rank_to_rank() -> None:
    given = options("halo1d", "--work", "100", "--imbalance", "0.4")
    assert [share(given, rank, 5) for rank in range(5)] == [60, 80, 100, 120, 140]


def test_the_lengths_of_tasks() -> None:
    given = options("master-worker", "--work", "1000", "--steps", "99", "--imbalance", "0.2")
    found = lengths(given, 3)
    assert len(found) == 300
    assert (found.min(), found.max(), found.mean()) == (400, 1600, pytest.approx(1000))
    assert not np.array_equal(found, np.sort(found))
    assert np.array_equal(found, lengths(given, 3))


@case_table("ranks", [2, 3, 4, 7])
def test_the_irregular_plan(ranks: int) -> None:
    given = options("irregular", "--size", "4096", "--seed", "5")
    rounds = plan(given, ranks)
    assert rounds == plan(given, ranks)
    assert rounds != plan(options("irregular", "--size", "4096", "--seed", "6"), ranks)
    assert len(rounds) == ROUNDS
    for pairs, size in rounds:
        assert len(pairs) == ranks - ranks % 2
        assert all(pairs[pairs[rank]] == rank != pairs[rank] for rank in pairs)
        assert 1024 <= size <= 16384
        assert size % 8 == 0
    assert min(size for _, size in plan(options("irregular", "--size", "8"), ranks)) == 8


def test_wrong_work_is_seen() -> None:
    work = Work()
    work.do(5)
    assert work.wrong() == ""
    work.calls += 1
    assert "6 calls" in work.wrong()
    assert CELLS * 8 == 2048


def arrived(size: int, sender: int, step: int) -> tuple[Message, Message]:
    sent, received = Message(size, sender, is_outgoing=True), Message(size, 3, is_outgoing=False)
    sent.stamp(step)
    received.words[:] = sent.words
    received.check(9)
    return sent, received


def test_wrong_messages_are_seen() -> None:
    assert arrived(80, 3, 9)[1].wrong() == ""
    assert arrived(8, 3, 9)[1].wrong() == ""
    assert "1 messages" in arrived(80, 3, 8)[1].wrong()
    assert "1 messages" in arrived(8, 2, 9)[1].wrong()
    _, short = arrived(80, 3, 9)
    short.words[-1] = 0
    assert short.wrong() != ""
    assert not re.search("[0-9]", short.wrong())


class Twisted:
    """A communicator of two ranks whose collectives do nothing: nothing arrives."""

    rank, size = 0, 2

    def __getattr__(self, name: str) -> object:
        return lambda *given, **named: None


@pytest.mark.parametrize("kind", ["transpose", "reduce"])
def test_lost_collectives_are_seen(kind: str) -> None:
    given = options(kind, "--size", "64")
    pattern = BUILDERS[kind](Twisted(), given, Work())
    pattern.run(0, 4)
    assert "step" in pattern.wrong()


def test_few_ranks_are_refused() -> None:
    with refused(AppUsageError, "app_option.ranks"):
        parse(["halo1d"], 1)
    assert parse(["--help"], 1).help is not None
