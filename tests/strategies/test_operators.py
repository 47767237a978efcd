"""The operators of the genetic search."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.space import Parameter, Space
from autotune.strategies.codec import Codec, Codes
from autotune.strategies.ga.operators import Operators, Rates
from autotune.testing.landscapes import INVALID_DEFAULT, MANY
from tests.case_table import case_table

CODEC = Codec(MANY)
OPERATORS = Operators(CODEC)
NONE = Rates(individual=1.0, gene=0.0, step=0.0, drop=0.0, insert=0.0)

individuals = st.tuples(*(st.integers(0, int(n) - 1) for n in CODEC.sizes))


@settings(max_examples=60, deadline=None)
@given(a=individuals, b=individuals, seed=st.integers(0, 100))
def test_crossover_follows_the_three_rules(a: Codes, b: Codes, seed: int) -> None:
    lengths = sorted(np.count_nonzero(p) for p in (a, b))
    for child in OPERATORS.cross(a, b, 20, np.random.default_rng(seed)).tolist():
        for mine, first, second in zip(child, a, b, strict=True):
            if first and second:
                assert mine in (first, second)
            else:
                assert mine in (0, first or second)
        assert lengths[0] <= np.count_nonzero(child) <= lengths[1]


def test_crossover_reaches_every_length_and_both_parents() -> None:
    a = tuple(int(n > 1) for n in CODEC.sizes)
    b = (2, *(0,) * (len(a) - 1))
    children = OPERATORS.cross(a, b, 400, np.random.default_rng(0))
    assert set(np.count_nonzero(children, axis=1).tolist()) == set(range(1, len(a) + 1))
    assert set(children[:, 0].tolist()) == {1, 2}


@settings(max_examples=40, deadline=None)
@given(
    count=st.integers(1, 30),
    low=st.integers(1, 16),
    more=st.integers(0, 16),
    seed=st.integers(0, 100),
)
def test_individuals_have_the_lengths_asked_for_and_hold_all_parameters(
    count: int, low: int, more: int, seed: int
) -> None:
    dealt = OPERATORS.deal(count, (low, low + more), np.random.default_rng(seed))
    lengths = [np.count_nonzero(codes) for codes in dealt]
    high = min(low + more, len(CODEC.sizes))
    assert len(dealt) == count
    assert min(low, high) <= min(lengths)
    assert max(lengths) <= high
    if sum(lengths) >= len(CODEC.sizes):
        assert np.array(dealt).any(axis=0).all()
    assert all(0 <= c < n for codes in dealt for c, n in zip(codes, CODEC.sizes, strict=True))


def test_all_lengths_occur_where_any_is_allowed() -> None:
    dealt = OPERATORS.deal(300, (1, 0), np.random.default_rng(0))
    assert {int(np.count_nonzero(c)) for c in dealt} == set(range(1, len(CODEC.sizes) + 1))


def test_forced_parameters_are_always_there_and_vary() -> None:
    codec = Codec(INVALID_DEFAULT)
    genes = Operators(codec)
    dealt = genes.deal(50, (1, 1), np.random.default_rng(0))
    assert {codes[0] for codes in dealt} == {0, 1, 2}
    assert all("ranks" in codec.decode(codes) for codes in dealt)
    children = genes.cross((0, 1, 0), (2, 0, 1), 100, np.random.default_rng(0))
    assert set(children[:, 0].tolist()) == {0, 2}


def test_no_rates_no_change() -> None:
    children = np.array([[1] * len(CODEC.sizes), [0] * len(CODEC.sizes)])
    rng = np.random.default_rng(0)
    assert (OPERATORS.mutate(children, NONE, rng) == children).all()
    assert (OPERATORS.mutate(children, Rates(0.0, 1.0, 0.0, 1.0, 9.0), rng) == children).all()


def test_rates_are_kept() -> None:
    rng = np.random.default_rng(0)
    full = np.full((4000, 16), 1)
    full[:, CODEC.sizes < 2] = 0
    dropped = OPERATORS.mutate(full, Rates(1.0, 0.0, 0.0, 0.25, 0.0), rng)
    assert 0.23 < (dropped == 0).mean() < 0.27
    half = OPERATORS.mutate(full, Rates(0.5, 0.0, 0.0, 1.0, 0.0), rng)
    assert 0.47 < (half == 0).all(axis=1).mean() < 0.53
    empty = OPERATORS.mutate(np.zeros((4000, 16), dtype=np.intp), Rates(1.0, 0, 0, 0, 2.0), rng)
    assert 1.9 < np.count_nonzero(empty, axis=1).mean() < 2.1


def test_steps_go_to_neighbours_in_value_with_unset_at_its_default() -> None:
    codec = Codec(Space("one", (Parameter("size", (1024, 64, 256), default=128),)))
    genes = Operators(codec)
    always = Rates(individual=1.0, gene=1.0, step=1.0, drop=0.0, insert=0.0)

    def reached(code: int) -> set[object]:
        children = np.full((200, 1), code, dtype=np.intp)
        moved = genes.mutate(children, always, np.random.default_rng(0))
        return {codec.decode(row).get("size") for row in moved.tolist()}

    assert reached(1) == {1024, 256}
    assert reached(3) == {1024, None}
    assert reached(2) == {64, None}


def test_words_and_enumerated_numbers_have_no_neighbours() -> None:
    words = Parameter("word", ("a", "b", "c", "d"))
    named = Parameter("algorithm", (1, 2, 3, 4), enum={1: "ring", 2: "tree", 3: "x", 4: "y"})
    sizes = Parameter("size", (1, 2, 3))
    assert Codec(Space("s", (words, named, sizes))).axis == ((), (), (1, 2, 3))


@case_table("length", [1, 3, 16])
def test_each_level_occurs_once_in_a_balanced_generation(length: int) -> None:
    dealt = np.array(OPERATORS.balance(length, np.random.default_rng(2)))
    for column, size in zip(dealt.T, CODEC.sizes, strict=True):
        assert sorted(column[column > 0].tolist()) == list(range(1, int(size)))
    assert np.count_nonzero(dealt, axis=1).max() == min(length, int((CODEC.sizes > 1).sum()))


def test_a_forced_parameter_is_in_all_of_a_balanced_generation() -> None:
    codec = Codec(INVALID_DEFAULT)
    dealt = Operators(codec).balance(1, np.random.default_rng(0))
    assert len(dealt) == sum(int(n) - 1 for n in codec.sizes[codec.optional])
    assert all("ranks" in codec.decode(codes) for codes in dealt)


@settings(max_examples=20, deadline=None)
@given(codes=individuals)
def test_neighbours_are_all_individuals_one_choice_away(codes: Codes) -> None:
    around = OPERATORS.neighbours(codes)
    assert ((around != np.array(codes)).sum(axis=1) == 1).all()
    assert len(np.unique(around, axis=0)) == len(around) == int((CODEC.sizes - 1).sum())
