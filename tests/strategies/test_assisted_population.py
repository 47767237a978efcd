"""The surrogate-assisted genetic search: its first generation, its choice of children, its end."""

from __future__ import annotations

import math

import numpy as np
import pytest

from autotune.space import DEFAULT, Parameter, Setting, Space
from autotune.strategies import SCATTER, Observation, create, resolve_options
from autotune.strategies.codec import Codec, Codes
from autotune.strategies.ga.assisted_population import AssistedPopulation
from autotune.strategies.ga.options import genetic_options
from autotune.strategies.models.additive import Prior
from autotune.strategies.models.estimates import Estimates
from autotune.strategies.models.joint_model import JointModel
from autotune.strategies.models.listed_model import ListedModel
from autotune.strategies.options import OptionValue
from autotune.testing.landscapes import INVALID_DEFAULT, MANY, SMALL, drive, fine, keys
from tests.case_table import case_table

WIDE = Space("wide", tuple(Parameter(f"p{i:02d}", ("a", "b", "c")) for i in range(20)))
SIX = Space("six", WIDE.parameters[:6])
CODEC = Codec(WIDE)
DEFAULT_CODES = (0,) * 20


def population(space: Space = WIDE, seed: int = 1, **options: OptionValue) -> AssistedPopulation:
    return AssistedPopulation(Codec(space), genetic_options(resolve_options("ga", options)), seed)


def two_act(setting: Setting) -> tuple[float | None, str]:
    """p03=b and p07=c help, p05=a fails, the rest costs 1 % each."""
    if setting.get("p05") == "a":
        return None, "failed"
    helps = 0.2 * (setting.get("p03") == "b") + 0.1 * (setting.get("p07") == "c")
    return math.exp(0.01 * len(setting) - helps), "ok"


def idle(setting: Setting) -> tuple[float | None, str]:
    return 1.02 ** len(setting), "ok"


def one_hot(*places: tuple[int, int]) -> tuple[int, ...]:
    codes = [0] * 20
    for place, level in places:
        codes[place] = level
    return tuple(codes)


@case_table(("shortest", "longest", "length"), [(2, 4, 4), (2, 0, 6), (8, 8, 8)])
def test_the_first_generation_has_each_level_once(shortest: int, longest: int, length: int) -> None:
    first = np.array(population(init_min=shortest, init_max=longest).first)
    assert (np.sort(first, axis=0)[-3:] == [[1], [2], [3]]).all()
    assert np.count_nonzero(first) == 60
    assert np.count_nonzero(first, axis=1).max() == length


def test_the_first_run_is_of_the_first_generation() -> None:
    for seed in range(5):
        one = population(seed=seed)
        assert one.ask((), 0) in one.first


def test_a_child_joins_the_genes_that_helped() -> None:
    one, good = population(), ((3, 2), (7, 3))

    def helps(codes: Codes) -> int:
        return sum(codes[place] == level for place, level in good)

    for codes in one.first:
        one.tell(codes, math.exp(-0.2 * helps(codes)))
    assert max(map(helps, one.first)) == 1
    for ordinal in range(len(one.first), len(one.first) + 4):
        child = one.ask((), ordinal)
        assert child is not None
        assert child not in one.first
        one.tell(child, math.exp(-0.2 * helps(child)))
    assert helps(one.members()[0]) == 2


def test_running_individuals_are_not_chosen() -> None:
    one = population()
    first = one.ask((), 0)
    assert first is not None
    assert one.ask({first}, 0) not in (first, None)


def test_members_are_the_best_by_estimate_and_the_default_among_them() -> None:
    one = population(population=4, tournament=4)
    for place in range(6):
        one.tell(one_hot((place, 1)), math.exp(0.1 * (place - 2.5)))
    members = one.members()
    assert members == [one_hot((0, 1)), one_hot((1, 1)), one_hot((2, 1)), DEFAULT_CODES]
    without = population(start_default="no")
    without.tell(one_hot((0, 1)), 1.2)
    assert without.members() == [one_hot((0, 1))]


def test_finds_the_two_of_twenty_that_help() -> None:
    told = drive(create("ga", WIDE, seed=0), 40, two_act)
    best = min(told, key=lambda o: o.fitness)
    assert {"p03": "b", "p07": "c"}.items() <= dict(best.setting).items()
    assert sum(o.setting.get("p05") == "a" for o in told) <= 6


def test_the_favourite_is_measured_and_faster_than_the_default() -> None:
    strategy = create("ga", WIDE, seed=0)
    assert strategy.favourite() is None
    told = drive(strategy, 30, two_act)
    favourite = strategy.favourite()
    assert favourite in [o.setting for o in told]
    assert favourite is not None
    assert two_act(favourite)[0] < 1  # type: ignore[operator]
    nothing = create("ga", WIDE, seed=0)
    drive(nothing, 15, idle)
    assert nothing.favourite() is None


def test_it_ends_where_nothing_helps_but_not_before_the_first_trials() -> None:
    told = drive(create("ga", SMALL, seed=0, options={"ei_threshold": 1.0}), 23, idle)
    assert len(told) == 10  # Ten generations, and none is better than the default.
    least: dict[str, OptionValue] = {"ei_threshold": 1.0, "min_trials": 15}
    assert len(drive(create("ga", SMALL, seed=0, options=least), 23, idle)) == 15
    assert 10 <= len(drive(create("ga", SIX, seed=0), 60, idle)) < 60
    assert len(drive(create("ga", SIX, seed=0, options={"patience": 0}), 60, idle)) == 60


def test_it_goes_on_while_a_child_is_worth_a_run_up_to_twice_the_patience() -> None:
    options: dict[str, OptionValue] = {"ei_threshold": 0.0, "ei_patience": 1, "patience": 15}
    assert len(drive(create("ga", WIDE, seed=0, options=options), 40, idle)) == 30


def test_generations_are_limited() -> None:
    limit: dict[str, OptionValue] = {"max_generations": 6, "offspring": 2}
    assert len(drive(create("ga", WIDE, seed=0, options=limit), 40, fine)) == 12


def test_the_scatter_of_the_default_changes_what_is_proposed() -> None:
    def searched(variance: float) -> list[str]:
        strategy = create("ga", MANY, seed=2)
        told = []
        for number in range(20):
            proposal = strategy.ask()
            assert proposal is not None
            attrs = {SCATTER: [variance, 20.0]}
            told.append(Observation(number, proposal.setting, *fine(proposal.setting), attrs))
            strategy.tell(told[-1])
        late = create("ga", MANY, seed=2)
        late.restore(told)
        assert late.ask() == strategy.ask()
        return keys(told)

    assert searched(1e-4) != searched(0.05)


def test_a_space_without_the_default_has_no_anchor() -> None:
    told = drive(create("ga", INVALID_DEFAULT, seed=0, options={"patience": 0}), 6, fine)
    assert len({o.setting.key for o in told}) == 6
    assert all(o.setting != DEFAULT for o in told)


def estimates(ratios: dict[Codes, float], clip: float = 0.3) -> Estimates:
    """The surrogate of small spaces after these ratios, with little noise of the default."""
    known = Estimates(CODEC, Prior(), clip, has_default=True)
    known.fit(ratios, (0.01, 20.0))
    return known


def test_estimates_count_every_run_of_a_level() -> None:
    # The level 1 of p00 helps in three runs; the best single run is a lucky one of another level.
    ratios = {one_hot((0, 1), (place, 1)): 0.85 for place in (1, 2, 3)}
    ratios |= {one_hot((9, 1), (place, 1)): 1.0 for place in (4, 5, 6)}
    known = estimates({**ratios, one_hot((9, 1), (8, 1)): 0.84})
    assert known.ranking()[0][0][0] == 1
    favourite = known.favourite()
    assert favourite is not None
    assert favourite[0] == 1


def test_failures_and_everything_slower_than_the_clip_count_alike() -> None:
    means = []
    for ratio in (math.inf, 1.4, 16.0):
        known = estimates({one_hot((0, 1)): ratio})
        means.append(known.mean(np.array([one_hot((0, 1))]))[0])
        assert known.favourite() is None
    assert means[0] == means[1] == means[2] > 0.1


def test_the_improvement_is_over_the_best_estimate_or_the_default() -> None:
    rows = np.array([one_hot((0, 1)), one_hot((1, 1))])
    before = estimates({}).improvement(rows)
    assert before[0] == pytest.approx(before[1])
    assert (estimates({one_hot((2, 1)): 0.7}).improvement(rows) < before).all()


def test_equal_individuals_are_merged() -> None:
    codec = Codec(MANY)
    one = AssistedPopulation(codec, genetic_options(resolve_options("ga", {})), 1)
    strange, plain = Setting({"size": 256, "flag": 1}), Setting({"size": 256})
    for setting, ratio in ((strange, 0.9), (plain, 0.91)):
        codes = codec.encode(setting)
        assert codes is not None
        one.tell(codes, ratio)
    assert one.members()[0] == codec.encode(strange)
    codec.leave_out({"unused": ["flag"]}, DEFAULT)
    one.relabel()
    assert [m for m in one.members() if any(m)] == [codec.encode(plain)]


def test_the_size_of_the_space_chooses_the_surrogate() -> None:
    assert isinstance(population(space=SIX)._model.adding, JointModel)
    assert isinstance(population(space=SMALL)._model.adding, ListedModel)


def worth_of(one: AssistedPopulation, codes: Codes) -> float:
    return float(one._fit_surrogate().improvement(np.array([codes]))[0])


def test_inner_generations_find_children_that_are_more_worth_a_run() -> None:
    bred, evolved = [], []
    for seed in range(8):
        for inner, found in ((0, bred), (8, evolved)):
            one = population(seed=seed, inner=inner)
            for place in range(8):
                one.tell(one_hot((place, 1)), math.exp(0.02 - 0.05 * (place % 4 == 0)))
            child = one.ask((), 8)
            assert child is not None
            found.append(worth_of(one, child))
    assert np.mean(evolved) > np.mean(bred)
    assert all(late >= early for early, late in zip(bred, evolved, strict=True))


def test_many_unknown_genes_are_run_together_where_changes_cost_nothing() -> None:
    def changed(cost: float) -> float:
        strategy = create("ga", WIDE, seed=0, options={"patience": 0})
        told = drive(strategy, 12, lambda setting: (math.exp(cost * len(setting)), "ok"))
        return float(np.mean([len(o.setting) for o in told[6:]]))

    assert changed(0.0) > 8 > 4 > changed(0.05)
