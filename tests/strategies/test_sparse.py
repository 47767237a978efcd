"""The surrogate with sparse effects, against exact posteriors."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy.stats import norm

from autotune.space import Parameter, Space
from autotune.strategies.auto import Auto
from autotune.strategies.base import Strategy
from autotune.strategies.codec import Codec
from autotune.strategies.ga.strategy import Genetic
from autotune.strategies.levels import Levels
from autotune.strategies.models import sweeps
from autotune.strategies.models.sparse import Beliefs, Columns, SparseEffects
from autotune.strategies.options import OptionValue
from autotune.strategies.random_search import RandomSearch
from autotune.study import search_study

KNOWN = Beliefs(
    acting=1e-9,
    sibling_chance=1e-9,
    cost_sd=1e-6,
    spread=0.05,
    spread_weight=1e8,
    noise_weight=1e8,
    tail=1e8,
    samples=3000,
)
"""Nothing acts, and costs and noise are known: the posterior is normal."""
FLAGS = Space("flags", tuple(Parameter(f"p{i}", ("on",)) for i in range(5)))


def _fitted(
    space: Space, beliefs: Beliefs, codes: np.ndarray, logs: np.ndarray, seed: int = 0
) -> SparseEffects:
    codec = Codec(space)
    levels = Levels(codec)
    columns = Columns(codec, levels, beliefs)
    return SparseEffects(levels, columns, beliefs, codes, logs, np.random.default_rng(seed))


def test_small_costs_are_those_of_a_linear_regression() -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 2, (9, 5))
    logs = rng.normal(0.0, 0.05, 9)
    samples = _fitted(FLAGS, KNOWN, codes, logs).samples[:, 1::2]
    precision = codes.T @ codes / KNOWN.noise**2 + np.eye(5) / KNOWN.spread**2
    covariance = np.linalg.inv(precision)
    right = codes.T @ logs / KNOWN.noise**2 + KNOWN.cost / KNOWN.spread**2
    error = 5 * np.sqrt(covariance.diagonal() / KNOWN.samples)
    assert (np.abs(samples.mean(axis=0) - covariance @ right) < 2 * error).all()
    np.testing.assert_allclose(np.cov(samples.T), covariance, atol=1.5e-4)


def test_the_probability_that_a_level_acts_is_exact() -> None:
    space = Space("one", (Parameter("p", ("on",)),))
    beliefs = dataclasses.replace(KNOWN, acting=0.3, sibling_chance=0.3, spread=0.001)
    for log in (-0.05, -0.1):
        samples = _fitted(space, beliefs, np.array([[1]]), np.array([log])).samples[:, 1]
        acts = 0.3 * norm.pdf(log, 0, math.hypot(beliefs.slab, beliefs.noise))
        idle = 0.7 * norm.pdf(log, beliefs.cost, math.hypot(beliefs.spread, beliefs.noise))
        apart = np.abs(samples - beliefs.cost) > 0.01
        # A few effects that act are as small as a cost.
        assert apart.mean() == pytest.approx(acts / (acts + idle), abs=0.06)


def test_the_same_numbers_give_the_same_samples() -> None:
    codes, logs = np.eye(5, dtype=np.intp), np.linspace(-0.2, 0.1, 5)
    first, second = (_fitted(FLAGS, Beliefs(), codes, logs, 3).samples for _ in range(2))
    assert (first == second).all()
    assert (_fitted(FLAGS, Beliefs(), codes, logs, 4).samples != first).any()


@pytest.mark.parametrize("runs", [0, 1, 12, 50])
def test_without_a_compiler_the_samples_are_the_same(
    runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ordered = Parameter("size", (1, 2, 4, 8, 16), default=1)
    space = Space("mixed", (ordered, *(Parameter(f"p{i}", ("a", "b")) for i in range(9))))
    rng = np.random.default_rng(runs)
    codes = rng.integers(0, 3, (runs, 10))
    logs = rng.normal(0.01, 0.05, runs) - 0.2 * (codes[:, 3] == 1)
    assert sweeps.compiled() is not None, "there is a compiler here"
    compiled = _fitted(space, Beliefs(), codes, logs).samples
    monkeypatch.setattr(sweeps, "compiled", lambda: None)
    assert (_fitted(space, Beliefs(), codes, logs).samples == compiled).all()


def test_without_a_compiler_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "compiler", lambda: None)
    assert sweeps.compiled.__wrapped__() is None


def test_few_runs_of_many_changes_show_the_level_that_helps() -> None:
    space = Space("many", tuple(Parameter(f"p{i:02d}", ("a", "b")) for i in range(20)))
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 3, (15, 20))
    logs = 0.005 * (codes > 0).sum(axis=1) - 0.2 * (codes[:, 7] == 1) + rng.normal(0, 0.02, 15)
    effects = _fitted(space, Beliefs(), codes, logs).samples.mean(axis=0).reshape(20, 3)
    assert np.argmin(effects[:, 1]) == 7
    assert effects[7, 1] == pytest.approx(-0.2, abs=0.05)
    assert np.abs(np.delete(effects, 7, axis=0)).max() < 0.06


def test_other_levels_of_a_parameter_that_acts_are_expected_to_act() -> None:
    space = Space("two", tuple(Parameter(f"p{i}", ("a", "b", "c")) for i in range(8)))
    codes = np.zeros((6, 8), dtype=np.intp)
    codes[:3, 0], codes[3:, 1] = 1, 1
    logs = np.array([-0.2, -0.2, -0.2, 0.0, 0.0, 0.0])
    samples = _fitted(space, Beliefs(), codes, logs).samples
    # The choices of the first parameter are unset, a, b, c; then those of the second follow.
    assert samples[:, 2].mean() < samples[:, 6].mean() - 0.01
    assert samples[:, 2].std() > 1.5 * samples[:, 6].std()


def test_neighbouring_levels_of_a_size_are_alike() -> None:
    space = Space("size", (Parameter("size", (1, 2, 4, 8, 16), default=1), *FLAGS.parameters))
    codec = Codec(space)
    codes = np.zeros((4, 6), dtype=np.intp)
    codes[:, 0] = codec.choices[0].index(16)
    effects = _fitted(space, Beliefs(samples=400), codes, np.full(4, -0.3)).samples.mean(axis=0)
    near, far = (effects[codec.choices[0].index(value)] for value in (8, 2))
    assert near < far - 0.02


def test_a_run_that_was_slow_by_chance_does_not_count_against_its_levels() -> None:
    codes = np.tile([1, 0, 0, 0, 0], (6, 1))
    logs = np.array([-0.1, -0.1, -0.1, -0.1, -0.1, 0.25])
    usual = dataclasses.replace(Beliefs(), tail=1e8)
    robust = _fitted(FLAGS, Beliefs(), codes, logs).samples[:, 1].mean()
    assert robust < _fitted(FLAGS, usual, codes, logs).samples[:, 1].mean() - 0.01


def test_before_any_run_a_change_is_expected_to_cost_a_little() -> None:
    none = np.empty((0, 5), dtype=np.intp)
    samples = _fitted(FLAGS, Beliefs(samples=2000), none, np.empty(0)).samples
    assert (samples[:, ::2] == 0).all()
    assert samples[:, 1::2].mean() == pytest.approx(Beliefs().cost * 0.6, abs=0.01)


@pytest.mark.parametrize(
    ("strategy", "options", "count", "slow"),
    [
        pytest.param(Auto, {}, 12, True, id="auto"),
        pytest.param(Auto, {}, 3, False, id="auto_listed"),
        pytest.param(Genetic, {}, 12, True, id="ga"),
        pytest.param(Genetic, Genetic.presets["thesis"], 12, False, id="ga_thesis"),
        pytest.param(RandomSearch, {}, 12, False, id="random"),
    ],
)
def test_what_a_missing_compiler_slows_is_known(
    monkeypatch: pytest.MonkeyPatch,
    strategy: type[Strategy],
    options: dict[str, OptionValue],
    count: int,
    slow: bool,
) -> None:
    space = Space("x", tuple(Parameter(f"p{at}", (0, 1, 2)) for at in range(count)))
    made = strategy(space, seed=1, options=options)
    monkeypatch.setattr(sweeps, "compiler", lambda: None)
    monkeypatch.setattr(search_study, "compiled", sweeps.compiled.__wrapped__)
    assert search_study.is_slowed(made) is slow
    monkeypatch.setattr(search_study, "compiled", lambda: sweeps.interpreted)
    assert not search_study.is_slowed(made)
