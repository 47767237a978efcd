"""The balancers: the digest's vectors, the best cut by trying all, and an end for every input."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.runtimes.mate.balance import balance_ranks, consecutive, imbalance, shuffle_ranks
from runner.runtimes.mate.config import RankMap
from runner.runtimes.mate.errors import ConfigError
from tests.case_table import case_table

C = [5, 1, 2, 6, 2, 2, 4, 1, 3, 3, 7, 4]


def loads(costs: list[float], counts: list[int]) -> list[float]:
    ends = [0, *itertools.accumulate(counts)]
    return [sum(costs[a:b]) for a, b in itertools.pairwise(ends)]


@case_table(
    ("costs", "processes", "counts", "largest"),
    [
        (C, 2, [7, 5], 22),
        (C, 3, [4, 5, 3], 14),
        (C, 4, [3, 3, 4, 2], 11),
        (C, 6, [3, 2, 3, 2, 1, 1], 8),
        ([1, 1, 1, 1, 10, 1, 1, 1], 2, [4, 4], 13),
    ],
)
def test_vectors_of_the_digest(
    costs: list[float], processes: int, counts: list[int], largest: float
) -> None:
    """mate.md 10.6."""
    found = consecutive(costs, processes)
    assert max(loads(costs, found)) == largest
    assert found == counts


def test_no_process_is_left_without_ranks() -> None:
    costs = [1.0, 1, 1, 1, 10, 1, 1, 1]
    assert consecutive(costs, 8) == [1] * 8
    assert min(consecutive(costs, 3, least=2)) >= 2


def test_shuffling_vector() -> None:
    """mate.md 10.6; ranks from 0 here."""
    costs = [4, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 6]
    rows = [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]
    made = shuffle_ranks(rows, costs)
    assert made == ((3, 6, 2), (0, 4, 5), (1, 7, 8), (9, 10, 11))
    assert [sum(costs[r] for r in row) for row in made] == [5, 6, 5, 8]


def test_the_random_example_of_the_digest() -> None:
    source = random.Random(7)
    costs = [round(source.uniform(0.5, 3), 3) for _ in range(128)]
    mean = sum(costs) / 16
    cut = loads(costs, consecutive(costs, 16))
    assert max(cut) <= 14.369 + 1e-9
    ends = [0, *itertools.accumulate(consecutive(costs, 16))]
    rows = [range(a, b) for a, b in itertools.pairwise(ends)]
    for sweeps, excess in ((1, 0.03), (10, 0.002), (50, 0.001)):
        made = shuffle_ranks(rows, costs, sweeps)
        assert max(sum(costs[r] for r in row) for row in made) <= mean * (1 + excess)


TIMES = st.one_of(
    st.floats(0, 1e6), st.floats(1e-9, 1e-3), st.integers(0, 9).map(float), st.just(0.1)
)


@given(st.lists(TIMES, min_size=1, max_size=9), st.integers(1, 4), st.integers(1, 2))
def test_it_is_the_best_cut(costs: list[float], processes: int, least: int) -> None:
    if len(costs) < processes * least:
        with pytest.raises(ConfigError):
            consecutive(costs, processes, least)
        return
    found = consecutive(costs, processes, least)
    assert sum(found) == len(costs)
    assert min(found) >= least
    cuts = itertools.combinations(range(1, len(costs)), processes - 1)
    best = min(
        max(loads(costs, counts))
        for cut in cuts
        if min(counts := [b - a for a, b in itertools.pairwise([0, *cut, len(costs)])]) >= least
    )
    assert max(loads(costs, found)) <= best * (1 + 1e-9) + 1e-300


def test_two_thousand_inputs_end() -> None:
    """The original's loop did not for half of them (digest 10.5)."""
    source = random.Random(1)
    for _ in range(2_000):
        processes = source.randint(1, 8)
        costs = [
            source.uniform(0, 10 ** source.randint(-6, 6)) for _ in range(source.randint(8, 24))
        ]
        found = consecutive(costs, processes)
        assert sum(found) == len(costs)
        assert max(loads(costs, found)) <= max(sum(costs) / processes + max(costs), 0) * (1 + 1e-9)


@given(st.lists(st.floats(0, 100), min_size=8, max_size=30), st.booleans())
def test_a_map_holds_every_rank_once(costs: list[float], shuffle: bool) -> None:
    nodes = [0, 0, 1, 1]
    made = balance_ranks(costs, nodes, least=2, shuffle=shuffle)
    RankMap(made)
    plain = balance_ranks(costs, nodes, least=2, shuffle=False)
    for node in (0, 2):
        # Ranks stay on their node; only who holds them there may change.
        assert sorted(made[node] + made[node + 1]) == sorted(plain[node] + plain[node + 1])
    largest = [max(sum(costs[r] for r in row) for row in m) for m in (made, plain)]
    assert largest[0] <= largest[1] * (1 + 1e-12)


def test_imbalance() -> None:
    assert imbalance([1.0, 1.0, 4.0], 5.0) == pytest.approx(0.4)
    assert imbalance([2.0, 2.0], 5.0) == 0.0
    for wrong in (([], 1.0), ([1.0], 0.0)):
        with pytest.raises(ConfigError):
            imbalance(*wrong)
    with pytest.raises(ConfigError, match="finite"):
        consecutive([1.0, float("nan")], 1)
