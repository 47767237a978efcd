"""The generations of the genetic search without a surrogate.

They are a pure function of the ordered trials and the seed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np

from autotune.strategies.codec import Codec, Codes
from autotune.strategies.ga.genes import Genes
from autotune.strategies.ga.options import GeneticOptions

_IDLE = 20
"""Generations in a row without a new individual after which a newcomer is added."""
_TRIES = 50

# Streams of random numbers, so that no two uses share one.
_START, _DRAW, _BREED, _NEWCOMER, _EXTRA = range(5)


class Population:
    """The population; it is told the ratios of settings and chooses the next individual to run.

    One tournament is one generation. The ratio of a setting is stored for the whole search, so a
    child that equals a known setting costs no run. ``seeds`` are individuals for the first
    population (the warm start). A setting that the population did not ask for replaces the worst
    individual if it is better.
    """

    def __init__(
        self, codec: Codec, plan: GeneticOptions, seed: int, seeds: Sequence[Codes] = ()
    ) -> None:
        self._codec = codec
        self._plan = plan
        self._seed = seed
        self._genes = Genes(codec)
        self._default = (0,) * len(codec.sizes) if codec.optional.all() else None
        self._ratios: dict[Codes, float] = {}
        self._best = math.inf
        self._best_before = math.inf
        self._unimproved = 0
        self._idle = 0
        self.generation = 0
        self.known_children = 0
        """Children that equalled a known or pending setting and so cost no run."""
        self.exhausted = False
        self.members = self._first(seeds)
        self._initial = set(self.members)
        self._tournament = self._draw()

    @property
    def finished(self) -> bool:
        """Whether the patience or the number of generations is used up."""
        plan = self._plan
        if plan.max_generations and self.generation >= plan.max_generations:
            return True
        return bool(plan.patience) and self._unimproved >= plan.patience

    def tell(self, codes: Codes, ratio: float) -> None:
        """Record one trial, in the order of the trials, and complete generations if possible."""
        self._ratios[codes] = ratio
        self._best = min(self._best, ratio)
        if codes not in self.members:
            self._immigrate(codes)
        self._advance()

    def relabel(self) -> None:
        """Merge individuals that are equal since the codec learned of inactive parameters."""
        for codes, ratio in list(self._ratios.items()):
            self._ratios.setdefault(self._settle(codes) or codes, ratio)
        self.members = [self._settle(m) or m for m in self.members]
        self._initial = {self._settle(m) or m for m in self._initial}
        self._advance()

    def next(self, running: Collection[Codes], ordinal: int) -> Codes | None:
        """The next individual to run, or None if there is none; those in ``running`` are being run.

        If the tournament waits only for running individuals, the result is another individual that
        has not run yet, else an extra child of the best two.
        """
        if self.exhausted:
            return None
        waiting = [self.members[i] for i in self._tournament] + self.members
        for codes in waiting:
            if codes not in self._ratios and codes not in running:
                return codes
        rng = np.random.default_rng([self._seed, _EXTRA, ordinal])
        parents = sorted(self._evaluated(), key=self._fitness)[:2]
        taken = set(running)
        if len(parents) == 2:
            mother, father = (self.members[i] for i in parents)
            child = self._breed(mother, father, 1, taken, rng)[0]
            if child not in self._ratios and child not in taken:
                return child
        return self._newcomer(rng, taken)

    def _first(self, seeds: Sequence[Codes]) -> list[Codes]:
        plan, codec = self._plan, self._codec
        members = [(0,) * len(codec.sizes)] if plan.start_default and codec.optional.all() else []
        members += seeds
        rng = np.random.default_rng([self._seed, _START])
        missing = max(plan.population - len(members), 0)
        dealt = self._genes.deal(missing, plan.lengths, rng)
        members += [codes for d in dealt if (codes := self._settle(d)) is not None]
        members = list(dict.fromkeys(members))
        return self._fill(members, rng) if plan.thesis else members

    def _fill(self, members: list[Codes], rng: np.random.Generator) -> list[Codes]:
        """The first population: as many individuals as planned, all different, without the default.

        Every parameter is in at least one of them, as far as the space allows this.
        """
        found = [m for m in members if m != self._default]
        for _ in range(_TRIES):
            missing = self._plan.population - len(found)
            if missing <= 0:
                break
            for codes in self._genes.deal(missing, self._plan.lengths, rng):
                settled = self._settle(codes)
                if settled is not None and settled != self._default and settled not in found:
                    found.append(settled)
        for name in np.flatnonzero(self._codec.optional & (self._codec.sizes > 1)).tolist():
            if found and not any(m[name] for m in found):
                self._plant(found, name, rng)
        return found or members

    def _plant(self, members: list[Codes], name: int, rng: np.random.Generator) -> None:
        """Add an absent parameter to an individual; no other loses its only occurrence."""
        for _ in range(_TRIES):
            place = int(rng.integers(len(members)))
            codes = list(members[place])
            codes[name] = int(rng.integers(1, self._codec.sizes[name]))
            settled = self._settle(tuple(codes))
            if settled is None or not settled[name] or settled in members:
                continue
            others = members[:place] + members[place + 1 :]
            lost = [n for n, code in enumerate(members[place]) if code and not settled[n]]
            if all(any(m[n] for m in others) for n in lost):
                members[place] = settled
                return

    def _advance(self) -> None:
        """Complete generations until a run is needed or the search has ended."""
        while not self.finished and not self.exhausted:
            if any(self.members[i] not in self._ratios for i in self._tournament):
                return
            self._reproduce()
            self._count()
            self._tournament = self._draw()

    def _reproduce(self) -> None:
        """Let the two best of the tournament have offspring, which replace the worst."""
        plan = self._plan
        ranked = sorted(self._tournament, key=self._fitness)
        rng = np.random.default_rng([self._seed, _BREED, self.generation])
        mother, father = self.members[ranked[0]], self.members[ranked[min(1, len(ranked) - 1)]]
        pool = (
            ranked if plan.replace == "tournament" else sorted(self._evaluated(), key=self._fitness)
        )
        # The parents stay, so the best individual is never lost.
        places = pool[2:][-plan.offspring :]
        children = self._breed(mother, father, len(places), set(), rng)
        for place, child in zip(places, children, strict=True):
            self.known_children += child in self._ratios or child in self.members
            self.members[place] = child

    def _count(self) -> None:
        self.generation += 1
        begun = all(codes in self._ratios for codes in self._initial)
        if self._plan.thesis:
            self._best = self._population_best()
        improved = self._best < self._best_before
        self._unimproved = 0 if improved or not begun else self._unimproved + 1
        self._best_before = self._best
        fresh = any(codes not in self._ratios for codes in self.members)
        self._idle = 0 if fresh else self._idle + 1
        if self._idle >= _IDLE:
            self._idle = 0
            rng = np.random.default_rng([self._seed, _NEWCOMER, self.generation])
            newcomer = self._newcomer(rng, set())
            self.exhausted = newcomer is None
            if newcomer is not None:
                self._replace_worst(newcomer)

    def _population_best(self) -> float:
        """The best fitness in the population.

        An individual that was repaired to the default does not count.
        """
        known = [self._fitness(i) for i in self._evaluated() if self.members[i] != self._default]
        return min(known, default=math.inf)

    def _draw(self) -> list[int]:
        """A tournament: all that have not run yet, and a random draw from the others."""
        rng = np.random.default_rng([self._seed, _DRAW, self.generation])
        order: list[int] = rng.permutation(len(self.members)).tolist()
        order.sort(key=lambda i: self.members[i] in self._ratios)
        return order[: self._plan.tournament]

    def _breed(
        self, a: Codes, b: Codes, count: int, taken: Collection[Codes], rng: np.random.Generator
    ) -> list[Codes]:
        """Children of two parents; those that were never run (nor taken) come first."""
        children = self._genes.cross(a, b, count, rng)
        children = self._genes.mutate(children, self._plan.rates, rng)
        if self._plan.thesis:
            # Two equal children, or a child equal to its parent, are not changed.
            return [self._settle(tuple(row)) or a for row in children[:count].tolist()]
        fresh: dict[Codes, None] = {}
        known: list[Codes] = []
        for row in children.tolist():
            codes = self._settle(tuple(row))
            if codes is None:
                continue
            if codes in self._ratios or codes in taken:
                known.append(codes)
            else:
                fresh[codes] = None
            if len(fresh) == count:
                break
        # A known child costs no run; a parent is used if no child satisfies the rules.
        return [*fresh, *known, *[a] * count][:count]

    def _newcomer(self, rng: np.random.Generator, taken: Collection[Codes]) -> Codes | None:
        for codes in self._genes.deal(_TRIES, self._plan.lengths, rng):
            settled = self._settle(codes)
            if settled is not None and settled not in self._ratios and settled not in taken:
                return settled
        return None

    def _immigrate(self, codes: Codes) -> None:
        evaluated = self._evaluated()
        if evaluated and self._ratios[codes] < max(self._fitness(i) for i in evaluated):
            self._replace_worst(codes)

    def _replace_worst(self, codes: Codes) -> None:
        self.members[max(self._evaluated(), key=self._fitness)] = codes

    def _evaluated(self) -> list[int]:
        return [i for i, codes in enumerate(self.members) if codes in self._ratios]

    def _fitness(self, place: int) -> float:
        return self._ratios.get(self.members[place], math.inf)

    def _settle(self, codes: Codes) -> Codes | None:
        return self._codec.settle_codes(codes)
