"""The genetic search: it selects the next individual to run, and learns from its run.

Both forms go through the same steps: **ask**, choose **parents**, **cross** and **mutate** them
(:mod:`autotune.strategies.ga.operators`), **repair** (:class:`autotune.strategies.codec.Codec`),
**judge**, **tell**. Without a surrogate (:class:`Population`, as in the thesis) each child is
judged by a run. With one (:mod:`autotune.strategies.ga.assisted_population`) a model of the runs so
far judges many children, and only the best is run.

Each is a pure function of the ordered trials and the seed: nothing is stored.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence

import numpy as np

from autotune.strategies.codec import Codec, Codes
from autotune.strategies.ga.operators import Operators
from autotune.strategies.ga.options import GeneticOptions

Scatter = tuple[float, float]

TRIES = 50
"""Number of random individuals that are dealt if a new one is needed."""
_IDLE = 20
"""A newcomer is added after this number of consecutive generations without a new individual."""

# Streams of random numbers: no two uses share one.
_START, _DRAW, _BREED, _NEWCOMER, _EXTRA = range(5)


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

    def spares(self, count: int) -> list[Codes]:
        """At most ``count`` individuals to run if others have begun the one just asked for."""
        return []

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
        for codes in self._operators.deal(TRIES, self._plan.lengths, rng):
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
        for _ in range(TRIES):
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
        for _ in range(TRIES):
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
