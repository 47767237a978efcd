"""Effects of single levels, from settings that change many parameters at once."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from autotune.stats.effects import level_effects

NAMES = [f"p{i}" for i in range(20)]


def settings(rng: np.random.Generator, count: int = 100) -> list[dict[str, int]]:
    """Settings with two parameters of five changed, to one of four levels."""
    return [
        {name: int(rng.integers(1, 5)) for name in NAMES if rng.random() < 0.4}
        for _ in range(count)
    ]


def ratios(
    found: list[dict[str, int]], acting: dict[tuple[str, int], float], noise: float, seed: int
) -> list[list[float]]:
    """One run of each setting; ``acting``: factors of the time."""
    rng = np.random.default_rng([seed, 1])
    times = [
        math.prod(acting.get(level, 1.0) for level in setting.items()) * rng.lognormal(0, noise)
        for setting in found
    ]
    return [[float(time)] for time in times]


def test_levels_that_act_are_found_with_their_size() -> None:
    found = settings(np.random.default_rng(3))
    acting = {("p3", 2): 1 / 1.1, ("p5", 1): 1.3}
    effects = level_effects(found, ratios(found, acting, 0.02, 3), 0.02)
    assert effects[("p3", 2)] == pytest.approx(math.log(1 / 1.1), abs=0.02)
    assert effects[("p5", 1)] == pytest.approx(math.log(1.3), abs=0.02)
    assert all(abs(value) < 0.03 for level, value in effects.items() if level not in acting)


def test_noise_alone_rarely_has_an_effect() -> None:
    named = 0
    for seed in range(20):
        found = settings(np.random.default_rng(seed))
        effects = level_effects(found, ratios(found, {}, 0.05, seed), 0.05)
        named += sum(value < -0.01 for value in effects.values())
    # 80 levels each time, of which half could look faster.
    assert named <= 10


def test_one_slow_launch_makes_no_effect_and_failures_count_as_slow() -> None:
    found = settings(np.random.default_rng(5))
    times = ratios(found, {("p3", 2): 0.9}, 0.01, 5)
    slow = next(i for i, setting in enumerate(found) if setting.get("p3") == 2)
    times[slow] = [5.0]
    for i, setting in enumerate(found):
        if setting.get("p7") == 4:
            times[i] = [math.inf]
    effects = level_effects(found, times, 0.01)
    assert effects[("p3", 2)] == pytest.approx(math.log(0.9), abs=0.02)
    assert effects[("p7", 4)] > 0.3


def test_without_runs_nothing_is_known() -> None:
    assert level_effects([], [], 0.05) == {}
    assert level_effects([{"p1": 1}], [[]], 0.05) == {}


@given(
    rows=st.lists(
        st.tuples(
            st.frozensets(st.integers(0, 7), max_size=5),
            st.floats(0.05, 3.0),
            st.integers(1, 3),
        ),
        max_size=12,
    ),
    noise=st.floats(0.0, 0.3),
)
@example(
    rows=[
        (frozenset(levels), ratio, 1)
        for levels, ratio in [
            ({0, 1}, 0.479),
            ({1, 2, 3, 4}, 0.1766),
            ({1}, 2.0),
            ({0, 2, 5}, 0.1427),
            ({2}, 0.281),
            ({3, 5, 6}, 0.2186),
            ({0}, 0.1416),
        ]
    ],
    noise=0.00093,
)
def test_any_runs_have_finite_effects(
    rows: list[tuple[frozenset[int], float, int]], noise: float
) -> None:
    """Also where many levels act on few settings and the noise is far below their effects."""
    found = [{f"p{i}": 1 for i in levels} for levels, _, _ in rows]
    runs = [[ratio] * count for _, ratio, count in rows]
    effects = level_effects(found, runs, noise)
    assert all(math.isfinite(effect) for effect in effects.values())


@given(steps=st.integers(0, 6), seed=st.integers(0, 10_000), noise=st.floats(1e-4, 0.3))
def test_each_level_that_acts_has_its_mean_also_when_the_steps_run_out(
    steps: int, seed: int, noise: float
) -> None:
    rng = np.random.default_rng(seed)
    found = settings(rng, int(rng.integers(1, 60)))
    acting = {
        (f"p{int(rng.integers(20))}", int(rng.integers(1, 5))): float(rng.uniform(0.4, 2.5))
        for _ in range(6)
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("autotune.stats.effects._STEPS", steps)
        effects = level_effects(found, ratios(found, acting, noise, seed), noise)
    assert len(effects) <= steps
    assert all(math.isfinite(value) for value in effects.values())


def test_a_prior_that_gets_flatter_and_flatter_ends_no_study() -> None:
    """Ratios of a simulated study whose settings take 1.9 times as long in every fourth launch."""
    sample = json.loads((Path(__file__).parent / "data" / "flat_priors.json").read_text())
    effects = level_effects(sample["settings"], sample["ratios"], sample["noise"])
    assert all(math.isfinite(effect) for effect in effects.values())
