"""Boundaries against brute force over every sequence of signs, and against scipy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from autotune.stats.exact import (
    crossing,
    middle,
    sign_rank,
    sign_tail,
    sign_walk_ranks,
    spendable_tail,
    wilcoxon_rank,
    wilcoxon_tail,
    wilcoxon_walk_ranks,
)
from tests.case_table import case_table


def sign_sequences(n: int) -> np.ndarray:
    return np.array(list(itertools.product((0, 1), repeat=n)))


@case_table("n", range(1, 13))
def test_sign_rank_is_the_largest_allowed_by_enumeration(n: int) -> None:
    below = sign_sequences(n).sum(axis=1)
    for tail in (0.025, 0.05 / 6, 0.1):
        allowed = [k for k in range(1, n + 1) if (below < k).mean() <= tail]
        assert sign_rank(n, tail) == max(allowed, default=0)
    for k in range(1, n + 1):
        assert sign_tail(n, k) == pytest.approx((below < k).mean(), abs=1e-12)


@case_table("n", range(1, 12))
def test_wilcoxon_tail_by_enumeration_of_signed_ranks(n: int) -> None:
    sums = sign_sequences(n) @ np.arange(1, n + 1)
    for k in range(1, n * (n + 1) // 2 + 1):
        assert wilcoxon_tail(n, k) == pytest.approx((sums < k).mean(), abs=1e-12)
    rank = wilcoxon_rank(n, 0.025)
    assert (sums < rank).mean() <= 0.025 < (sums < rank + 1).mean()


def test_tails_agree_with_scipy_tests() -> None:
    values = np.random.default_rng(3).normal(0.4, 1, 15)
    below, rank_sum = int((values < 0).sum()), _signed_rank_sum(values)
    sign = stats.binomtest(below, 15, 0.5, alternative="less").pvalue
    assert sign_tail(15, below + 1) == pytest.approx(sign)
    ranked = stats.wilcoxon(values, alternative="greater", method="exact").pvalue
    assert wilcoxon_tail(15, rank_sum + 1) == pytest.approx(ranked)


def _signed_rank_sum(values: np.ndarray) -> int:
    """Sum of the ranks of the negative values."""
    return int(stats.rankdata(np.abs(values))[values < 0].sum())


@pytest.mark.parametrize("chance", [0.5, 0.3])
def test_crossing_by_enumeration(chance: float) -> None:
    looks, ranks = (4, 7, 12), (1, 2, 4)
    walks = sign_sequences(12)
    weight = chance ** walks.sum(axis=1) * (1 - chance) ** (12 - walks.sum(axis=1))
    alive = np.ones(len(walks), dtype=bool)
    for look, rank, got in zip(looks, ranks, crossing(looks, ranks, chance), strict=True):
        crossed = alive & (walks[:, :look].sum(axis=1) < rank)
        assert got == pytest.approx(weight[crossed].sum(), abs=1e-12)
        alive &= ~crossed


@case_table("function", ["linear", "pocock", "obrien-fleming"])
@case_table("finalists", [1, 2, 3])
def test_walk_spends_no_more_than_allowed_and_no_rank_could_be_larger(
    function, finalists: int
) -> None:
    looks, tail = (8, 12, 18, 27, 40), 0.025 / finalists
    ranks = sign_walk_ranks(looks, tail, function)
    total = np.cumsum(crossing(looks, ranks))
    allowed = [spendable_tail(function, n / 40, tail) for n in looks]
    assert (total <= np.array(allowed) + 1e-12).all()
    for j in range(len(looks)):
        larger = [*ranks[:j], ranks[j] + 1]
        assert crossing(looks[: j + 1], larger).sum() > allowed[j]


def test_default_boundaries_are_the_published_ones() -> None:
    """docs/explanation/statistics.md prints these."""
    looks = (8, 12, 18, 27, 40)
    assert sign_walk_ranks(looks, 0.025, "pocock") == (1, 2, 4, 8, 13)
    assert sign_walk_ranks(looks, 0.025 / 3, "pocock") == (0, 2, 3, 7, 12)


def test_wilcoxon_walk_stays_within_the_tail() -> None:
    looks = (8, 12, 18, 27, 40)
    ranks = wilcoxon_walk_ranks(looks, 0.025, "pocock")
    assert 0.02 < sum(wilcoxon_tail(n, k) for n, k in zip(looks, ranks, strict=True)) <= 0.025


def test_spending_starts_low_and_ends_with_everything() -> None:
    for function in ("linear", "pocock", "obrien-fleming"):
        shares = [spendable_tail(function, s, 0.025) for s in (0.2, 0.5, 0.9, 1.0)]
        assert shares == sorted(shares)
        assert shares[-1] == 0.025
    assert (
        spendable_tail("obrien-fleming", 0.2, 0.025) < 1e-5 < spendable_tail("pocock", 0.2, 0.025)
    )


def test_middle_is_the_median_also_with_infinities() -> None:
    rng = np.random.default_rng(0)
    for n in range(1, 9):
        values = rng.normal(size=n)
        assert middle(values) == pytest.approx(np.median(values))
    assert middle(np.array([-np.inf, -np.inf, 1.0])) == -np.inf
    assert middle(np.array([2.0, np.inf, np.inf, 1.0])) == np.inf
