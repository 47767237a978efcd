"""The arithmetic of the analysis of variance against independent computations of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from autotune.anova.oneway import one_way, rank_within


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.lists(st.integers(2, 12), min_size=2, max_size=5),
    shift=st.floats(0, 2),
)
def test_without_blocks_it_is_the_textbook_test(seed: int, sizes: list[int], shift: float) -> None:
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(len(sizes)), sizes)
    y = rng.standard_normal(codes.size) + shift * codes
    found = one_way(codes, y, len(sizes), min_level=1)
    expected = stats.f_oneway(*(y[codes == i] for i in range(len(sizes))))
    assert found.f == pytest.approx(expected.statistic, rel=1e-6)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-5, abs=1e-12)
    assert found.means == pytest.approx([y[codes == i].mean() for i in range(len(sizes))])


@pytest.mark.parametrize("seed", range(4))
def test_with_blocks_it_is_the_adjusted_test_of_an_unbalanced_design(seed: int) -> None:
    from statsmodels.formula.api import ols  # Not for each process that only collects tests.
    from statsmodels.stats.anova import anova_lm

    rng = np.random.default_rng(seed)
    codes, blocks = rng.integers(0, 3, 120), rng.integers(0, 4, 120)
    y = rng.standard_normal(120) + 3.0 * blocks + 0.4 * codes
    found = one_way(codes, y, 3, blocks, min_level=1)
    frame = pd.DataFrame({"y": y, "a": codes, "b": blocks})
    table = anova_lm(ols("y ~ C(b) + C(a)", frame).fit(), typ=2)
    assert found.f == pytest.approx(table.loc["C(a)", "F"], rel=1e-6)
    assert found.df == table.loc["C(a)", "df"]


def test_a_level_with_few_observations_is_not_judged() -> None:
    rng = np.random.default_rng(0)
    codes = np.array([0] * 30 + [1] * 30 + [2] * 19)
    y = rng.standard_normal(codes.size)
    y[codes == 2] += 100
    found = one_way(codes, y, 3)
    assert np.isnan(found.means[2])
    assert found.counts[2] == 19
    assert found.p > 0.001
    assert one_way(codes, y, 3, min_level=19).p < 1e-6


def test_one_judged_level_cannot_be_tested() -> None:
    codes = np.zeros(40, dtype=int)
    found = one_way(codes, np.arange(40.0), 2)
    assert not found.testable
    assert found.p == 1.0


def test_the_same_value_everywhere_is_no_effect() -> None:
    codes = np.repeat([0, 1], 30)
    assert one_way(codes, np.full(60, 0.1), 2).p == 1.0


def test_ranks_are_taken_within_blocks() -> None:
    ranks = rank_within(np.array([5.0, 1.0, 100.0, 300.0, 200.0]), np.array([0, 0, 1, 1, 1]))
    assert ranks == pytest.approx([2 / 3, 1 / 3, 1 / 4, 3 / 4, 2 / 4])
