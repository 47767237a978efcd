"""What the series of A/A studies calls a failure, and commands that a benchmark runs."""

from __future__ import annotations

from collections import Counter

import pytest
from scipy.stats import binom

from benchmarks import null_studies
from benchmarks.common import autotune, rejected_share
from tests.case_table import case_table


def test_false_winners_and_stops_of_a_null_series() -> None:
    most = null_studies.most_false(40)
    assert (most, null_studies.most_false(20)) == (5, 4)
    assert null_studies.judge(Counter(recommended=5, keep_default=35), 40, most) == []
    assert null_studies.judge(Counter(recommended=6, keep_default=34), 40, most)
    assert null_studies.judge(Counter(recommended=1, keep_default=19), 20, 0)
    assert null_studies.judge(Counter(keep_default=39), 40, most)
    assert null_studies.judge(Counter(contradicted=1, keep_default=39), 40, most)


@case_table(("hits", "of"), [(0, 40), (3, 40), (40, 40)])
def test_clopper_pearson_leaves_the_tails_it_says(hits: int, of: int) -> None:
    low, high = null_studies.clopper_pearson(hits, of)
    assert low <= hits / of <= high
    if hits:
        assert binom.sf(hits - 1, of, low) == pytest.approx(0.025)
    if hits < of:
        assert binom.cdf(hits, of, high) == pytest.approx(0.025)


def test_rejected_share_of_searches_and_comparisons() -> None:
    assert rejected_share({"runs": 20, "runs_rejected": 5}) == 0.25
    found = {"search_runs": 30, "confirmation_runs": 10, "runs_rejected": 10}
    assert rejected_share(found) == 0.25
    assert rejected_share({}) == 0.0


def test_a_command_gives_its_exit_code_and_message() -> None:
    answer = autotune("compare", "default", "x=1", "--app", "no-such-app", timeout_s=60)
    assert answer.code == 2
    assert answer.result == {}
    assert "no-such-app" in answer.text
