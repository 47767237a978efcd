"""The generations of the surrogate-assisted genetic search.

One run is one child. The population are the best individuals so far by the surrogate's estimates;
a child takes the place of the worst if it is better. The surrogate selects the child to be run by
its expected improvement. All of it is a function of the trials and the seed: nothing is stored.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from autotune.space import DEFAULT
from autotune.strategies.candidates import LISTING_LIMIT
from autotune.strategies.codec import Codec, Codes
from autotune.strategies.ga.genes import Genes, Matrix
from autotune.strategies.ga.options import GeneticOptions
from autotune.strategies.levels import Floats
from autotune.strategies.models.additive import Prior
from autotune.strategies.models.estimates import Estimates
from autotune.strategies.models.joint_model import JointModel

_BELIEF = Prior(pairs=0.2, stiffness=1.0, noises=(0.02, 0.05, 0.12), rounds=3)
"""Pairs have small effects, so a child of two good parents is expected to have the gains of both.

Three levels of noise and three rounds keep the fit of 100 runs short.
"""
_CLIP = 0.3
"""Log ratio that stands for everything slower, failures included: that of ``auto``."""
_BEST = 3
"""Number of the best individuals whose one-step neighbours are candidates."""
_SHARE = 3
"""An individual of the first generation changes one parameter in three."""
_MULTIPLES = (1, 4, 16)
"""Multiples of the planned number of new genes that children get."""
_PAIRS = 4
"""Pairs of parents of a generation that only the surrogate judges."""
_TRIES = 50

# Streams of random numbers, so that no two uses share one.
_START, _CHILD, _SAMPLES = range(3)


class AssistedPopulation:
    """The population with a surrogate; it is told ratios and chooses the next individual to run.

    ``seeds`` are individuals of the first generation (the warm start).
    """

    def __init__(
        self, codec: Codec, plan: GeneticOptions, seed: int, seeds: Sequence[Codes] = ()
    ) -> None:
        self._codec = codec
        self._plan = plan
        self._seed = seed
        self._genes = Genes(codec)
        self._default = (0,) * len(codec.sizes) if codec.space.is_valid(DEFAULT) else None
        self._ratios: dict[Codes, float] = {}
        self._scatter: tuple[float, float] | None = None
        self._model = self._surrogate()
        self._stale = False
        self._best = math.inf if self._default is None else 1.0
        self._unimproved = 0
        self._trials = 0
        self.first = [*seeds, *self._balanced()]
        """The first generation, run or not."""

    @property
    def generation(self) -> int:
        """Number of generations that have ended."""
        return self._trials // self._plan.offspring

    @property
    def finished(self) -> bool:
        """Whether the search has ended by its own rules.

        Without a limit of generations it ends if there was no new best for ``patience``
        generations after as many others, or for ``ei_patience`` ones and no candidate is worth a
        run.  A best among the first individuals is often a lucky run.
        """
        plan = self._plan
        if plan.max_generations and self.generation >= plan.max_generations:
            return True
        waited = self._unimproved // plan.offspring
        if not plan.patience or self._trials < plan.min_trials or waited < plan.ei_patience:
            return False
        if waited >= plan.patience and self.generation >= 2 * plan.patience:
            return True
        _, worth = self._select((), self._trials)
        return worth < plan.ei_threshold

    def tell(self, codes: Codes, ratio: float, scatter: tuple[float, float] | None = None) -> None:
        """Record one trial, in the order of the trials; ``scatter``: see :class:`Estimates`.

        The default is known without a trial.
        """
        if codes == self._default:
            return
        self._ratios[codes] = ratio
        self._scatter = scatter or self._scatter
        self._stale = True
        self._trials += 1
        improved = ratio < self._best
        self._best = min(ratio, self._best)
        self._unimproved = 0 if improved else self._unimproved + 1

    def relabel(self) -> None:
        """Merge individuals that are equal since the codec learned of inactive parameters."""
        self._ratios = {
            self._codec.settle_codes(codes) or codes: ratio for codes, ratio in self._ratios.items()
        }
        self._stale = True

    def next(self, running: Collection[Codes], ordinal: int) -> Codes | None:
        """The next individual to run; None if there is none. Those in ``running`` are being run."""
        return self._select(running, ordinal)[0]

    def favourite(self) -> Codes | None:
        """The individual with the best estimate; None if that is the default."""
        return self._fitted().favourite()

    def members(self) -> list[Codes]:
        """The population: the best individuals so far, the best first."""
        ranked, means = self._fitted().ranking()
        if self._default is not None and self._plan.start_default and self._default not in ranked:
            ranked.insert(int((means < 0).sum()), self._default)
        return ranked[: self._plan.population]

    def _surrogate(self) -> Estimates | JointModel:
        """Effects of levels and of pairs in a small space, sparse ones and cliffs elsewhere."""
        codec, clip, anchored = self._codec, _CLIP, self._default is not None
        if codec.space.listed(LISTING_LIMIT) is not None:
            return Estimates(codec, _BELIEF, clip, has_default=anchored)
        return JointModel(
            codec,
            clip,
            lambda count: np.random.default_rng([self._seed, _SAMPLES, count]),
            has_default=anchored,
        )

    def _fitted(self) -> Estimates | JointModel:
        """The surrogate of all trials so far."""
        if self._stale:
            self._model.fit(self._ratios, self._scatter)
            self._stale = False
        return self._model

    def _select(self, running: Collection[Codes], ordinal: int) -> tuple[Codes | None, float]:
        """The candidate with the largest expected improvement, and that improvement."""
        rng = np.random.default_rng([self._seed, _CHILD, ordinal])
        candidates = self._candidates(rng)
        worth = self._fitted().improvement(candidates)
        if self._ratios:
            candidates, worth = self._evolved(candidates, worth, rng)
        # Ties (many before anything is known) are broken at random, so that seeds differ.
        order = np.lexsort((rng.random(len(candidates)), -worth))
        for place, codes in self._fresh(candidates, order, running):
            return codes, float(worth[place])
        newcomers = self._newcomers(rng)
        for _, codes in self._fresh(newcomers, np.arange(len(newcomers)), running):
            return codes, 0.0
        return None, 0.0

    def _evolved(
        self, rows: Matrix, worth: Floats, rng: np.random.Generator
    ) -> tuple[Matrix, Floats]:
        """The candidates with those of further generations, which only the surrogate judges.

        The fitness of a generation is what a run of the individual is worth.
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
            bred = self._children(list(parents), self._plan.breed, _PAIRS, rng)
            rows = np.vstack([rows, bred])
            worth = np.append(worth, self._fitted().improvement(bred))
        return rows, worth

    def _fresh(
        self, rows: Matrix, order: NDArray[np.intp], running: Collection[Codes]
    ) -> Iterator[tuple[int, Codes]]:
        """The rows, in this order and in canonical form, that are neither known nor being run.

        The first is the place of the row.
        """
        for place in order.tolist():
            codes = self._codec.settle_codes(tuple(rows[place].tolist()))
            known = codes is None or codes == self._default or codes in self._ratios
            if codes is not None and not known and codes not in running:
                yield place, codes

    def _candidates(self, rng: np.random.Generator) -> Matrix:
        """The first generation, bred children, and the neighbours of the best individuals."""
        groups = [np.array(self.first, dtype=np.intp).reshape(-1, len(self._codec.sizes))]
        if self._ratios:
            members = self.members()
            groups += [self._children(members, self._plan.breed, 1, rng)]
            groups += [self._genes.neighbours(codes) for codes in members[:_BEST]]
        return np.vstack(groups)

    def _children(
        self, members: list[Codes], count: int, pairs: int, rng: np.random.Generator
    ) -> Matrix:
        """Children of so many pairs of parents, each the two best of a tournament.

        A third of them gets the planned number of new genes, the others a multiple of it: how many
        unknown genes are worth a run together is for the surrogate to say.
        """
        drawn = rng.permuted(np.tile(np.arange(len(members)), (pairs, 1)), axis=1)
        best = np.sort(drawn[:, : self._plan.tournament], axis=1)[:, [0, min(1, len(members) - 1)]]
        parents = np.array(members, dtype=np.intp)[np.repeat(best, -(-count // pairs), axis=0)]
        children = self._genes.cross(parents[:count, 0], parents[:count, 1], count, rng)
        rates = self._plan.rates
        multiples = np.resize(_MULTIPLES, (count, 1))
        return self._genes.mutate(children, replace(rates, insert=rates.insert * multiples), rng)

    def _balanced(self) -> list[Codes]:
        rng = np.random.default_rng([self._seed, _START])
        low, high = self._plan.lengths
        count = len(self._codec.sizes)
        length = min(max(count // _SHARE, low), high or count)
        return self._genes.balance(length, rng)

    def _newcomers(self, rng: np.random.Generator) -> Matrix:
        dealt = self._genes.deal(_TRIES, self._plan.lengths, rng)
        return np.array(dealt, dtype=np.intp).reshape(-1, len(self._codec.sizes))
