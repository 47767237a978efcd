"""``ga --preset thesis`` line by line: the table in docs/explanation/strategies.md has these
lines."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from autotune.errors import UsageError
from autotune.measurement.budget import SearchPlan
from autotune.measurement.run_history import SEARCH
from autotune.space import DEFAULT, Parameter, Setting, Space
from autotune.strategies import create, resolve_options
from autotune.strategies.codec import Codec, Codes
from autotune.strategies.ga.operators import Operators
from autotune.strategies.ga.options import genetic_options
from autotune.strategies.ga.population import Population
from autotune.strategies.options import OptionValue
from autotune.study.loop import SearchLoop
from autotune.study.simulation import MemoryTrialStore, SimulatedEvaluator
from autotune.testing.landscapes import MANY, RULES, SMALL, drive, fine
from benchmarks.search.functions import mpi
from tests.case_table import case_table
from tests.refusals import refused
from tests.strategies.test_ga import grow, noise

SPACE = mpi(3).space
DEFAULT_CODES = (0,) * len(SPACE.names)


def population(seed: int = 1, space: object = SPACE, **options: OptionValue) -> Population:
    values = resolve_options("ga", {"patience": 0, **options}, "thesis")
    return Population(Codec(space), genetic_options(values), seed)  # type: ignore[arg-type]


def step(one: Population) -> tuple[list[Codes], list[int]]:
    """Run what one tournament waits for; the members and the tournament before its end."""
    generation = one.generation
    while True:
        before, places = list(one.members), list(one._tournament)
        codes = one.ask((), 0)
        assert codes is not None
        one.tell(codes, noise(codes))
        if one.generation > generation:
            return before, places


@case_table("seed", range(5))
@case_table("space", [SPACE, MANY])
def test_fifty_different_individuals_none_of_them_the_default(space: object, seed: int) -> None:
    members = population(seed, space).members
    assert len(set(members)) == len(members) == 50
    assert all(any(codes) for codes in members)


def test_a_small_space_gives_what_it_has() -> None:
    for space, count in ((SMALL, 23), (RULES, 35)):
        assert len(set(population(1, space).members)) == count


def test_lengths_are_uniform_from_one_to_all() -> None:
    lengths = Counter(
        np.count_nonzero(codes) for seed in range(40) for codes in population(seed).members
    )
    assert set(lengths) == set(range(1, len(SPACE.names) + 1))
    assert max(lengths.values()) < 2 * min(lengths.values())


def test_every_parameter_is_in_an_individual_whatever_the_rules_take_out() -> None:
    # Few individuals of few parameters: without care the conditional one is often missing.
    for seed in range(40):
        one = population(seed, MANY, population=10, init_max=3, tournament=5)
        assert np.array(one.members).any(axis=0).all(), seed


def test_a_tournament_of_five_takes_those_not_yet_run_first() -> None:
    one = population()
    for _ in range(30):
        waiting = {m for m in one.members if m not in one._ratios}
        assert len(set(one._tournament)) == len(one._tournament) == 5
        inside = {one.members[i] for i in one._tournament}
        assert len(inside & waiting) == min(5, len(waiting))
        step(one)


def test_two_children_of_the_two_best_replace_the_two_worst_of_the_tournament() -> None:
    one = population()
    for _ in range(60):
        before, places = step(one)
        ranked = sorted(places, key=lambda i: one._ratios[before[i]])
        changed = [i for i in range(50) if one.members[i] != before[i]]
        assert set(changed) <= set(ranked[3:])
        mother, father = before[ranked[0]], before[ranked[1]]
        for place in ranked[3:]:
            for gene, first, second in zip(one.members[place], mother, father, strict=True):
                if first and second:
                    assert gene in (first, second)
                else:
                    assert gene in (0, first or second)


def test_children_stay_as_they_were_bred() -> None:
    one = population(mutation_individual=0.0)
    mother, father = (1, 1, *DEFAULT_CODES[2:]), (2, 2, *DEFAULT_CODES[2:])
    equal = 0
    for seed in range(20):
        bred = (
            Operators(Codec(SPACE)).cross(mother, father, 2, np.random.default_rng(seed)).tolist()
        )
        children = one._breed(mother, father, 2, set(), np.random.default_rng(seed))
        assert children == [tuple(row) for row in bred]
        equal += children[0] == children[1]
    assert equal


@case_table("seed", range(12))
def test_fifty_generations_cost_a_hundred_and_fifty_individuals(seed: int) -> None:
    one = population(seed, max_generations=50)
    ran = grow(one, noise)
    assert len(set(ran)) == len(ran)
    pending = sum(codes not in one._ratios for codes in one.members)
    # 50 at the start and two a generation; what is known already costs no run.
    assert len(ran) + pending + one.known_children == 50 + 2 * 50
    assert pending == 2
    assert one.generation == 50


def test_without_a_known_child_it_is_148_runs_and_two_pending() -> None:
    costs = {}
    for seed in range(12):
        one = population(seed, max_generations=50)
        costs.setdefault(one, len(grow(one, noise)))
    exact = [runs for one, runs in costs.items() if one.known_children == 0]
    assert exact
    assert set(exact) == {148}


def test_the_first_sixteen_generations_run_five_each_and_then_two() -> None:
    one = population(4)  # No child of this seed equals anything known.
    grow(one, noise, 80)
    assert one.generation == 16
    grow(one, noise, 20)
    assert one.generation == 26


def improving(one: Population) -> float:
    """A little better each time, and all the time slower than the default."""
    return 2.0 - 0.01 * len(one._ratios)


@pytest.mark.parametrize("rules", ["thesis", "own"])
def test_the_default_is_no_progress_and_no_end_of_it(rules: str) -> None:
    one = population(1, patience=10, rules=rules)
    one.tell(DEFAULT_CODES, 1.0)
    assert DEFAULT_CODES not in one.members
    ran = 0
    while not one.is_finished and ran < 120:
        codes = one.ask((), ran)
        assert codes is not None
        one.tell(codes, improving(one))
        ran += 1
    # Each run is a new best of the population, but none beats the default.
    assert (ran == 120) == (rules == "thesis")


def test_the_best_of_the_population_decides_when_it_ends() -> None:
    one = population(2, patience=10)
    best, unimproved = math.inf, 0
    first = list(one.members)
    while not one.is_finished:
        step(one)
        now = min(one._ratios[m] for m in one.members if m in one._ratios)
        assert now == min(one._ratios.values())  # Parents stay: the best is never lost.
        begun = all(m in one._ratios for m in first)
        unimproved = 0 if now < best or not begun else unimproved + 1
        best = now
        assert one.is_finished == (unimproved >= 10)


def studied(preset: str | None, breed: int) -> SimulatedEvaluator:
    """The search phase of a study of 40 trials in which many look better than the default."""

    def model(setting: Setting, rng: np.random.Generator) -> float:
        return 1.0 if setting == DEFAULT else float(rng.uniform(0.5, 0.95))

    options = resolve_options("ga", {"breed": breed, "patience": 0}, preset)
    strategy = create("ga", SPACE, seed=1, options=options)
    evaluator = SimulatedEvaluator(model, np.random.default_rng(5))
    search = SearchLoop(evaluator, MemoryTrialStore(), strategy, SPACE, SearchPlan(trials=40))
    search.run()
    return evaluator


@case_table(("preset", "breed", "most"), [("thesis", 1, 1), (None, 1, 2), (None, 40, 1)])
def test_a_study_repeats_individuals_without_a_surrogate_and_the_thesis_only(
    preset: str | None, breed: int, most: int
) -> None:
    entries = [e for e in studied(preset, breed).history.entries if e.kind == SEARCH]
    runs = Counter(e.trial for e in entries)
    assert len(runs) == 40
    assert max(runs.values()) == most
    assert len({e.key for e in entries}) == 40


def test_the_thesis_knows_no_surrogate() -> None:
    with refused(UsageError, "strategy.option_range"):
        resolve_options("ga", {"breed": 40}, "thesis")
    strategy = create("ga", SMALL, seed=0, options=resolve_options("ga", {}, "thesis"))
    drive(strategy, 5, fine)
    assert strategy.favourite() is None


def test_a_parameter_with_one_choice_is_left_alone() -> None:
    """Its only level is the default, so there is nothing to plant."""
    space = Space("one", (Parameter("only", (1,), default=1), Parameter("other", (1, 2, 3))))
    strategy = create("ga", space, seed=1, options=resolve_options("ga", {}, "thesis"))
    proposal = strategy.ask()
    assert proposal is not None
    assert set(proposal.setting) == {"other"}
