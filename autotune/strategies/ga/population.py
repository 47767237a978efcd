"""The genetic search: it selects the next individual to run, and learns from its run.

Both forms go through the same steps: **ask**, choose **parents**, **cross** and **mutate** them
(:mod:`autotune.strategies.ga.operators`), **repair** (:class:`autotune.strategies.codec.Codec`),
**judge**, **tell**. Without a surrogate (:class:`Population`, as in the thesis) each child is
judged by a run. With one (:class:`AssistedPopulation`) a model of the runs so far judges many
children, and only the best is run.

Each is a pure function of the ordered trials and the seed: nothing is stored.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from autotune.errors import UsageError
from autotune.space import DEFAULT
from autotune.strategies.candidates import balanced_start
from autotune.strategies.codec import Codec, Codes
from autotune.strategies.ga.operators import Matrix, Operators
from autotune.strategies.ga.options import GeneticOptions
from autotune.strategies.levels import Floats
from autotune.strategies.models.additive import Prior
from autotune.strategies.models.worlds import Worlds, count_of_starts, worlds

Scatter = tuple[float, float]

_TRIES = 50
"""Number of random individuals that are dealt if a new one is needed."""
_IDLE = 20
"""A newcomer is added after this number of consecutive generations without a new individual."""

# For the search with a surrogate.
_BELIEF = Prior(pairs=0.2, stiffness=1.0, noises=(0.02, 0.05, 0.12), rounds=3)
"""Pairs have small effects, so a child of two good parents should have the gains of both.

Three levels of noise and three rounds keep the fit of 100 runs short.
"""
_CLIP = 0.3
"""Log ratio assigned to everything slower, including failures: that of ``auto``."""
_BEST = 3
"""Number of the best individuals whose one-step neighbours are candidates."""
_SHARE = 3
"""An individual of the first generation changes one parameter in three."""
_MULTIPLES = (1, 4, 16)
"""Multiples of the planned number of new genes that children get."""
_PAIRS = 4
"""Pairs of parents in a generation judged only by the surrogate."""

# Streams of random numbers: no two uses within one form share one.
_START, _DRAW, _BREED, _NEWCOMER, _EXTRA = range(5)
_CHILD, _SAMPLES = 1, 2


class GeneticSearch(ABC):
    """The common base of both forms: they receive ratios of settings and propose the next run.

    A ratio is stored for the whole search, so a child that equals a known setting costs no run.
    """

    def __init__(self, codec: Codec, plan: GeneticOptions, seed: int) -> None:
        self._codec = codec
        self._plan = plan
        self._seed = seed
        self._operators = Operators(codec)
        self._ratios: dict[Codes, float] = {}
        self._stagnation = 0

    @property
    @abstractmethod
    def is_finished(self) -> bool:
        """True if the search has ended by its own rules."""

    @abstractmethod
    def ask(self, running: Collection[Codes], ordinal: int) -> Codes | None:
        """The next individual to run, or None if there is none; those in ``running`` are being run.

        ``ordinal`` numbers the request in the stream of random numbers.
        """

    @abstractmethod
    def tell(self, codes: Codes, ratio: float, scatter: Scatter | None = None) -> None:
        """Record one trial, in the order of the trials; ``scatter``: see :class:`Estimates`."""

    @abstractmethod
    def relabel(self) -> None:
        """Merge individuals that became equal when the codec learned of inactive parameters."""

    def favourite(self) -> Codes | None:
        """The individual with the best estimate; None if it is the default, or without
        estimates."""
        return None

    def _settle(self, codes: Codes) -> Codes | None:
        """The individual, repaired if it breaks a rule; None if that is impossible."""
        return self._codec.settle_codes(codes)

    def _rng(self, *stream: int) -> np.random.Generator:
        return np.random.default_rng([self._seed, *stream])


class Population(GeneticSearch):
    """The search without a surrogate: a tournament in a population is one generation.

    Its individuals are run. Then its two best become parents of children, which replace the worst
    individuals and are run in the next tournament. ``seeds`` are individuals of the first
    population (the warm start). A setting from elsewhere replaces the worst individual if it is
    better.
    """

    def __init__(
        self, codec: Codec, plan: GeneticOptions, seed: int, seeds: Sequence[Codes] = ()
    ) -> None:
        super().__init__(codec, plan, seed)
        self._default = (0,) * len(codec.sizes) if codec.optional.all() else None
        self._best = math.inf
        self._best_before = math.inf
        self._idle = 0
        self.generation = 0
        self.known_children = 0
        """Children that equalled a known or pending setting and so needed no run."""
        self.is_exhausted = False
        self.members = self._first(seeds)
        self._initial = set(self.members)
        self._tournament = self._draw()

    @property
    def is_finished(self) -> bool:
        """True if the patience or the number of generations is used up."""
        plan = self._plan
        if plan.max_generations and self.generation >= plan.max_generations:
            return True
        return bool(plan.patience) and self._stagnation >= plan.patience

    def ask(self, running: Collection[Codes], ordinal: int) -> Codes | None:
        """The next individual of the tournament.

        If the tournament only waits for running ones, it is another individual without a run, or
        else an extra child of the best two.
        """
        if self.is_exhausted:
            return None
        waiting = [self.members[i] for i in self._tournament] + self.members
        for codes in waiting:
            if codes not in self._ratios and codes not in running:
                return codes
        rng = self._rng(_EXTRA, ordinal)
        parents = sorted(self._places_with_ratio(), key=self._fitness)[:2]
        in_use = set(running)
        if len(parents) == 2:
            mother, father = (self.members[i] for i in parents)
            child = self._breed(mother, father, 1, in_use, rng)[0]
            if child not in self._ratios and child not in in_use:
                return child
        return self._newcomer(rng, in_use)

    def tell(self, codes: Codes, ratio: float, scatter: Scatter | None = None) -> None:
        self._ratios[codes] = ratio
        self._best = min(self._best, ratio)
        if codes not in self.members:
            self._immigrate(codes)
        self._advance()

    def relabel(self) -> None:
        for codes, ratio in list(self._ratios.items()):
            self._ratios.setdefault(self._settle(codes) or codes, ratio)
        self.members = [self._settle(m) or m for m in self.members]
        self._initial = {self._settle(m) or m for m in self._initial}
        self._advance()

    def _advance(self) -> None:
        """Complete generations until a run is needed or the search has ended."""
        while not self.is_finished and not self.is_exhausted:
            if any(self.members[i] not in self._ratios for i in self._tournament):
                return
            self._reproduce()
            self._count()
            self._tournament = self._draw()

    def _draw(self) -> list[int]:
        """A tournament: all individuals without a run, and a random draw from the others."""
        rng = self._rng(_DRAW, self.generation)
        order: list[int] = rng.permutation(len(self.members)).tolist()
        order.sort(key=lambda i: self.members[i] in self._ratios)
        return order[: self._plan.tournament]

    def _reproduce(self) -> None:
        """Let the two best of the tournament have offspring, which replace the worst."""
        plan = self._plan
        ranking = sorted(self._tournament, key=self._fitness)
        rng = self._rng(_BREED, self.generation)
        mother, father = self.members[ranking[0]], self.members[ranking[min(1, len(ranking) - 1)]]
        pool = (
            ranking
            if plan.replace == "tournament"
            else sorted(self._places_with_ratio(), key=self._fitness)
        )
        # The parents stay, so the best individual is never lost.
        places = pool[2:][-plan.offspring :]
        children = self._breed(mother, father, len(places), set(), rng)
        for place, child in zip(places, children, strict=True):
            self.known_children += child in self._ratios or child in self.members
            self.members[place] = child

    def _breed(
        self, a: Codes, b: Codes, count: int, in_use: Collection[Codes], rng: np.random.Generator
    ) -> list[Codes]:
        """Children of two parents; those that were never run (nor taken) come first."""
        children = self._operators.cross(a, b, count, rng)
        children = self._operators.mutate(children, self._plan.rates, rng)
        if self._plan.thesis:
            # Two equal children, or a child equal to its parent, are not changed.
            return [self._settle(tuple(row)) or a for row in children[:count].tolist()]
        fresh: dict[Codes, None] = {}
        repeats: list[Codes] = []
        for row in children.tolist():
            codes = self._settle(tuple(row))
            if codes is None:
                continue
            if codes in self._ratios or codes in in_use:
                repeats.append(codes)
            else:
                fresh[codes] = None
            if len(fresh) == count:
                break
        # A known child costs no run; a parent is used if no child satisfies the rules.
        return [*fresh, *repeats, *[a] * count][:count]

    def _count(self) -> None:
        """Classify the generation: a new best, none, or no candidate for one."""
        self.generation += 1
        has_begun = all(codes in self._ratios for codes in self._initial)
        if self._plan.thesis:
            self._best = self._population_best()
        is_better = self._best < self._best_before
        self._stagnation = 0 if is_better or not has_begun else self._stagnation + 1
        self._best_before = self._best
        fresh = any(codes not in self._ratios for codes in self.members)
        self._idle = 0 if fresh else self._idle + 1
        if self._idle >= _IDLE:
            self._idle = 0
            newcomer = self._newcomer(self._rng(_NEWCOMER, self.generation), set())
            self.is_exhausted = newcomer is None
            if newcomer is not None:
                self._replace_worst(newcomer)

    def _population_best(self) -> float:
        """The best fitness in the population; repairs that gave the default do not count."""
        values = [
            self._fitness(i) for i in self._places_with_ratio() if self.members[i] != self._default
        ]
        return min(values, default=math.inf)

    def _immigrate(self, codes: Codes) -> None:
        places = self._places_with_ratio()
        if places and self._ratios[codes] < max(self._fitness(i) for i in places):
            self._replace_worst(codes)

    def _replace_worst(self, codes: Codes) -> None:
        self.members[max(self._places_with_ratio(), key=self._fitness)] = codes

    def _newcomer(self, rng: np.random.Generator, in_use: Collection[Codes]) -> Codes | None:
        for codes in self._operators.deal(_TRIES, self._plan.lengths, rng):
            newcomer = self._settle(codes)
            if newcomer is not None and newcomer not in self._ratios and newcomer not in in_use:
                return newcomer
        return None

    def _first(self, seeds: Sequence[Codes]) -> list[Codes]:
        plan, rng = self._plan, self._rng(_START)
        start = [] if self._default is None or not plan.start_default else [self._default]
        members = [*start, *seeds]
        dealt = self._operators.deal(max(plan.population - len(members), 0), plan.lengths, rng)
        members += [codes for d in dealt if (codes := self._settle(d)) is not None]
        members = list(dict.fromkeys(members))
        return self._fill(members, rng) if plan.thesis else members

    def _fill(self, members: list[Codes], rng: np.random.Generator) -> list[Codes]:
        """The first population: as many individuals as planned, all different, without the default.

        Every parameter is in at least one of them, as far as the space allows this.
        """
        population = [m for m in members if m != self._default]
        for _ in range(_TRIES):
            missing = self._plan.population - len(population)
            if missing <= 0:
                break
            for codes in self._operators.deal(missing, self._plan.lengths, rng):
                individual = self._settle(codes)
                if (
                    individual is not None
                    and individual != self._default
                    and individual not in population
                ):
                    population.append(individual)
        for name in np.flatnonzero(self._codec.optional & (self._codec.sizes > 1)).tolist():
            if population and not any(m[name] for m in population):
                self._plant(population, name, rng)
        return population or members

    def _plant(self, members: list[Codes], name: int, rng: np.random.Generator) -> None:
        """Add an absent parameter to an individual without removing the only occurrence of
        another."""
        for _ in range(_TRIES):
            place = int(rng.integers(len(members)))
            codes = list(members[place])
            codes[name] = int(rng.integers(1, self._codec.sizes[name]))
            individual = self._settle(tuple(codes))
            if individual is None or not individual[name] or individual in members:
                continue
            others = members[:place] + members[place + 1 :]
            losses = [n for n, code in enumerate(members[place]) if code and not individual[n]]
            if all(any(m[n] for m in others) for n in losses):
                members[place] = individual
                return

    def _places_with_ratio(self) -> list[int]:
        return [i for i, codes in enumerate(self.members) if codes in self._ratios]

    def _fitness(self, place: int) -> float:
        return self._ratios.get(self.members[place], math.inf)


class AssistedPopulation(GeneticSearch):
    """The search with a surrogate: one run is one child.

    The population consists of the best individuals so far by the surrogate's estimates; a better
    child replaces the worst. The surrogate selects the child to be run by its expected improvement.
    ``seeds`` are individuals of the first generation (the warm start).
    """

    def __init__(
        self, codec: Codec, plan: GeneticOptions, seed: int, seeds: Sequence[Codes] = ()
    ) -> None:
        super().__init__(codec, plan, seed)
        self._default = (0,) * len(codec.sizes) if codec.space.is_valid(DEFAULT) else None
        self._scatter: Scatter | None = None
        self._model = worlds(codec, _CLIP, lambda count: self._rng(_SAMPLES, count), _BELIEF)
        self._starts = count_of_starts(codec.space)
        self._stale = False
        self._best = math.inf if self._default is None else 1.0
        self._trials = 0
        self.first = [*seeds, *self._balance()]
        """The first generation, run or not."""

    @property
    def is_finished(self) -> bool:
        """True if the search has ended by its own rules.

        Without a limit of generations it ends after ``patience`` generations without a new best
        (and twice as many in all), or after ``ei_patience`` ones if no candidate is worth a run. A
        best among the first individuals is often a lucky run. Both are multiplied by the
        ``persistence`` of the surrogate.
        """
        plan = self._plan
        if plan.max_generations and self.generation >= plan.max_generations:
            return True
        waiting = self._stagnation // plan.offspring
        if not plan.patience or self._trials < plan.min_trials or waiting < plan.ei_patience:
            return False
        persistence = self._fit_surrogate().persistence
        if waiting < plan.ei_patience * persistence:
            return False
        most = plan.patience * persistence
        if waiting >= most and self.generation >= 2 * most:
            return True
        _, worth = self._select((), self._trials)
        return worth < plan.ei_threshold

    @property
    def generation(self) -> int:
        """Number of generations that have ended."""
        return self._trials // self._plan.offspring

    def ask(self, running: Collection[Codes], ordinal: int) -> Codes | None:
        """The child that is most worth running."""
        return self._select(running, ordinal)[0]

    def _select(self, running: Collection[Codes], ordinal: int) -> tuple[Codes | None, float]:
        """The candidate with the largest expected improvement, and that improvement."""
        rng = self._rng(_CHILD, ordinal)
        if ordinal < self._starts and (start := self._balanced(running, rng)) is not None:
            return start, math.inf
        candidates = self._candidates(rng)
        worth = self._fit_surrogate().improvement(candidates)
        if self._ratios:
            candidates, worth = self._evolve(candidates, worth, rng)
        # Ties (frequent before anything is known) are broken at random, so that seeds differ.
        order = np.lexsort((rng.random(len(candidates)), -worth))
        for place, codes in self._fresh(candidates, order, running):
            return codes, float(worth[place])
        newcomers = self._newcomers(rng)
        for _, codes in self._fresh(newcomers, np.arange(len(newcomers)), running):
            return codes, 0.0
        return None, 0.0

    def _candidates(self, rng: np.random.Generator) -> Matrix:
        """The first generation, bred children, and the neighbours of the best individuals."""
        groups = [np.array(self.first, dtype=np.intp).reshape(-1, len(self._codec.sizes))]
        if self._ratios:
            members = self.members()
            groups += [self._children(members, self._plan.breed, 1, rng)]
            groups += [self._operators.neighbours(codes) for codes in members[:_BEST]]
            if self._model.interacts:
                groups += [self._strangers(rng)]
        return np.vstack(groups)

    def _children(
        self, members: list[Codes], count: int, pairs: int, rng: np.random.Generator
    ) -> Matrix:
        """``count`` children of ``pairs`` pairs of parents, each the two best of a tournament.

        A third of them gets the planned number of new genes, the others a multiple of it: the
        surrogate decides how many unknown genes are worth a run together.
        """
        orders = rng.permuted(np.tile(np.arange(len(members)), (pairs, 1)), axis=1)
        best = np.sort(orders[:, : self._plan.tournament], axis=1)[:, [0, min(1, len(members) - 1)]]
        parents = np.array(members, dtype=np.intp)[np.repeat(best, -(-count // pairs), axis=0)]
        children = self._operators.cross(parents[:count, 0], parents[:count, 1], count, rng)
        rates = self._plan.rates
        more = replace(rates, insert=rates.insert * np.resize(_MULTIPLES, (count, 1)))
        return self._operators.mutate(children, more, rng)

    def _evolve(
        self, rows: Matrix, worth: Floats, rng: np.random.Generator
    ) -> tuple[Matrix, Floats]:
        """The candidates and further generations of them, which only the surrogate judges.

        An individual's fitness is the value of running it.
        """
        for _ in range(self._plan.inner):
            order = np.lexsort((rng.random(len(rows)), -worth))[: 4 * self._plan.population]
            parents: dict[Codes, None] = {}
            for _, codes in self._fresh(rows, order, ()):
                parents[codes] = None
                if len(parents) == self._plan.population:
                    break
            if len(parents) < 2:
                break
            children = self._children(list(parents), self._plan.breed, _PAIRS, rng)
            rows = np.vstack([rows, children])
            worth = np.append(worth, self._fit_surrogate().improvement(children))
        return rows, worth

    def _fresh(
        self, rows: Matrix, order: NDArray[np.intp], running: Collection[Codes]
    ) -> Iterator[tuple[int, Codes]]:
        """The rows, in this order and in canonical form, that are neither known nor running.

        Yields the index of the row and its codes.
        """
        for place in order.tolist():
            codes = self._settle(tuple(rows[place].tolist()))
            is_known = codes is None or codes == self._default or codes in self._ratios
            if codes is not None and not is_known and codes not in running:
                yield place, codes

    def _strangers(self, rng: np.random.Generator) -> Matrix:
        """Random valid individuals: where effects interact, good ones lie apart."""
        space = self._codec.space
        codes: list[Codes] = []
        with suppress(UsageError):  # Valid settings are too rare.
            drawn = (self._codec.encode(space.sample(rng)) for _ in range(self._plan.breed))
            codes = [c for c in drawn if c is not None]
        return np.array(codes, dtype=np.intp).reshape(-1, len(self._codec.sizes))

    def _balanced(self, running: Collection[Codes], rng: np.random.Generator) -> Codes | None:
        """A random new individual whose levels are rare among those so far."""
        default = [] if self._default is None else [self._default]
        known = {*self._ratios, *running, *default}
        return balanced_start(self._codec, known, lambda codes: codes not in known, rng)

    def _newcomers(self, rng: np.random.Generator) -> Matrix:
        dealt = self._operators.deal(_TRIES, self._plan.lengths, rng)
        return np.array(dealt, dtype=np.intp).reshape(-1, len(self._codec.sizes))

    def tell(self, codes: Codes, ratio: float, scatter: Scatter | None = None) -> None:
        if codes == self._default:
            return  # It is known without a trial.
        self._ratios[codes] = ratio
        self._scatter = scatter or self._scatter
        self._stale = True
        self._trials += 1
        is_better = ratio < self._best
        self._best = min(ratio, self._best)
        self._stagnation = 0 if is_better else self._stagnation + 1

    def relabel(self) -> None:
        self._ratios = {self._settle(codes) or codes: r for codes, r in self._ratios.items()}
        self._stale = True

    def favourite(self) -> Codes | None:
        return self._fit_surrogate().favourite()

    def members(self) -> list[Codes]:
        """The population: the best individuals so far, the best first."""
        ranking, means = self._fit_surrogate().ranking()
        if self._default is not None and self._plan.start_default and self._default not in ranking:
            ranking.insert(int((means < 0).sum()), self._default)
        return ranking[: self._plan.population]

    def _fit_surrogate(self) -> Worlds:
        """The surrogate of all trials so far."""
        if self._stale:
            self._model.fit(self._ratios, self._scatter)
            self._stale = False
        return self._model

    def _balance(self) -> list[Codes]:
        rng = self._rng(_START)
        low, high = self._plan.lengths
        count = len(self._codec.sizes)
        length = min(max(count // _SHARE, low), high or count)
        return self._operators.balance(length, rng)
