"""The steps of a run, from rounds that are known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from runner.trace import FeaturesError, load_features
from runner.trace.counts import RankCounts, RoundSums
from runner.trace.steps import Steps, steps_of
from tests.refusals import refused
from tests.trace.samples import features, rank_counts


def _rank(number: int, *rounds: RoundSums) -> RankCounts:
    counts = rank_counts(number, 2)
    counts.rounds = list(rounds)
    return counts


def test_the_rounds_with_most_computation_are_the_steps() -> None:
    # 100 steps, half of 1 ms and half of 3 ms; a collective in each; start and end once.
    # The first step also has the start of the program, 5 ms.
    step = RoundSums(101, 205_000_000, 5_000_000, 50 * 1e12 + 50 * 9e12 + 25e12)
    sums, start = (
        RoundSums(101, 10_100_000, 100_000, 1e12),
        RoundSums(2, 900_000_000, 899_000_000, 8e17),
    )
    slow = RoundSums(101, 606_000_000, 6_000_000, 101 * 36e12)
    steps = steps_of([_rank(0, start, step, sums), _rank(1, slow)])
    assert steps is not None
    assert (steps.steps, steps.rounds) == (101, 204)
    assert steps.compute_s == pytest.approx((0.2121, 0.606))
    assert steps.variation == pytest.approx((0.5 + 0) / 2)
    assert steps.imbalance == pytest.approx(0.606 / 0.40905)
    assert steps.depth == pytest.approx(204 / 101)


def test_a_rank_that_only_receives_has_no_steps_but_computes() -> None:
    steps = steps_of([_rank(0, RoundSums(10, 1000, 100, 1e5)), _rank(1)])
    assert steps is not None
    assert steps.compute_s[1] == pytest.approx(1.0)
    assert steps_of([_rank(0), _rank(1)]) is None


def test_steps_survive_the_file_and_wrong_ones_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    traced = replace(features(), steps=Steps(10, 21, (1.0, 0.5), 0.1))
    traced.save(path)
    assert load_features(path) == traced
    for wrong in (Steps(30, 21, (1.0, 0.5), 0.1), Steps(10, 21, (1.0,), 0.1)):
        replace(features(), steps=wrong).save(path)
        with refused(FeaturesError, "features.damaged"):
            load_features(path)
