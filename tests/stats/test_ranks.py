"""Rank tests against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from autotune.stats.ranks import neighbours_z, rank_sum_z, ranks, spearman_z
from tests.case_table import case_table


@case_table("seed", range(5))
def test_against_scipy(seed: int) -> None:
    draw = np.random.default_rng(seed)
    a, b = draw.integers(0, 12, 30).astype(float), draw.normal(size=30)
    assert ranks(a) == pytest.approx(stats.rankdata(a))
    assert spearman_z(a, b) == pytest.approx(stats.spearmanr(a, b)[0] * np.sqrt(29))
    expected = stats.ranksums(b[10:], b[:10])[0]
    assert rank_sum_z(b[:10], b[10:]) == pytest.approx(expected)


def test_nothing_to_rank() -> None:
    assert spearman_z([1, 2], [2, 1]) == 0
    assert spearman_z([1, 1, 1], [1, 2, 3]) == 0
    assert rank_sum_z([], [1.0]) == 0


def test_neighbours_of_random_values_are_not_alike() -> None:
    draw = np.random.default_rng(3)
    z = [neighbours_z(draw.normal(size=20).tolist()) for _ in range(2000)]
    assert np.mean(z) == pytest.approx(0, abs=0.1)
    assert np.std(z) == pytest.approx(1, abs=0.08)
    assert neighbours_z([1.0] * 10 + [2.0 + n / 100 for n in range(10)]) > 3
    assert neighbours_z([1.0, 2.0]) == neighbours_z([1.0] * 9) == 0
