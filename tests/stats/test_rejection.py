"""Rejections that depend on the setting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from autotune.stats import depends_on_setting

few = settings(max_examples=100)


@few
@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_it_is_fishers_exact_test(a: int, ok: int, b: int, default_ok: int) -> None:
    table = [[a, ok], [b, default_ok]]
    chance = stats.fisher_exact(table, alternative="greater").pvalue
    # The two sum the same terms in another order.
    if abs(chance - 0.01) > 1e-9:
        assert depends_on_setting(a, a + ok, b, b + default_ok) == (a > 0 and chance <= 0.01)


def test_equal_rates_are_seldom_blamed_on_the_setting() -> None:
    rng = np.random.default_rng(91)
    blamed = [
        depends_on_setting(int(a), 40, int(b), 40) for a, b in rng.binomial(40, 0.2, (2000, 2))
    ]
    # The test is conservative: at most 1 % and two Monte-Carlo standard errors.
    assert np.mean(blamed) <= 0.01 + 2 * np.sqrt(0.01 * 0.99 / 2000)


def test_a_setting_that_disturbs_itself_is_found_and_a_shorter_one_is_not() -> None:
    assert depends_on_setting(10, 20, 0, 20)
    assert not depends_on_setting(0, 20, 10, 20)
    assert not depends_on_setting(0, 0, 0, 0)


def test_more_rejections_than_runs_are_refused() -> None:
    with pytest.raises(ValueError, match="between 0"):
        depends_on_setting(3, 2, 0, 5)
