"""Which of two models proposes: the one that predicted better."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from autotune.space import DEFAULT, Parameter, Setting, Space
from autotune.space.expression import parse_expression
from autotune.space.parameter import ParameterKind
from autotune.space.space import Constraint
from autotune.strategies import Observation, create
from autotune.strategies.codec import Codec
from autotune.strategies.models.additive import Prior
from autotune.strategies.models.worlds import Worlds, count_of_starts, worlds

LEVELS = (1, 2, 4, 8, 16, 32)


def space(target: ParameterKind, count: int = 5) -> Space:
    parameters = tuple(Parameter(f"p{k}", LEVELS, target=target, default=4) for k in range(count))
    return Space("six", parameters, (Constraint(parse_expression("p0 * p1 <= 256")),))


def sum_of_effects(codes: np.ndarray) -> float:
    """The third level of the first parameter gains, the last of the second costs a little."""
    return -0.2 * float(codes[0] == 3) + 0.05 * float(codes[1] == 5)


def product_of_effects(codes: np.ndarray) -> float:
    """What one parameter does has the sign that another gives it."""
    centred = codes - 2.5
    return 0.08 * float(centred[0] * centred[1])


def judged(
    target: ParameterKind, log_ratio: Callable[[np.ndarray], float], runs: int = 40, seed: int = 0
) -> Worlds:
    """Both models after random runs with 2 % of noise."""
    codec = Codec(space(target))
    model = worlds(codec, 0.3, lambda count: np.random.default_rng([seed, count]), Prior())
    rng = np.random.default_rng(seed)
    ratios = {}
    while len(ratios) < runs:
        codes = codec.encode(codec.space.sample(rng))
        assert codes is not None
        ratios[codes] = math.exp(log_ratio(np.array(codes)) + rng.normal(0, 0.02))
    model.fit(ratios, None)
    return model


@pytest.mark.parametrize("target", ["mca", "arg"])
def test_effects_that_depend_on_each_other_are_noticed(target: ParameterKind) -> None:
    assert judged(target, product_of_effects).interacts


@pytest.mark.parametrize("target", ["mca", "arg"])
def test_effects_that_add_up_are_noticed(target: ParameterKind) -> None:
    assert not judged(target, sum_of_effects).interacts


def test_noise_alone_changes_no_mind() -> None:
    shares = [judged("mca", lambda codes: 0.0, seed=seed).share for seed in range(5)]
    assert max(shares) < 0.5


def test_a_search_goes_on_where_runs_show_effects_and_not_in_noise() -> None:
    product = judged("arg", product_of_effects)
    noise = [judged("arg", lambda codes: 0.0, seed=seed) for seed in range(5)]
    assert product.persistence > 1
    assert [model.interacts for model in noise] == [True] * 5
    assert [model.persistence for model in noise] == [1] * 5


def test_what_is_a_program_s_own_begins_with_balanced_settings() -> None:
    assert count_of_starts(space("arg")) == 5
    assert count_of_starts(space("mca")) == 0
    mixed = Space("mixed", (*space("arg", 1).parameters, Parameter("btl_x", (1, 2, 3))))
    assert 0 < count_of_starts(mixed) < 5
    strategy = create("auto", space("arg"), seed=1)
    levels: list[set[object]] = [set() for _ in range(5)]
    for number in range(5):
        proposal = strategy.ask()
        assert proposal is not None
        for place, name in enumerate(strategy.space.names):
            levels[place].add(proposal.setting.get(name))
        strategy.tell(Observation(number, proposal.setting, 1.0, "ok", proposal.attrs))
    assert all(len(seen) >= 3 for seen in levels)


@pytest.mark.parametrize("name", ["auto", "ga"])
def test_a_search_that_is_rebuilt_proposes_the_same(name: str) -> None:
    """In the world of interactions, whose model is fitted anew at some numbers of runs only."""
    known: list[Observation] = []
    one, codec = create(name, space("arg"), seed=4), Codec(space("arg"))
    noise = np.random.default_rng(5).normal(0, 0.03, 36)
    for number in range(36):
        proposal = one.ask()
        assert proposal is not None
        codes = codec.encode(proposal.setting)
        assert codes is not None
        ratio = math.exp(product_of_effects(np.array(codes)) + noise[number])
        known.append(Observation(number, proposal.setting, ratio, "ok", proposal.attrs))
        one.tell(known[-1])
        if number % 7 == 6:
            other, third = (create(name, space("arg"), seed=4) for _ in range(2))
            other.restore(reversed(known))
            third.restore(known)
            assert other.ask() == one.ask()
            one = third  # An ask that is not told counts as running.


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("state", ["ok", "failed"])
@pytest.mark.parametrize("count", [4, 5])
@pytest.mark.parametrize("target", ["mca", "arg"])
@pytest.mark.parametrize("name", ["auto", "ga"])
def test_a_space_without_a_default_is_searched(
    name: str, target: ParameterKind, count: int, state: str
) -> None:
    """Nothing is known before the first run, and perhaps nothing but failures after it."""
    parameters = tuple(Parameter(f"p{k}", LEVELS, target, unset=False) for k in range(count))
    strategy = create(name, Space("mandatory", parameters), seed=1)
    for number in range(12):
        proposal = strategy.ask()
        if proposal is None:  # It may end by its own rules after ten settings.
            assert number >= 10
            break
        ratio = 1.0 + 0.01 * number if state == "ok" else None
        strategy.tell(Observation(number, proposal.setting, ratio, state, proposal.attrs))
    assert (strategy.favourite() is not None) == (state == "ok")


@pytest.mark.parametrize("name", ["auto", "ga"])
def test_it_finds_a_combination_that_no_single_change_shows(name: str) -> None:
    """From the default every single change is slower; two together gain a quarter."""

    def log_ratio(setting: Setting) -> float:
        values = {f"p{k}": setting.get(f"p{k}", 4) for k in range(5)}
        gap = math.log2(float(values["p2"] or 1)) - math.log2(float(values["p3"] or 1))
        shift = math.log2(float(values["p2"] or 1)) - 2.0
        return 0.15 * gap**2 - 0.1 * shift

    best = []
    for seed in range(4):
        strategy = create(name, space("arg"), seed=seed)
        for number in range(40):
            proposal = strategy.ask()
            if proposal is None:
                break
            ratio = math.exp(log_ratio(proposal.setting))
            strategy.tell(Observation(number, proposal.setting, ratio, "ok", proposal.attrs))
        best.append(log_ratio(strategy.favourite() or DEFAULT))
    assert np.median(best) < -0.25
