"""The steps of a run, from rounds that are known."""

from __future__ import annotations

import pytest

from runner.trace.counts import RankCounts, RoundSums
from runner.trace.steps import steps_of
from tests.trace.samples import rank_counts


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
