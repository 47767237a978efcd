"""One yardstick: the ratio, its interval and the verdict are of the same pairs."""

from __future__ import annotations

import pytest

from benchmarks.testbed_proof import CASES, heading, line, row


def test_the_table_shows_no_second_yardstick() -> None:
    # Two medians whose quotient (2.0) is not the median of the pairs' ratios (0.4).
    found = {
        "a_median_s": 1.0, "b_median_s": 2.0, "gain": 1.5, "gain_ci95": [1.0, 2.0],
        "pairs": 12, "significant": True,
    }  # fmt: skip
    shown = row(CASES[0], found)
    assert shown["ratio"] == pytest.approx(0.4)
    assert shown["ratio_ci95"] == pytest.approx([1 / 3, 0.5])
    assert shown["as_expected"]
    assert "B s" not in heading()
    assert "2.000" not in line(shown)
