"""What is told of a comparison."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from autotune.comparison.comparison_outcome import ComparisonOutcome, library_titles
from autotune.comparison.paired_comparison import ComparisonRequest, compare_on, outcome_of
from autotune.config.app import App
from autotune.measurement.budget import Budget
from autotune.space import DEFAULT, Setting, Space
from autotune.stats import LookPlan
from autotune.study.proof import Blocks, confirm_blocks
from runner.mpi.library import Library
from runner.types import PrintedLines, RunRecord
from tests.study.conftest import evaluator

FASTER = Setting({"eager": 8})


def asked() -> Any:
    return SimpleNamespace(
        candidate=FASTER,
        first=DEFAULT,
        target=SimpleNamespace(
            app=App(name="x", command=("x",)), library=Library("openmpi", "5.0.11", "", "mpirun")
        ),
        other=None,
        libraries=None,
        guard=True,
        plan=LookPlan.single_look(8),
        budget_s=None,
        max_runs=None,
    )


def test_every_figure_rests_on_the_pairs_that_decided() -> None:
    simulated = evaluator(lambda setting, rng: 1.0)
    blocks = Blocks(simulated, "compare:0", [FASTER], 1, None)
    proof = confirm_blocks(blocks, LookPlan.single_look(8), Budget(simulated.history))
    for number in range(8, 13):  # A budget that ends between two looks leaves such blocks.
        blocks.ensure_block(number, [FASTER])
    request: Any = asked()
    machine: Any = simulated
    seen = outcome_of(request, machine, blocks, proof, "study")
    assert seen.decision.comparison.n == len(seen.first_s) == len(seen.second_s) == 8
    assert seen.runs == 2 * 13  # What the machine was used for is told whole.


def printing(words: dict[str, str]) -> Any:
    """An evaluator whose settings take the same time and print these words, by their keys."""
    simulated = evaluator(lambda setting, rng: 1.0)
    draw = simulated._record

    def record(setting: Setting, timeout_s: float | None) -> RunRecord:
        lines = PrintedLines((words[setting.key], "hello"))
        return replace(draw(setting, timeout_s), printed=lines)

    simulated._record = record  # type: ignore[method-assign]
    return simulated


def compared(words: dict[str, str]) -> ComparisonOutcome:
    simulated = printing(words)
    blocks = Blocks(simulated, "compare:0", [FASTER], 1, None)
    proof = confirm_blocks(blocks, LookPlan.single_look(8), Budget(simulated.history))
    request: Any = asked()
    return outcome_of(request, simulated, blocks, proof, "study")


def test_a_setting_that_is_as_fast_but_prints_something_else_is_contradicted() -> None:
    other = compared({"default": "result RIGHT", FASTER.key: "result WRONG"}).figures.to_json()
    assert other["outcome"] == "contradicted"
    assert [note["code"] for note in other["contradictions"]] == ["result.output_differs"]
    assert other["checks"]["output"]["differing"] == 1
    same = compared({"default": "result RIGHT", FASTER.key: "result RIGHT"}).figures.to_json()
    assert same["outcome"] != "contradicted"
    assert same["checks"]["output"]["lines"] == 2
    assert same["checks"]["verified"] is None
    assert [note["code"] for note in same["unchecked"]] == ["result.unchecked"]


def test_what_never_runs_is_said_in_its_own_words() -> None:
    def fails(setting: Setting, rng: Any) -> float | str:
        return "failed" if setting == FASTER else 1.0

    simulated = evaluator(fails)
    blocks = Blocks(simulated, "compare:0", [FASTER], 1, None)
    proof = confirm_blocks(blocks, LookPlan.single_look(8), Budget(simulated.history))
    request: Any = asked()
    seen = outcome_of(request, simulated, blocks, proof, "study")
    assert seen.failed.startswith("B ")
    assert re.search(r"\b8\b", seen.failed)
    assert seen.figures.to_json()["outcome"] == "failed"


@pytest.mark.parametrize(("fails_until", "launches"), [(99, 1 + 2 * 3), (2, 1 + 2 * 8)])
def test_what_fails_in_each_of_the_first_blocks_is_given_up(
    fails_until: int, launches: int
) -> None:
    """A warm-up run and pairs; one run of three that works is enough to go on."""
    count = [0]

    def fails(setting: Setting, rng: Any) -> float | str:
        count[0] += setting == FASTER
        return "failed" if setting == FASTER and count[0] <= fails_until else 1.0

    simulated: Any = evaluator(fails)
    target: Any = asked().target
    plan = LookPlan.single_look(8)
    request = ComparisonRequest(target, Space("x", ()), DEFAULT, FASTER, plan)
    seen = compare_on(simulated, request, "ab" * 6)
    assert len(simulated.history.entries) == launches
    assert bool(seen.failed) is (fails_until == 99)
    if seen.failed:  # The same request measures nothing more.
        assert compare_on(simulated, request, "ab" * 6).failed
        assert len(simulated.history.entries) == launches + 1, "its warm-up run"


def test_what_ran_once_is_compared() -> None:
    first = [True]

    def once(setting: Setting, rng: Any) -> float | str:
        if setting == FASTER and not first[0]:
            return "failed"
        first[0] = first[0] and setting != FASTER
        return 1.0

    simulated = evaluator(once)
    blocks = Blocks(simulated, "compare:0", [FASTER], 1, None)
    proof = confirm_blocks(blocks, LookPlan.single_look(8), Budget(simulated.history))
    request: Any = asked()
    assert outcome_of(request, simulated, blocks, proof, "study").failed == ""


LIBRARIES = {
    "a": {"name": "openmpi", "version": "4.1.8", "path": "/opt/a", "program": "x"},
    "b": {"name": "mpich", "version": "5.0.2", "path": "/opt/b", "program": "x"},
}


def told(second_s: float, blocks: int = 12) -> ComparisonOutcome:
    """The outcome of so many pairs of one second under A with pairs of ``second_s`` under B."""
    noise = 1 + np.linspace(-0.002, 0.002, blocks)
    plan = LookPlan.single_look(12, min_gain=0.02)
    return ComparisonOutcome(
        "study", plan.decide(np.ones(blocks), second_s * noise), libraries=LIBRARIES
    )


@pytest.mark.parametrize(
    ("second_s", "faster"), [(0.8, "b"), (1.25, "a"), (1.0, None)], ids=["b", "a", "none"]
)
def test_the_faster_library_is_said_in_one_sentence(
    second_s: float, faster: str | None, snapshot: SnapshotAssertion
) -> None:
    seen = told(second_s)
    assert seen.faster == faster
    assert seen.words == snapshot
    assert seen.figures.to_json()["mpi"] == LIBRARIES


def test_no_library_is_named_before_there_is_an_interval(snapshot: SnapshotAssertion) -> None:
    seen = told(0.8, blocks=4)
    assert seen.faster is None
    assert seen.words == snapshot


def test_two_builds_of_one_version_are_told_apart() -> None:
    other = LIBRARIES["a"] | {"path": "/opt/c"}
    assert library_titles({"a": LIBRARIES["a"], "b": other}) == {
        "a": "openmpi 4.1.8 in /opt/a",
        "b": "openmpi 4.1.8 in /opt/c",
    }
