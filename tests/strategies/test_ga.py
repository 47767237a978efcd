"""The genetic search: its accounting, its end, its being a function of the trials."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np
import optuna
import pytest

from autotune.space import Setting
from autotune.strategies import GASampler, Observation, create, resolve_options
from autotune.strategies.codec import Codec, Codes
from autotune.strategies.ga.options import genetic_options
from autotune.strategies.ga.population import Population
from autotune.strategies.options import OptionValue
from autotune.strategies.optuna_samplers import distributions
from autotune.testing.landscapes import MANY, drive, fine, keys
from benchmarks.search.functions import Landscape, additive, mpi

LAND = mpi(3)


def thesis(**options: OptionValue) -> dict[str, OptionValue]:
    return resolve_options("ga", options, "thesis")


def grow(population: Population, ratio: Callable[[Codes], float], runs: int = 1000) -> list[Codes]:
    """Run what the population asks for; the codes in the order in which they were run."""
    ran: list[Codes] = []
    while not population.is_finished and len(ran) < runs:
        codes = population.ask((), len(ran))
        if codes is None:
            break
        population.tell(codes, ratio(codes))
        ran.append(codes)
    return ran


def noise(codes: Codes) -> float:
    return random.Random(repr(codes)).uniform(0.8, 1.2)


def test_fifty_generations_of_the_thesis_cost_148_runs() -> None:
    population = Population(
        Codec(LAND.space), genetic_options(thesis(patience=0, max_generations=50)), 1
    )
    ran = grow(population, noise)
    # 50 individuals and 2 children of each generation, those of the last one not run; fewer where
    # a child equals something known.
    assert 140 <= len(ran) <= 148
    assert population.generation == 50
    assert len(population.members) == 50
    assert len(set(ran)) == len(ran)


def test_early_generations_run_five_individuals_each() -> None:
    population = Population(Codec(LAND.space), genetic_options(thesis(patience=0)), 1)
    grow(population, noise, 50)
    assert population.generation == 10


def test_all_parameters_are_present_at_the_start() -> None:
    for seed in range(5):
        population = Population(Codec(LAND.space), genetic_options(thesis()), seed)
        assert len(population.members) == 50
        assert np.array(population.members).any(axis=0).all()


@pytest.mark.parametrize("patience", [1, 10])
def test_the_patience_ends_the_search(patience: int) -> None:
    population = Population(Codec(LAND.space), genetic_options(thesis(patience=patience)), 1)
    initial = tuple(population.members)
    improved, best, started = 0, math.inf, 0
    while not population.is_finished:
        codes = population.ask((), 0)
        assert codes is not None
        value = noise(codes)
        before = population.generation
        population.tell(codes, value)
        if value < best:
            # The generation in which it was run counts as the last improved one.
            best, improved = value, before + 1
        known = population._ratios
        if not started and all(m in known for m in initial):
            started = before
    assert population.generation == max(improved, started) + patience


def test_the_best_is_never_lost_without_a_surrogate() -> None:
    for replace in ("tournament", "population"):
        options = resolve_options("ga", {"replace": replace, "patience": 0, "breed": 1})
        population = Population(Codec(LAND.space), genetic_options(options), 2)
        best: tuple[float, Codes] = (1.0, (0,) * 25)
        population.tell(best[1], 1.0)
        for _ in range(60):
            codes = population.ask((), 0)
            assert codes is not None
            population.tell(codes, noise(codes))
            best = min(best, (noise(codes), codes))
            assert best[1] in population.members
            assert len(population.members) == 10


def test_the_state_is_that_of_the_trials_in_their_order() -> None:
    strategy = create("ga", LAND.space, seed=5, options={"patience": 0})
    told = drive(strategy, 40, fine)
    late = create("ga", LAND.space, seed=5, options={"patience": 0})
    order = [*range(20), *range(21, 35), 20, *range(35, 40)]
    for place in order:
        late.tell(told[place])
    assert keys(drive(late, 5, fine, 40)) == keys(drive(strategy, 5, fine, 40))


@pytest.mark.parametrize("preset", [None, "thesis"])
def test_a_trial_that_comes_late_rebuilds_the_population(preset: str | None) -> None:
    options = genetic_options(resolve_options("ga", {}, preset))
    endless = create("ga", LAND.space, seed=5, options={"patience": 0})
    settings = [o.setting for o in drive(endless, 30, fine)]
    samplers = [GASampler(LAND.space, options, 5) for _ in range(2)]
    studies = [optuna.create_study(sampler=s) for s in samplers]
    orders = [list(range(30)), [*range(10), *range(12, 30), 11, 10]]
    for sampler, study, order in zip(samplers, studies, orders, strict=True):
        codec = Codec(LAND.space)
        for number in order:
            codes = codec.encode(settings[number])
            assert codes is not None
            named = zip(codec.names, codec.texts, codes, strict=True)
            study.add_trial(
                optuna.trial.create_trial(
                    params={n: texts[c] for n, texts, c in named},
                    distributions=distributions(codec),
                    value=fine(settings[number])[0],
                    user_attrs={"number": number},
                )
            )
            sampler.follow(study)
    following = [sampler._population.ask((), 30) for sampler in samplers]
    assert following[0] == following[1]


def test_the_sampler_drives_a_plain_optuna_study() -> None:
    options = genetic_options(resolve_options("ga", {}))
    study = optuna.create_study(sampler=GASampler(MANY, options, 1))
    codec = Codec(MANY)

    def objective(trial: optuna.Trial) -> float:
        picked = {
            name: trial.suggest_categorical(name, list(texts))
            for name, texts in zip(codec.names, codec.texts, strict=True)
        }
        extra = trial.suggest_categorical("extra", [0, 1])
        codes = [codec.texts[i].index(picked[n]) for i, n in enumerate(codec.names)]
        value = fine(codec.decode(codes))[0]
        assert value is not None
        return value + 0.01 * extra

    study.optimize(objective, n_trials=60)
    assert study.best_value < 0.81  # All three right values; with two of them it is 0.82.


def test_the_prior_is_bred_from() -> None:
    prior = Setting({"flag": 1, "size": 256, "word": "ring"})
    told = drive(create("ga", MANY, seed=3, priors=[prior]), 25, fine)
    kin = [o for o in told[10:] if sum(o.setting.get(n) == v for n, v in prior.items()) == 3]
    assert len(kin) > 5


def test_failed_settings_do_not_become_parents() -> None:
    def sick(setting: Setting) -> tuple[float | None, str]:
        return (None, "failed") if "p01" in setting else (1.1, "ok")

    told = drive(create("ga", LAND.space, seed=1, options={"patience": 0}), 100, sick)
    with_it = ["p01" in o.setting for o in told]
    assert sum(with_it) < 8


def gap_and_cost(
    land: Landscape, name: str, seed: int, **options: OptionValue
) -> tuple[float, float]:
    """T / T_best - 1 of what looks best after 100 trials, and the mean cost of a run, at most 3."""
    rng = np.random.default_rng([8, seed])

    def run(setting: Setting) -> tuple[float | None, str]:
        seen = land.measure(setting, rng)
        return (seen, "ok") if math.isfinite(seen) else (None, "failed")

    strategy = create(name, land.space, seed=seed, options=resolve_options(name, options, None))
    told = drive(strategy, 100, run)
    best = min(told, key=lambda o: o.fitness)
    named = best.setting if best.fitness < 1 else Setting()
    costs = [min(o.fitness, 3.0) for o in told]
    return land.ratio(named) / land.best - 1, float(np.mean(costs))


def test_it_is_far_better_than_random_search() -> None:
    land = additive()
    gaps = {
        name: np.mean([gap_and_cost(land, name, seed)[0] for seed in range(2)])
        for name in ("ga", "random")
    }
    assert gaps["ga"] <= 0.05
    assert gaps["random"] > 2 * gaps["ga"]


def test_it_finds_most_of_what_three_of_25_parameters_give() -> None:
    gaps, costs = np.mean([gap_and_cost(LAND, "ga", seed, patience=0) for seed in range(2)], 0)
    assert gaps < 0.5 * (1 / LAND.best - 1)
    assert costs < 1.1


def test_the_censored_bound_counts_but_no_better() -> None:
    assert Observation(0, Setting(), 2.5, "censored").fitness == 2.5
    assert Observation(0, Setting(), 0.5, "failed").fitness == math.inf
    assert Observation(0, Setting(), None, "censored").fitness == math.inf
