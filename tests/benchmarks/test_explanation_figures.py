"""The figures of the explanations are those that the code draws now, and show what is said."""

from __future__ import annotations

import pytest

from benchmarks import explanation_figures


@pytest.mark.parametrize("name", explanation_figures.PICTURES)
def test_the_figure_is_up_to_date(name: str) -> None:
    present = (explanation_figures.FIGURES / name).read_text(encoding="utf-8")
    made = explanation_figures.PICTURES[name]()
    assert present == made, "draw it anew: python -m benchmarks.explanation_figures"


def test_the_drift_is_larger_than_the_gain_and_the_blocks_show_the_gain() -> None:
    default, candidate = explanation_figures.launches(12)
    assert candidate[-1][1] > default[0][1]
    faster = sum(c < d for (_, d), (_, c) in zip(default, candidate, strict=True))
    assert faster > 8


def test_the_race_spends_less_on_what_is_clearly_worse() -> None:
    raced = explanation_figures.race()
    assert len(raced[-1][1]) == 1
    assert max(len(runs) for gain, runs in raced if gain > 0) > 1


def test_the_lowest_layer_imports_nothing_of_autotune() -> None:
    assert explanation_figures.layers()[-1] == "runner"
