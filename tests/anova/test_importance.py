"""Importance: planted effects come out on top, and shares are what they should be."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from autotune.anova.importance import around_best, importance, parts_of
from autotune.anova.table import RunTable
from autotune.errors import WorkError
from autotune.report.figures import Mark, bars, dots
from benchmarks.harness.synthetic_tables import cell_facts, no_effect, random_settings, table_of
from tests.anova.conftest import TRUTH, choices
from tests.refusals import refused


def table(effect=TRUTH, count: int = 100) -> RunTable:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(0)
    cells = cell_facts(["a", "b"], ["S"], [4])
    return table_of(random_settings(choices(), count, rng), cells, effect, rng)


def test_shares_of_a_tree_are_those_of_its_whole_table() -> None:
    """Against brute force: the variance of the means over the full product of levels."""
    from sklearn.ensemble import RandomForestRegressor

    levels = [3, 2, 4]
    grid = np.array(list(itertools.product(*(range(n) for n in levels))))
    rng = np.random.default_rng(0)
    y = grid[:, 0] * 1.0 + 2.0 * (grid[:, 1] * (grid[:, 2] > 1)) + 0.1 * rng.standard_normal(24)
    forest = RandomForestRegressor(n_estimators=5, random_state=0).fit(grid, y)
    parts = parts_of(forest, levels, [0, 1, 2])
    for tree, part in zip(forest.estimators_, parts, strict=True):
        cube = tree.predict(grid).reshape(levels)
        total = cube.var()
        for axis in range(3):
            others = tuple(a for a in range(3) if a != axis)
            assert part.alone[axis] == pytest.approx(cube.mean(axis=others).var() / total)
        joint = cube.mean(axis=0)
        both = joint.var() / total - part.alone[1] - part.alone[2]
        assert part.pairs[1, 2] == pytest.approx(both)


def test_planted_effects_come_first_and_the_rest_is_uncertain() -> None:
    found = importance(table())
    assert [m.name for m in found.parameters[:2]] == ["eager", "links"]
    first = found.parameters[0]
    assert first.certain
    assert first.alone > 0.5
    assert first.spearman is not None
    assert first.spearman > 0.8
    assert not any(m.certain for m in found.parameters[2:])
    assert not found.notes


def test_noise_is_called_noise() -> None:
    found = importance(table(no_effect))
    assert found.notes
    assert found.r2 < 0.1


def test_too_few_settings_are_refused() -> None:
    with refused(WorkError, "dataset.too_small"):
        importance(table(count=10))


def test_the_landscape_around_the_best_setting() -> None:
    found = table()
    near = around_best(found, "a.S.4", ["eager"])
    here = [step for step in near if step.here]
    assert [step.level for step in here] == ["4"]
    assert here[0].measured
    assert here[0].ratio == min(step.ratio for step in near)
    assert max(near, key=lambda step: step.ratio).level == "1"


def test_drawings_are_text_that_cannot_be_broken_out_of() -> None:
    marks = [Mark("<b>", 0.5, 0.4, 0.6), Mark("none", float("nan"), float("nan"), float("nan"))]
    for draw in (dots, bars):
        text = draw("a & b", "x", marks)
        assert "<b>" not in text
        assert "&lt;b&gt;" in text
        assert text.count("<svg") == text.count("</svg>") == 1
