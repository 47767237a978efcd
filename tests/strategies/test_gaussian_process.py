"""The Gaussian process of interactions: its axes, its fit, its predictions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad

from autotune.space import Parameter, Space
from autotune.strategies.codec import Codec
from autotune.strategies.models.gaussian_process import (
    Coordinates,
    ProductProcess,
    SmoothPrior,
)
from tests.case_table import case_table

WORDS = Parameter("word", ("a", "b", "c"), target="arg", default="a")
POWERS = Parameter("power", (1, 2, 4, 8, 16, 32), target="arg", default=4)
SIXTEENS = Parameter("block", tuple(range(16, 257, 16)), target="arg", default=64)
TENS = Parameter("ten", (10, 30, 50, 70, 90), target="arg", default=50)
SPACE = Space("mixed", (WORDS, POWERS, SIXTEENS))


def rows(count: int, seed: int, space: Space = SPACE) -> np.ndarray:
    rng = np.random.default_rng(seed)
    sizes = Codec(space).sizes
    return np.array([[rng.integers(size) for size in sizes] for _ in range(count)])


def tangled(codes: np.ndarray) -> np.ndarray:
    """A log ratio in which the sign of one effect depends on another parameter."""
    turn = np.where(codes[:, 0] == 1, -1.0, 1.0)
    return np.asarray(0.2 * turn * (codes[:, 1] - 2.5) + 0.05 * codes[:, 2] / 16)


@case_table(
    ("parameter", "axes"),
    [(WORDS, 1), (POWERS, 1), (SIXTEENS, 2), (TENS, 1)],
)
def test_divisibility_is_a_second_axis_where_it_says_more_than_size(
    parameter: Parameter, axes: int
) -> None:
    assert Coordinates(Codec(Space("one", (parameter,)))).count == axes


def test_distances_are_those_of_values_and_of_divisions_by_two() -> None:
    codec = Codec(Space("one", (SIXTEENS,)))
    index = {
        SIXTEENS.default if level is None else level: code
        for code, level in enumerate(codec.choices[0])
    }
    places = np.array([[index[96]], [index[128]], [index[112]]])
    squares = Coordinates(codec).squares(places, places).reshape(2, 3, 3)
    assert squares[0, 0, 2] < squares[0, 0, 1]
    assert squares[1, 0, 1] < squares[1, 0, 2] + squares[1, 1, 2]
    assert squares[1, 1, 2] == pytest.approx(1.0)


def test_the_gradient_is_that_of_the_loss() -> None:
    codes = rows(20, 1)
    process = ProductProcess(Coordinates(Codec(SPACE)), SmoothPrior(), codes, tangled(codes))
    for seed in range(3):
        theta = process.theta + np.random.default_rng(seed).normal(0, 0.3, len(process.theta))
        error = check_grad(lambda t: process._loss(t)[0], lambda t: process._loss(t)[1], theta)
        assert error < 1e-3 * (1.0 + np.abs(process._loss(theta)[1]).max())


def test_it_predicts_an_effect_that_depends_on_another() -> None:
    codes, others = rows(60, 2), rows(200, 3)
    noise = np.random.default_rng(4).normal(0, 0.02, 60)
    process = ProductProcess(
        Coordinates(Codec(SPACE)), SmoothPrior(), codes, tangled(codes) + noise
    )
    mean, deviation = process.predict(others)
    off = mean - tangled(others)
    assert np.std(off) < 0.25 * np.std(tangled(others))
    scores = off**2 / (deviation**2 + process.noise**2)
    assert 0.2 < scores.mean() < 3.0
    _, sure = process.predict(codes)
    assert sure.mean() < deviation.mean()


def test_one_run_and_equal_runs_can_be_fitted() -> None:
    coordinates = Coordinates(Codec(SPACE))
    for codes in (rows(1, 5), np.repeat(rows(1, 5), 4, axis=0)):
        process = ProductProcess(coordinates, SmoothPrior(), codes, np.zeros(len(codes)))
        mean, deviation = process.predict(rows(10, 6))
        assert np.isfinite(mean).all()
        assert (deviation > 0).all()
