"""The genetic search (Pellegrini 1.8): generations, operators and options.

The first part has the generations, as a pure function of the ordered trials and the seed.

The second part has the individuals, which have variable length, and the operators on them. An
individual is a vector of codes; a parameter that is left out is an absent gene. The operators make
many children at once: arrays have one row per child and one column per parameter.

The third part has the options and the values of the thesis for them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.strategies._codec import Codec, Codes
from autotune.strategies._surrogate import Surrogate
from autotune.strategies.options import Option, OptionValue, table

_IDLE = 20
"""Generations in a row without a new individual after which a newcomer is added."""
_TRIES = 50

# Streams of random numbers, so that no two uses share one.
_START, _DRAW, _BREED, _NEWCOMER, _EXTRA = range(5)


@dataclass(frozen=True)
class GeneticOptions:
    """The options of the genetic search; docs/strategies.md explains each."""

    population: int
    tournament: int
    offspring: int
    lengths: tuple[int, int]
    rates: Rates
    breed: int
    replace: str
    patience: int
    max_generations: int
    start_default: bool
    thesis: bool = False
    """Whether the search follows the text of the thesis only.

    The default is then no individual and no progress, the first population is whole, and children
    stay as they were bred.
    """


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
        self._model = Surrogate(codec) if plan.breed > 1 else None
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
        if codes not in self._ratios and self._model is not None:
            self._model.add(codes, ratio)
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
        for name in np.flatnonzero(self._codec.optional).tolist():
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
        """The most promising of many children; those that were never run (nor taken) come first."""
        children = self._genes.cross(a, b, self._plan.breed * count, rng)
        children = self._genes.mutate(children, self._plan.rates, rng)
        if self._model is not None:
            order = np.argsort(-self._model.improvement(children), kind="stable")
            children = children[order]
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


Matrix = NDArray[np.intp]


@dataclass(frozen=True)
class Rates:
    """Mutation rates of offspring: probabilities, and the expected number of inserted genes."""

    individual: float
    gene: float
    step: float
    drop: float
    insert: float


class Genes:
    """The genetic operators for one space."""

    def __init__(self, codec: Codec) -> None:
        self._sizes = codec.sizes
        self._optional = codec.optional
        self._lowest = codec.optional.astype(np.intp)
        self._up, self._down = _neighbours(codec)
        self._ordered = np.array([bool(axis) for axis in codec.axis])

    def deal(self, count: int, lengths: tuple[int, int], rng: np.random.Generator) -> list[Codes]:
        """Random individuals with a length drawn from the range, both ends included.

        Parameters are dealt like cards, with a newly shuffled pack when one is used up. So all of
        them occur as soon as there are as many genes as parameters.
        """
        optional = np.flatnonzero(self._optional)
        low, high = (min(length or len(optional), len(optional)) for length in lengths)
        pack: list[int] = []
        dealt = []
        for _ in range(count):
            length = int(rng.integers(low, max(low, high) + 1))
            if len(pack) < length:
                # The rest of the pack is dealt first, then cards of a pack without these, so that
                # none comes twice.
                rest = [int(p) for p in rng.permutation(optional) if int(p) not in pack]
                hand, pack = pack + rest[: length - len(pack)], rest[length - len(pack) :]
            else:
                hand, pack = pack[:length], pack[length:]
            dealt.append(self._individual(hand, rng))
        return dealt

    def cross(self, a: Codes, b: Codes, count: int, rng: np.random.Generator) -> Matrix:
        """Children of two parents, with lengths between those of the parents.

        A gene of both parents is inherited with the value of either. The remaining places get genes
        that one of the parents has.
        """
        first, second = np.array(a), np.array(b)
        children = np.where(rng.random((count, len(a))) < 0.5, first, second)
        single = (first == 0) != (second == 0)
        single &= self._optional
        common = int(((first > 0) & (second > 0) & self._optional).sum())
        lengths = sorted(int(((p > 0) & self._optional).sum()) for p in (first, second))
        wanted: Matrix = rng.integers(lengths[0], lengths[1] + 1, size=(count, 1)) - common
        order = np.where(single, rng.random((count, len(a))), 2.0).argsort(axis=1).argsort(axis=1)
        inherited = np.where(order < wanted, np.maximum(first, second), 0)
        return np.asarray(np.where(single, inherited, children), dtype=np.intp)

    def mutate(self, children: Matrix, rates: Rates, rng: np.random.Generator) -> Matrix:
        """Change, remove and insert genes of the children that are chosen for mutation."""
        shape = children.shape
        chosen = rng.random((shape[0], 1)) < rates.individual
        present = (children > 0) | ~self._optional
        changed = present & (rng.random(shape) < rates.gene)
        stepped = changed & self._ordered & (rng.random(shape) < rates.step)
        absent = np.maximum((~present).sum(axis=1, keepdims=True), 1)
        inserted = ~present & (rng.random(shape) < rates.insert / absent)
        dropped = present & self._optional & (rng.random(shape) < rates.drop)
        result = np.where(changed | inserted, self._levels(shape, rng), children)
        result = np.where(stepped, self._neighbour(children, rng), result)
        result = np.where(dropped, 0, result)
        return np.asarray(np.where(chosen, result, children), dtype=np.intp)

    def _individual(self, hand: list[int], rng: np.random.Generator) -> Codes:
        codes = self._levels((1, len(self._sizes)), rng)[0]
        absent = self._optional.copy()
        absent[hand] = False
        codes[absent] = 0
        return tuple(codes.tolist())

    def _levels(self, shape: tuple[int, ...], rng: np.random.Generator) -> Matrix:
        """Codes drawn uniformly from the levels, without unset."""
        span = np.maximum(self._sizes - self._lowest, 1)
        drawn = (rng.random(shape) * span).astype(np.intp) + self._lowest
        return np.asarray(np.minimum(drawn, self._sizes - 1), dtype=np.intp)

    def _neighbour(self, children: Matrix, rng: np.random.Generator) -> Matrix:
        columns = np.arange(len(self._sizes))
        up = rng.random(children.shape) < 0.5
        return np.where(up, self._up[columns, children], self._down[columns, children])


def _neighbours(codec: Codec) -> tuple[Matrix, Matrix]:
    """The codes above and below each code on its axis; itself at the ends and off the axis."""
    widest = int(codec.sizes.max(initial=1))
    up = np.tile(np.arange(widest), (len(codec.sizes), 1))
    down = up.copy()
    for row, axis in enumerate(codec.axis):
        up[row, list(axis[:-1])] = axis[1:]
        down[row, list(axis[1:])] = axis[:-1]
    return up.astype(np.intp), down.astype(np.intp)


OPTIONS = table(
    Option("population", "int", 10, "number of individuals in the population", (4, 10_000)),
    Option(
        "tournament",
        "int",
        5,
        "individuals drawn for each tournament; those not yet run are drawn first",
        (3, 10_000),
    ),
    Option("offspring", "int", 2, "children per generation", (1, 1000)),
    Option(
        "init_min",
        "int",
        1,
        "smallest number of parameters of an individual in the first population",
        (1, 10_000),
    ),
    Option(
        "init_max",
        "int",
        2,
        "largest number of parameters of an individual in the first population; 0: all",
        (0, 10_000),
    ),
    Option(
        "start_default",
        "choice",
        "yes",
        "the default is an individual of the first population",
        ("yes", "no"),
    ),
    Option("mutation_individual", "float", 1.0, "probability that a child is mutated", (0, 1)),
    Option(
        "mutation_gene",
        "float",
        0.15,
        "probability that a parameter of a mutated child changes its level",
        (0, 1),
    ),
    Option(
        "step",
        "float",
        0.5,
        "share of these changes that go to a neighbouring level, if the levels are ordered",
        (0, 1),
    ),
    Option(
        "drop", "float", 0.1, "probability that a parameter of a mutated child is left out", (0, 1)
    ),
    Option(
        "insert",
        "float",
        0.5,
        "expected number of parameters that are added to a mutated child",
        (0, 100),
    ),
    Option(
        "breed",
        "int",
        40,
        "children bred for each child that is run; a surrogate model selects it (1: no model)",
        (1, 10_000),
    ),
    Option(
        "replace",
        "choice",
        "population",
        "group whose worst individuals are replaced by the children",
        ("tournament", "population"),
    ),
    Option(
        "patience",
        "int",
        40,
        "generations without a new best, after the first population, until the search stops; "
        "0: no limit",
        (0, 100_000),
    ),
    Option(
        "max_generations",
        "int",
        0,
        "number of generations after which the search stops; 0: no limit",
        (0, 1_000_000),
    ),
    Option(
        "rules",
        "choice",
        "own",
        "thesis: each individual is run once, only a new best of the population counts as "
        "progress, and the first population is filled up to its size",
        ("own", "thesis"),
        later=True,
    ),
)

THESIS: dict[str, OptionValue] = {
    "population": 50,
    "tournament": 5,
    "offspring": 2,
    "init_min": 1,
    "init_max": 0,
    "start_default": "no",
    "mutation_individual": 0.002,
    "mutation_gene": 0.005,
    "step": 0.0,
    "drop": 0.0,
    "insert": 0.0,
    "breed": 1,
    "replace": "tournament",
    "patience": 10,
    "max_generations": 0,
    "rules": "thesis",
}
"""The options exactly as in Pellegrini 1.8.1; docs/strategies.md compares them line by line."""


def genetic_options(values: Mapping[str, OptionValue]) -> GeneticOptions:
    """The options in the form that the population needs."""
    return GeneticOptions(
        population=int(values["population"]),
        tournament=int(values["tournament"]),
        offspring=int(values["offspring"]),
        lengths=(int(values["init_min"]), int(values["init_max"])),
        rates=Rates(
            individual=float(values["mutation_individual"]),
            gene=float(values["mutation_gene"]),
            step=float(values["step"]),
            drop=float(values["drop"]),
            insert=float(values["insert"]),
        ),
        breed=int(values["breed"]),
        replace=str(values["replace"]),
        patience=int(values["patience"]),
        max_generations=int(values["max_generations"]),
        start_default=values["start_default"] == "yes",
        thesis=values.get("rules") == "thesis",
    )
