"""Slow launches: Fisher's exact test, its two sides, and what it can show."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from autotune.stats import slow_launches

COUNTS = st.tuples(st.integers(0, 25), st.integers(0, 25))


@settings(max_examples=60)
@given(launches=COUNTS, slow=COUNTS)
def test_the_verdict_is_fishers(launches: tuple[int, int], slow: tuple[int, int]) -> None:
    ours, default = (min(s, n) for s, n in zip(slow, launches, strict=True))
    seen = slow_launches(ours, launches[0], default, launches[1], alpha=0.05)
    table = [[ours, launches[0] - ours], [default, launches[1] - default]]
    less = stats.fisher_exact(table, alternative="less").pvalue
    more = stats.fisher_exact(table, alternative="greater").pvalue
    expected = "rarer" if less <= 0.025 else "more frequent" if more <= 0.025 else "no difference"
    assert seen.verdict.startswith(expected)


def test_a_difference_is_named_where_there_is_none_in_alpha_at_most() -> None:
    """Exactly: the probabilities of all tables of 12 launches each that name one."""
    n = 12
    named = np.array(
        [
            [slow_launches(a, n, b, n, alpha=0.1).verdict in ("rarer", "more frequent")
             for b in range(n + 1)]
            for a in range(n + 1)
        ]
    )  # fmt: skip
    assert named.any()
    for rate in (0.02, 0.1, 0.2, 0.5):
        law = stats.binom(n, rate).pmf(np.arange(n + 1))
        assert law @ named @ law <= 0.1, rate


def test_the_detectable_rate_is_shown_with_eighty_percent() -> None:
    seen = slow_launches(0, 40, 10, 40, alpha=0.05)
    assert seen.verdict == "rarer"
    assert seen.rarer_from is not None
    verdicts = [slow_launches(c, 40, 10, 40, alpha=0.05).verdict for c in range(41)]
    few = max(c for c, verdict in enumerate(verdicts) if verdict == "rarer")
    assert stats.binom.cdf(few, 40, seen.rarer_from) == pytest.approx(0.8)
    assert seen.more_from is not None
    many = verdicts.index("more frequent")
    assert stats.binom.sf(many - 1, 40, seen.more_from) == pytest.approx(0.8)


def test_too_few_launches_show_nothing() -> None:
    seen = slow_launches(0, 3, 1, 3, alpha=0.05)
    assert seen.verdict == "no difference shown"  # data
    assert (seen.rarer_from, seen.more_from) == (None, None)
    assert slow_launches(0, 0, 0, 0, alpha=0.05).rate == 0.0


def test_more_slow_launches_than_launches_are_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and"):
        slow_launches(4, 3, 0, 3, alpha=0.05)
