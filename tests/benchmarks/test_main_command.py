"""The verdict of the main command beside another commit, from figures of searches."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from benchmarks.common import ROOT, Answer
from benchmarks.main_command import HERE, THERE, Checkout, figures_of, judge, ratios


def answer(wall_s: float, runs: int, code: int = 0) -> Answer:
    result: dict[str, Any] = {
        "status": "recommended", "search_runs": runs - 10, "confirmation_runs": 10,
        "runs_rejected": 1, "overhead_s": wall_s / 100,
    }  # fmt: skip
    return Answer(code, {} if code else result, "reason", wall_s)


def test_ratios_and_verdict() -> None:
    walls = {HERE: (21.0, 22.0, 40.0), THERE: (20.0, 22.0, 20.0)}
    rows = [
        figures_of(side, seed, answer(wall_s, 100))
        for side, times in walls.items()
        for seed, wall_s in enumerate(times)
    ]
    found = ratios(rows, "wall_s")
    assert found["of_medians"] == pytest.approx(1.1)
    assert found["median_of_pairs"] == pytest.approx(1.05)
    assert found["pairs"] == pytest.approx({0: 1.05, 1: 1.0, 2: 2.0})
    every = {figure: ratios(rows, figure) for figure in ("wall_s", "wall_s_per_run")}
    assert len(judge(every, 1.05)) == 2
    assert judge(every, 1.1) == []


def test_a_search_without_a_result_ends_the_benchmark() -> None:
    with pytest.raises(SystemExit):
        figures_of(HERE, 0, answer(1.0, 100, code=1))


def test_the_checkout_of_a_python() -> None:
    assert Checkout.of(sys.executable).place == ROOT
    with pytest.raises(SystemExit):
        Checkout.of("/bin/false")
