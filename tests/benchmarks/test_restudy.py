"""Proven settings measured again: which they are, and what their figures add up to."""

from __future__ import annotations

import pytest

from benchmarks import restudy
from benchmarks.common import ROOT
from benchmarks.restudy import Remeasured, summary


def remeasured(
    gain: float | None, low: float | None = None, high: float | None = None
) -> Remeasured:
    return Remeasured("grid/cell", 0.2, gain, low, high, "better", 8, 1.0, "f", "2026-11-27")


def test_figures_of_comparisons() -> None:
    figures = summary(
        [
            remeasured(0.3, 0.2, 0.4),
            remeasured(0.01, -0.02, 0.04),
            remeasured(-0.1, -0.2, -0.05),
            remeasured(None),
        ]
    )
    assert figures["settings"] == 4
    assert (figures["refused"], figures["proven_again"], figures["slower"]) == (1, 1, 1)
    assert figures["gain_of_0_or_more"] == 2
    assert figures["median_gain"] == 0.01
    low, high = figures["share_95_percent"]
    assert 0 < low < 2 / 3 < high < 1


def test_nothing_was_measured() -> None:
    assert summary([])["median_gain"] is None


def test_the_settings_are_proven_ones_of_complete_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restudy, "list_datasets", lambda: [ROOT / "datasets" / "grid-mate-node"])
    proven = list(restudy.proven_settings("another"))
    assert [one.cell for one in proven] == [
        "mate-jacobi3d",
        "mate-cannon",
        "mate-cloverleaf3d",
        "mate-flowcart",
    ]
    assert all(one.gain > 0 and "variant=mate" in one.setting for one in proven)
