"""The model-guided default strategy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from autotune.space import Parameter, Setting, Space
from autotune.strategies import SCATTER, Observation, create
from autotune.strategies._additive import Additive, Kernel, Prior
from autotune.strategies._candidates import Pool
from autotune.strategies._codec import Codec
from autotune.testing.landscapes import MANY, SMALL, drive, fine

SPACE = Space(
    "six", tuple(Parameter(f"p{i}", tuple(f"w{k}" for k in range(1, 4))) for i in range(4))
)
"""256 settings."""


def two_matter(setting: Setting) -> tuple[float | None, str]:
    """p0=w2 and p1=w1 help, p2=w3 fails, the rest costs 1 % each."""
    if setting.get("p2") == "w3":
        return None, "failed"
    helps = 0.2 * (setting.get("p0") == "w2") + 0.1 * (setting.get("p1") == "w1")
    return math.exp(0.01 * len(setting) - helps), "ok"


def test_finds_the_two_levels_that_help_in_few_runs() -> None:
    for seed in range(3):
        told = drive(create("auto", SPACE, seed=seed), 25, two_matter)
        best = min(told, key=lambda o: o.fitness)
        assert {"p0": "w2", "p1": "w1"}.items() <= dict(best.setting).items()


def test_leaves_a_level_that_fails() -> None:
    options = {"patience": 0}
    told = drive(create("auto", SPACE, seed=1, options=options), 60, two_matter)
    # A quarter of all settings have it.
    assert sum(o.setting.get("p2") == "w3" for o in told) <= 6


def test_stops_by_itself_where_nothing_helps() -> None:
    def idle(setting: Setting) -> tuple[float | None, str]:
        return 1.02 ** len(setting), "ok"

    told = drive(create("auto", SPACE, seed=0), 255, idle)
    assert 10 <= len(told) < 100
    patient = create("auto", SPACE, seed=0, options={"patience": 0})
    assert len(drive(patient, 120, idle)) == 120


def test_of_many_parameters_each_is_tried_early() -> None:
    wide = Space("wide", tuple(Parameter(f"p{i:02d}", (1, 2, 3)) for i in range(20)))
    told = drive(create("auto", wide, seed=4), 10, lambda setting: (1.0, "ok"))
    assert {name for o in told for name in o.setting} == set(wide.names)


def test_a_whole_search_of_one_setting_counts_it_once() -> None:
    strategy = create("auto", SMALL, seed=0)
    setting = Setting({"flag": 1})
    strategy.tell(Observation(0, setting, 0.9))
    assert not strategy.is_new(setting)
    assert strategy.ask() != setting


def _codes(space: Space, *settings: dict[str, str]) -> np.ndarray:
    codec = Codec(space)
    return np.array([codec.encode(Setting(s)) for s in settings], dtype=np.intp)


def test_the_model_knows_the_default_and_adds_effects() -> None:
    codec = Codec(SPACE)
    kernel = Kernel(codec, Prior().shared)
    seen = _codes(SPACE, {"p0": "w2"}, {"p1": "w1"}, {"p2": "w1"}, {"p3": "w3"})
    model = Additive(kernel, Prior(), seen, np.array([-0.2, -0.1, 0.0, 0.0]))
    asked = _codes(SPACE, {}, {"p0": "w2"}, {"p0": "w2", "p1": "w1"}, {"p2": "w1"})
    mean, deviation = model.predict(asked)
    assert mean[0] == pytest.approx(0, abs=1e-9)
    assert deviation[0] < 1e-5
    assert mean[2] < mean[1] < mean[3]
    np.testing.assert_allclose(mean, model.mean(asked), atol=1e-12)
    # Where something was found, the other levels are believed to matter more.
    assert model.sizes[0] > model.sizes[2]


def test_before_any_run_the_default_is_certain_and_a_change_is_not() -> None:
    codec = Codec(SPACE)
    model = Additive(Kernel(codec, 0.2), Prior(), np.empty((0, 4), dtype=np.intp), np.empty(0))
    _, deviation = model.predict(_codes(SPACE, {}, {"p0": "w1"}, {"p0": "w1", "p1": "w1"}))
    assert deviation[0] < 1e-5 < deviation[1] < deviation[2]


def test_levels_of_a_size_are_alike_when_they_are_near() -> None:
    space = Space("size", (Parameter("size", (1, 2, 4, 8, 16), default=1),))
    kernel = Kernel(Codec(space), 0.0)
    blocks = kernel.blocks
    assert blocks[0].max() == 0  # The default's own effect is none.
    assert blocks[3, 4] > blocks[3, 1]


def test_a_small_space_is_listed_and_a_large_one_climbed() -> None:
    small, large = Codec(SPACE), Codec(MANY)
    everything = Pool(SPACE, small).candidates([], lambda c: -c, lambda c: -c)  # type: ignore[arg-type,return-value]
    assert len(everything) == 256
    pool = Pool(MANY, large)
    assert not pool.small
    good = np.array([1] * len(large.sizes))

    def likes(rows: np.ndarray) -> np.ndarray:
        return -np.abs(rows - good).sum(axis=1).astype(float)

    start = (0,) * len(large.sizes)
    found = pool.candidates([start], likes, likes)
    for codes in found:
        assert large.is_canonical(codes)
    assert max(sum(c == 1 for c in codes) for codes in found) >= 8


def test_asks_the_same_after_the_same_history() -> None:
    told = drive(create("auto", MANY, seed=5), 14, fine)
    again = create("auto", MANY, seed=5)
    again.restore(told[:13])
    proposal = again.ask()
    assert proposal is not None
    assert proposal.setting == told[13].setting


def test_where_the_default_scatters_less_is_believed_and_more_is_tried() -> None:
    noise = np.random.default_rng(0).normal(0, 0.15, 400)

    def looked_at(scatter: float) -> tuple[int, float]:
        strategy = create("auto", SPACE, seed=3)
        for number in range(200):
            proposal = strategy.ask()
            if proposal is None:
                break
            attrs = {**proposal.attrs, SCATTER: [scatter**2, 8]}
            ratio = math.exp(float(noise[number]))
            strategy.tell(Observation(number, proposal.setting, ratio, "ok", attrs))
        told = [strategy._seen[n] for n in sorted(strategy._seen)]  # type: ignore[attr-defined]
        codes, logs = strategy._data(told)  # type: ignore[attr-defined]
        model = strategy._model(told, codes, logs)  # type: ignore[attr-defined]
        return len(told), float(-model.mean(codes).min())

    trusting, careful = looked_at(0.01), looked_at(0.15)
    assert careful[0] > trusting[0]
    assert careful[1] < trusting[1]
