"""The main command, simulated: what it costs, what it proves, and what it must not name."""

from __future__ import annotations

import pytest

from benchmarks.main_simulation import CASES, KINDS, study
from benchmarks.study_simulation import allowed


def test_a_study_proves_what_acts_and_says_what_its_runs_were() -> None:
    done = [study(CASES["10 % at 1 %"], "ga", 40, seed) for seed in range(2)]
    assert any(one.tried for one in done)
    assert all(one.right for one in done if one.tried)
    assert not any(one.false or one.riders for one in done)
    for one in done:
        assert set(one.runs) <= set(KINDS)
        assert one.runs["search"] >= 40


@pytest.mark.slow
@pytest.mark.parametrize("case", [name for name in CASES if name.startswith("null")])
def test_nothing_is_named_where_nothing_is_faster(case: str) -> None:
    assert sum(study(CASES[case], "ga", 100, seed).false for seed in range(200)) <= allowed(200)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["10 % at 1 %", "10 % at 5 %"])
def test_nine_of_ten_gains_that_the_search_tried_are_proven(case: str) -> None:
    done = [study(CASES[case], "ga", 100, seed) for seed in range(200)]
    tried = [one for one in done if one.tried]
    # A true share of 90 % stays within two standard errors of it.
    least = 0.9 * len(tried) - 2 * (len(tried) * 0.09) ** 0.5
    assert sum(one.right for one in tried) >= least
    assert sum(one.false for one in done) <= allowed(200)
