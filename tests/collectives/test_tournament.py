"""The tournament on landscapes whose truth is known: few measurements, nearly the best table."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.collectives.tables import SIZES
from autotune.collectives.tournament import (
    CHANGE,
    SHARE,
    Jobs,
    TableEntry,
    Tournament,
    cheapest_entries,
)
from autotune.space import DEFAULT, Setting


def named(number: int) -> Setting:
    return Setting({"algorithm": number})


class Landscape:
    """T / T_default of each candidate is a smooth curve over the size; noise is multiplied."""

    def __init__(self, seed: int, count: int, noise: float) -> None:
        self.random = random.Random(seed)
        self.noise = noise
        self.curves = {
            named(n): (
                self.random.uniform(0.55, 1.6), self.random.uniform(3, 20),
                self.random.uniform(0.05, 0.35),
            )
            for n in range(count)
        }  # fmt: skip

    def truth(self, setting: Setting, size: int) -> float:
        if setting == DEFAULT:
            return 1.0
        least, best, width = self.curves[setting]
        return min(least * math.exp(width * abs(math.log2(size) - best)), 16.0)

    def measure(self, jobs: Jobs) -> Mapping[Setting, Mapping[int, float]]:
        return {
            setting: {
                size: self.truth(setting, size) * math.exp(self.random.gauss(0, self.noise))
                for size in sizes
            }
            for setting, sizes in jobs.items()
        }

    def cost(self, entries: list[TableEntry]) -> float:
        """Mean logarithm of the time under a table."""
        total = 0.0
        for size in SIZES:
            setting = [e.setting for e in entries if e.size <= size][-1]
            total += math.log(self.truth(setting, size))
        return total / len(SIZES)

    def best(self) -> float:
        every = [DEFAULT, *self.curves]
        return sum(math.log(min(self.truth(s, size) for s in every)) for size in SIZES) / len(SIZES)


@pytest.mark.parametrize("count", [9, 20])
@pytest.mark.parametrize("seed", range(12))
def test_nearly_the_best_table_in_less_than_a_third_of_the_grid(seed: int, count: int) -> None:
    land = Landscape(seed, count, 0.03)
    search = Tournament(list(land.curves), SIZES, land.measure)
    search.run()
    table = search.table()
    assert search.points <= 0.3 * search.grid
    # At most 8 % slower on average than the best choice at each single size.
    assert land.cost(table) <= land.best() + 0.08
    # Hardly longer than the table that the truth would give at the same price of an entry.
    choices = [DEFAULT, *land.curves]
    price = [[search._cost(DEFAULT, z), *(math.log(land.truth(s, z)) for s in land.curves)]
             for z in SIZES]  # fmt: skip
    assert len(table) <= len(cheapest_entries(SIZES, choices, price)) + 2
    assert [e.size for e in table] == sorted({e.size for e in table})


@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 9))
def test_never_more_measurements_than_said(count: int, sizes: int, seed: int) -> None:
    """Whatever stays close to the best everywhere, and however few sizes there are."""
    draw = random.Random(seed)
    asked: list[int] = []

    def measure(jobs: Jobs) -> Mapping[Setting, Mapping[int, float]]:
        assert all(len(set(sizes)) == len(sizes) for sizes in jobs.values())
        asked.append(sum(map(len, jobs.values())))
        return {s: {z: draw.uniform(0.8, 0.9) for z in sizes} for s, sizes in jobs.items()}

    search = Tournament([named(n) for n in range(count)], [2**z for z in range(sizes)], measure)
    search.run()
    assert sum(asked) == search.points <= max(asked[0] + sizes, SHARE * search.grid)


@pytest.mark.parametrize("seed", range(8))
def test_where_nothing_is_faster_the_library_decides(seed: int) -> None:
    land = Landscape(seed, 12, 0.02)
    land.curves = {s: (1.0, best, width) for s, (_, best, width) in land.curves.items()}
    search = Tournament(list(land.curves), SIZES, land.measure)
    search.run()
    assert search.table() == [TableEntry(SIZES[0], DEFAULT)]


def test_a_candidate_that_fails_is_never_chosen() -> None:
    def measure(jobs: Jobs) -> Mapping[Setting, Mapping[int, float]]:
        return {
            s: ({} if s == named(1) else dict.fromkeys(sizes, 0.5)) for s, sizes in jobs.items()
        }

    search = Tournament([named(1), named(2)], SIZES, measure)
    search.run()
    assert search.table() == [TableEntry(SIZES[0], named(2))]


def table_without_default(curve: Mapping[int, Mapping[int, float]]) -> list[TableEntry]:
    """The table of candidates with these ratios, where no size can be left to the library."""

    def measure(jobs: Jobs) -> Mapping[Setting, Mapping[int, float]]:
        return {s: {z: curve[int(s["algorithm"])][z] for z in sizes} for s, sizes in jobs.items()}

    search = Tournament([named(n) for n in curve], [8, 64, 512], measure, leaves_sizes=False)
    search.run()
    return search.table()


def test_where_no_size_can_be_left_a_candidate_stands_at_each() -> None:
    found = table_without_default({1: {8: 1.02, 64: 1.1, 512: 3.0}, 2: {8: 2.0, 64: 1.9, 512: 0.5}})
    assert [e.setting for e in found] == [named(1), named(2)]
    assert found[0].size == 8


def test_where_nothing_is_gained_there_is_no_such_table() -> None:
    slow = {8: 1.02, 64: 1.1, 512: 0.99}
    assert table_without_default({1: slow, 2: slow}) == [TableEntry(8, DEFAULT)]


COSTS = st.lists(st.lists(st.floats(-1, 1), min_size=3, max_size=3), min_size=1, max_size=6)


@given(COSTS)
def test_the_path_is_the_cheapest(cost: list[list[float]]) -> None:
    """Against all paths."""
    import itertools

    choices = [DEFAULT, named(1), named(2)]
    sizes = list(range(1, len(cost) + 1))

    def price(path: tuple[int, ...]) -> float:
        moves = sum(a != b for a, b in itertools.pairwise(path))
        return sum(row[c] for row, c in zip(cost, path, strict=True)) + CHANGE * moves

    best = min(price(path) for path in itertools.product(range(3), repeat=len(cost)))
    entries = cheapest_entries(sizes, choices, cost)
    path = tuple(
        choices.index([e.setting for e in entries if e.size <= size][-1]) for size in sizes
    )
    assert price(path) == pytest.approx(best)
