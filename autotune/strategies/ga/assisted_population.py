"""The genetic search with a surrogate: a model of the runs judges children, the best one is run."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from autotune.errors import UsageError
from autotune.space import DEFAULT
from autotune.strategies.candidates import balanced_start, crowding
from autotune.strategies.codec import Codec, Codes
from autotune.strategies.ga.operators import Matrix
from autotune.strategies.ga.options import GeneticOptions
from autotune.strategies.ga.population import TRIES, GeneticSearch, Scatter
from autotune.strategies.levels import Floats
from autotune.strategies.models.additive import Prior
from autotune.strategies.models.worlds import Worlds, count_of_starts, worlds

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

# Streams of random numbers: no two uses share one.
_START, _CHILD, _SAMPLES = range(3)


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
        self._ranking: Iterator[tuple[int, Codes]] = iter(())
        """What is left of the candidates of the last request, the best first."""
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

    def spares(self, count: int) -> list[Codes]:
        """The children that are most worth running after the one just asked for."""
        return [codes for _, codes in islice(self._ranking, count)]

    def _select(self, running: Collection[Codes], ordinal: int) -> tuple[Codes | None, float]:
        """The candidate with the largest expected improvement, and that improvement."""
        rng = self._rng(_CHILD, ordinal)
        self._ranking = iter(())
        if ordinal < self._starts and (start := self._balanced(running, rng)) is not None:
            return start, math.inf
        candidates = self._repaired(self._candidates(rng))
        worth = self._fit_surrogate().improvement(candidates)
        if self._ratios:
            candidates, worth = self._evolve(candidates, worth, rng)
        # Ties (frequent before anything is known) are broken at random, so that seeds differ.
        ties = rng.random(len(candidates))
        penalised = worth / (1.0 + crowding(candidates, running)) if running else worth
        self._ranking = self._fresh(candidates, np.lexsort((ties, -penalised)), running)
        for place, codes in self._ranking:
            return codes, float(worth[place])
        newcomers = self._newcomers(rng)
        for _, codes in self._fresh(newcomers, np.arange(len(newcomers)), running):
            return codes, 0.0
        return None, 0.0

    def _candidates(self, rng: np.random.Generator) -> Matrix:
        """The first generation, bred children, and the neighbours of the best individuals."""
        groups = [np.array(self.first, dtype=np.intp).reshape(-1, len(self._codec.sizes))]
        members = self.members() if self._ratios else []
        if members:  # There are none as long as all runs failed and the default is invalid.
            groups += [self._children(members, self._plan.breed, 1, rng)]
            groups += [self._operators.neighbours(codes) for codes in members[:_BEST]]
            if self._fit_surrogate().interacts:
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
            children = self._repaired(children)
            rows = np.vstack([rows, children])
            worth = np.append(worth, self._fit_surrogate().improvement(children))
        return rows, worth

    def _repaired(self, rows: Matrix) -> Matrix:
        """The individuals as they would be run, where effects interact.

        A repair changes a parameter, and there one parameter changes what all others are worth.
        """
        if not self._fit_surrogate().interacts:
            return rows
        repaired = (self._settle(tuple(row)) for row in rows.tolist())
        codes = list(dict.fromkeys(c for c in repaired if c is not None))
        return np.array(codes, dtype=np.intp).reshape(-1, len(self._codec.sizes))

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
        dealt = self._operators.deal(TRIES, self._plan.lengths, rng)
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
