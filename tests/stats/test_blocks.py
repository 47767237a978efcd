"""Run order, drift and local ratios."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from autotune.stats import DefaultLevel, design, drift_blocks

few = settings(max_examples=60)


@few
@given(st.integers(2, 5), st.integers(0, 30), st.integers(0, 1000))
def test_blocks_are_complete(settings: int, blocks: int, seed: int) -> None:
    order = design(settings, blocks, np.random.default_rng(seed))
    assert len(order) == blocks
    assert all(sorted(block) == list(range(settings)) for block in order)


def test_orders_of_blocks_are_independent() -> None:
    """Every order is as likely, whatever the block before had; no coin for a group of blocks."""
    order = ["".join(map(str, block)) for block in design(3, 6000, np.random.default_rng(5))]
    follows = Counter(pairwise(order))
    assert len(follows) == 36
    assert chisquare(list(follows.values())).pvalue > 0.001


def test_order_is_random_and_repeatable() -> None:
    orders = [design(2, 8, np.random.default_rng(s)) for s in range(60)]
    assert len({str(o) for o in orders}) > 10
    assert orders[0] == design(2, 8, np.random.default_rng(0))
    firsts = np.mean([o[0][0] for o in orders])
    assert 0.3 < firsts < 0.7


def test_a_block_needs_a_candidate() -> None:
    with pytest.raises(ValueError):
        design(1, 4, np.random.default_rng(0))


def test_a_slow_spell_is_found_and_nothing_else() -> None:
    rng = np.random.default_rng(61)
    times = 1 + rng.normal(0, 0.02, 30)
    times[12:19] *= 2.3
    assert drift_blocks(times) == list(range(12, 19))


def test_a_lasting_step_marks_the_shorter_side() -> None:
    times = np.r_[np.ones(14), np.full(6, 1.5)] * (1 + 0.001 * np.arange(20) % 7)
    assert drift_blocks(times) == list(range(14, 20))


@few
@given(st.integers(0, 10**6))
def test_single_outliers_are_no_drift(seed: int) -> None:
    rng = np.random.default_rng(seed)
    times = 1 + rng.uniform(-0.01, 0.01, 24)
    times[[3, 10, 17]] *= 4
    assert drift_blocks(times) == []


def test_plain_noise_is_seldom_taken_for_drift() -> None:
    rng = np.random.default_rng(62)
    alarms = [bool(drift_blocks(np.exp(0.1 * rng.standard_t(3, 20)))) for _ in range(400)]
    assert np.mean(alarms) <= 0.05


def test_drift_below_the_tolerance_or_too_few_blocks_is_left_alone() -> None:
    slow = np.linspace(1, 1.08, 20)
    assert drift_blocks(slow) == []
    assert drift_blocks(slow, tolerance=0.02) != []
    assert drift_blocks([1.0, 2.0, 1.0, 2.0]) == []


def ratios_of(times, is_default) -> list[float]:
    """Every time over what the default takes at its place."""
    places = [int(i) for i in np.flatnonzero(np.asarray(is_default))]
    level = DefaultLevel(places, [times[i] for i in places])
    return [float(time) / level.at(place) for place, time in enumerate(times)]


def test_ratios_take_out_a_drift_in_which_raw_times_mislead() -> None:
    speed = np.geomspace(1, 3, 41)
    is_default = np.arange(41) % 4 == 0
    effect = np.where(is_default, 1.0, 1.1)
    ratios = np.array(ratios_of(speed * effect, is_default))
    assert ratios[~is_default] == pytest.approx(1.1, rel=0.06)
    assert ratios[6:-6] == pytest.approx(effect[6:-6], rel=1e-6)  # inside: exact in logarithms


def test_one_slow_run_of_the_default_does_not_flatter_its_neighbours() -> None:
    is_default = np.arange(30) % 3 == 0
    times = np.ones(30)
    times[15] = 5.0
    ratios = np.delete(ratios_of(times, is_default), 15)
    assert ratios == pytest.approx(1.0)


@few
@given(st.lists(st.floats(0.1, 10), min_size=3, max_size=20), st.floats(0.1, 10))
def test_ratios_know_no_unit(times, unit: float) -> None:
    is_default = [i % 2 == 0 for i in range(len(times))]
    scaled = ratios_of([t * unit for t in times], is_default)
    assert scaled == pytest.approx(ratios_of(times, is_default))


def test_ratio_needs_another_run_of_the_default() -> None:
    assert ratios_of([2.0, 3.0, 2.0], [True, False, True]) == pytest.approx([1, 1.5, 1])
    for is_default in ([False, False], [True, False]):
        with pytest.raises(ValueError):
            ratios_of([1.0, 2.0], is_default)
