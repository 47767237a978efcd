"""The families of landscapes: the same for ever, with the properties that their page says."""

from __future__ import annotations

import hashlib
import itertools
import math

import numpy as np
import pytest

from autotune.space import DEFAULT, Setting
from benchmarks.search.families import FAMILIES, LANDSCAPES, landscape, landscapes
from benchmarks.search.landscapes import Land
from tests.case_table import case_table

DIGESTS = {
    "benign": ("f5c3cf4f14ac25a5", "d3adfcb521ab8026"),
    "harsh": ("2e9701f110b54c03", "4cb8556c296cfef7"),
    "wide": ("8ba1ef0222b5569b", "f39f1990cb845efb"),
}
"""Of the landscapes for development, and of those held out. They are never changed."""


def _singles(land: Land) -> list[Setting]:
    return [Setting({p.name: c}) for p in land.space for c in p.choices if c is not None]


def _digest(lands: list[Land]) -> str:
    """All ratios of single changes, three runs of the default, and the best, of every landscape."""
    state = hashlib.sha256()
    for land in lands:
        rng = np.random.default_rng(0)
        values = [land.best, *map(land.truth, _singles(land))]
        values += [land.draw(DEFAULT, rng)[0] for _ in range(3)]
        state.update(f"{land.name} {land.space.names} {[f'{v:.9g}' for v in values]}".encode())
    return state.hexdigest()[:16]


@case_table("family", FAMILIES)
def test_the_landscapes_are_the_same_for_ever(family: str) -> None:
    seen = tuple(_digest(landscapes(family, held_out=held)) for held in (False, True))
    assert seen == DIGESTS[family]


@case_table("family", FAMILIES)
def test_a_family_has_what_it_says(family: str) -> None:
    kind = FAMILIES[family]
    ratios = []
    for land in landscapes(family) + landscapes(family, held_out=True):
        assert kind.parameters[0] <= len(land.space.names) <= kind.parameters[1]
        assert land.truth(DEFAULT) == 1
        assert 0.08 <= 1 / land.best - 1 <= 0.40
        singles = [land.truth(setting) for setting in _singles(land)]
        acting = {n for s in _singles(land) if land.truth(s) < 1 for n in s}
        assert 2 <= len(acting) <= 4
        ratios += [ratio for ratio in singles if ratio >= 1]
    slow = [ratio for ratio in ratios if ratio > 1.5]
    assert len(slow) / len(ratios) == pytest.approx(kind.cliffs, rel=0.25)
    assert any(math.isinf(ratio) for ratio in slow)
    assert all(ratio <= 8 or math.isinf(ratio) for ratio in slow)
    costs = [math.log(ratio) for ratio in ratios if ratio <= 1.5]
    assert float(np.mean(costs)) == pytest.approx(kind.cost, rel=0.15)


@case_table("family", FAMILIES)
def test_the_best_ratio_is_reached_and_never_passed(family: str) -> None:
    reached = 0
    for land in (landscape(family, number) for number in range(LANDSCAPES)):
        singles = {s: land.truth(s) for s in _singles(land)}
        good = {n: [s[n] for s in singles if n in s and singles[s] < 1] for s in singles for n in s}
        acting = [n for n, values in good.items() if values]
        found = [
            land.truth(Setting(dict(zip(acting, values, strict=True))))
            for values in itertools.product(*(good[n] for n in acting))
        ]
        reached += min(found) == pytest.approx(land.best)
        assert min(found) >= land.best - 1e-12
    assert reached == LANDSCAPES


def test_one_run_in_twenty_is_slow_and_the_others_scatter_little() -> None:
    for land in landscapes("harsh")[:5]:
        rng = np.random.default_rng(1)
        runs = np.array([land.draw(DEFAULT, rng)[0] for _ in range(4000)])
        logs = np.log(runs)
        noise = 1.4826 * float(np.median(np.abs(logs - np.median(logs))))
        assert 0.018 <= noise <= 0.068
        # A normal scatter has no run beyond four deviations in 4000.
        tail = float(np.mean(logs > 4 * noise))
        assert 0.01 <= tail <= 0.06


def test_a_landscape_held_out_is_another_one() -> None:
    first, held = landscape("benign", 0), landscape("benign", 0, held_out=True)
    assert first.name != held.name
    assert first.best != held.best
