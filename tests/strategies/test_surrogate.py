"""The model that picks offspring."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from autotune.strategies import _surrogate as model
from autotune.strategies._codec import Codec
from autotune.testing.landscapes import MANY

CODEC = Codec(MANY)


def _random(count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.array([[int(rng.integers(n)) for n in CODEC.sizes] for _ in range(count)])


def _likeness(a: np.ndarray, b: np.ndarray) -> float:
    total = 0.0
    for axis, x, y in zip(CODEC.axis, a.tolist(), b.tolist(), strict=True):
        if x == y:
            total += 1
        elif x in axis and y in axis:
            total += math.exp(-abs(axis.index(x) - axis.index(y)) / model.REACH)
    return total / len(CODEC.axis)


def _kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    k = np.array([[_likeness(x, y) for y in b] for x in a])
    return model.SCALE**2 * np.exp(model.COUPLING * (k - 1))


def test_expected_improvement_is_that_of_a_gaussian_process() -> None:
    known, asked = _random(12, 1), _random(6, 2)
    ratios = np.random.default_rng(3).uniform(0.7, 1.3, 12)
    surrogate = model.Surrogate(CODEC)
    for codes, ratio in zip(known.tolist(), ratios, strict=True):
        surrogate.add(tuple(codes), float(ratio))
    logs = np.log(ratios)
    inverse = np.linalg.inv(_kernel(known, known) + model.NOISE**2 * np.eye(12))
    cross = _kernel(asked, known)
    mean = cross @ inverse @ logs
    deviation = np.sqrt(model.SCALE**2 - np.einsum("ij,jk,ik->i", cross, inverse, cross))
    z = (logs.min() - mean) / deviation
    expected = deviation * (z * norm.cdf(z) + norm.pdf(z))
    assert surrogate.improvement(asked) == pytest.approx(expected, rel=2e-3)


def test_failures_are_the_worst_and_do_not_break_the_model() -> None:
    surrogate = model.Surrogate(CODEC)
    bad, good = [0] * len(CODEC.sizes), [0] * len(CODEC.sizes)
    bad[0], good[0] = 1, 2
    near_bad, near_good = list(bad), list(good)
    near_bad[5] = near_good[5] = 1
    surrogate.add(tuple(bad), math.inf)
    surrogate.add(tuple(good), 0.9)
    hope = surrogate.improvement(np.array([near_bad, near_good]))
    assert np.isfinite(hope).all()
    assert hope[1] > hope[0]


def test_nothing_known_nothing_preferred() -> None:
    assert (model.Surrogate(CODEC).improvement(_random(4, 0)) == 0).all()


def test_when_full_it_keeps_the_better_half(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "_FULL", 20)
    monkeypatch.setattr(model, "_KEEP", 10)
    codes = [tuple(c) for c in _random(20, 4).tolist()]
    full, fresh = model.Surrogate(CODEC), model.Surrogate(CODEC)
    for place, one in enumerate(codes):
        full.add(one, 1 + place % 2)
    full.add((0,) * len(CODEC.sizes), 0.5)
    for one in codes[::2]:
        fresh.add(one, 1.0)
    fresh.add((0,) * len(CODEC.sizes), 0.5)
    asked = _random(5, 6)
    assert full.improvement(asked) == pytest.approx(fresh.improvement(asked), rel=1e-4)
