"""The rule of screening, exactly and on noise of several shapes; and the rank correlation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from autotune.stats.cheap_runs import (
    CHANCE,
    DEFAULTS,
    Agreement,
    clear_step,
    rank_correlation,
    shows_no_gain,
)
from tests.case_table import case_table

GAIN = 0.05


def screened(defaults: list[float], first: float, fresh: float, second: float) -> bool:
    """The order of the runs: defaults, the setting, a fresh default, the setting."""
    return shows_no_gain(first, defaults, GAIN) and shows_no_gain(second, [*defaults, fresh], GAIN)


def test_every_order_of_equal_times_counted() -> None:
    # Ranks are spread so that the gain of 5 % changes no order: the case in which the setting is
    # exactly 5 % faster than the default.
    found = sum(
        screened([float(2**r) for r in ranks[:5]], 2 ** ranks[5] / 1.05, 2 ** ranks[6],
                 2 ** ranks[7] / 1.05)
        for ranks in itertools.permutations(range(8))
    )  # fmt: skip
    exact = Fraction(found, math.factorial(8))
    assert 0 < exact <= Fraction(1, math.comb(DEFAULTS + 2, 2))
    assert pytest.approx(1 / 21) == CHANCE


NOISES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(0, 0.05, n),
    "quiet": lambda rng, n: rng.normal(0, 0.002, n),
    "heavy": lambda rng, n: 0.03 * rng.standard_t(2, n),
    "slow launches": lambda rng, n: 0.02 * rng.normal(size=n) + 0.4 * (rng.random(n) < 0.1),
}


@case_table("noise", NOISES)
def test_a_faster_setting_is_rarely_screened_out(noise: str) -> None:
    rng = np.random.default_rng(5)
    times = 20_000
    logs = NOISES[noise](rng, 8 * times).reshape(times, 8)
    logs[:, [5, 7]] -= math.log1p(GAIN)
    found = sum(screened(row[:5].tolist(), row[5], row[6], row[7]) for row in np.exp(logs))
    assert found <= stats.binom.ppf(0.999, times, CHANCE)


def test_a_slower_setting_is_screened_out() -> None:
    rng = np.random.default_rng(6)
    rows = np.exp(rng.normal(0, 0.02, (200, 8)))
    rows[:, [5, 7]] *= 1.3
    assert all(screened(row[:5].tolist(), row[5], row[6], row[7]) for row in rows)


def test_too_few_runs_of_the_default_say_nothing() -> None:
    assert not shows_no_gain(9.0, [1.0] * (DEFAULTS - 1), GAIN)
    assert shows_no_gain(9.0, [10.0] + [1.0] * DEFAULTS, GAIN)


def test_a_clear_step_is_rare() -> None:
    rng = np.random.default_rng(8)
    runs = rng.normal(0, 0.03, (10_000, 6))
    variance = ((runs[:, 2:4] - runs[:, 4:]) ** 2).sum(axis=1) / 4
    steps = runs[:, 0] - runs[:, [1, 2]].mean(axis=1)
    found = sum(s < -clear_step(v, 2) for s, v in zip(steps, variance, strict=True))
    assert found <= stats.binom.ppf(0.999, len(runs), 0.001)


def refuted(settings: int, spread: float, together: bool, times: int = 500) -> float:
    """How often forms are taken to disagree, with 5 % noise in both; ``together``: they agree."""
    rng = np.random.default_rng(9)
    true = rng.normal(0, spread, (2, times, settings))
    logs = true[[0, 0 if together else 1]] + rng.normal(0, 0.05, true.shape)
    found = sum(
        Agreement.of(list(zip(cheap, full, strict=True)), 0.05**2, 0.05**2).is_refuted
        for cheap, full in zip(*np.exp(logs).tolist(), strict=True)
    )
    return found / times


def test_forms_that_agree_are_rarely_refuted_where_settings_differ() -> None:
    assert refuted(8, 0.3, together=True) < 0.01
    assert refuted(8, 0.1, together=True) < 0.15
    assert refuted(24, 0.1, together=True) < 0.03


def test_forms_that_disagree_are_refuted() -> None:
    assert refuted(8, 0.3, together=False) > 0.85
    assert refuted(24, 0.3, together=False) > 0.99
    # Settings that are all alike show no agreement.
    assert refuted(24, 0.0, together=True) > 0.85


def test_noise_and_equal_settings_lower_what_is_needed() -> None:
    same = [(1 + i / 100, 1 + i / 100) for i in range(9)]
    assert Agreement.of(same, 0.0, 0.0).needed == pytest.approx(0.6)
    assert 0.3 < Agreement.of(same, 0.01**2, 0.01**2).needed < 0.6
    assert Agreement.of(same, 1.0, 1.0).needed == pytest.approx(0.3)
    cliffs = [*[(1.0, 1.0)] * 7, (3.0, 3.0), (5.0, math.inf)]
    assert Agreement.of(cliffs, 0.01**2, 0.01**2).needed == pytest.approx(0.3)


def test_ranks_are_compared_and_failures_rank_last() -> None:
    assert rank_correlation([1, 2, 3], [10, 11, 900]) == pytest.approx(1)
    assert rank_correlation([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert rank_correlation([1, 2, math.inf, math.inf], [1, 2, math.inf, 7]) > 0.9
    assert rank_correlation([1, 1, 1], [1, 2, 3]) == 0
    assert rank_correlation([1], [2]) == 0
    assert rank_correlation([], []) == 0
