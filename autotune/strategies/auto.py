"""The default strategy: a surrogate of effects; the acquisition is expected improvement."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from autotune.space import DEFAULT, Setting, Space
from autotune.strategies._additive import (
    Additive,
    Floats,
    Kernel,
    Matrix,
    Prior,
    expected_improvement,
)
from autotune.strategies._candidates import Pool
from autotune.strategies._codec import Codes
from autotune.strategies.base import SCATTER, Observation, Proposal, Strategy
from autotune.strategies.options import Option, OptionValue, table

_KEPT = 150
"""Largest number of observations in the fit: the best of them and the latest."""

_HAND = 2
"""Parameters changed together while screening: two find what matters sooner than one."""


class Auto(Strategy):
    """Proposes the setting with the largest expected improvement, beginning near the default.

    :meth:`ask` returns None if the space is exhausted, or if the best expected improvement was
    below ``ei_threshold`` for ``patience`` proposals in a row.
    """

    name = "auto"
    # The surrogate compares a lucky run with all other runs that share a level with it. A run of
    # another promising setting tells it more than a second run of the same one. The race repeats
    # later.
    repeats = False
    estimates = True
    summary = "learns which parameters matter and stops when more search is not worth its cost"
    options = table(
        Option(
            "ei_threshold",
            "float",
            0.002,
            "expected improvement (of the log ratio) below which a run is not worth its cost",
            (0, 1),
            stored="worth",
        ),
        Option(
            "patience",
            "int",
            5,
            "proposals in a row that are not worth their cost until it stops; 0: never",
            (0, 100_000),
        ),
        Option(
            "min_trials",
            "int",
            10,
            "settings tried before it may stop",
            (0, 100_000),
            stored="least",
        ),
        Option(
            "loss_clip",
            "float",
            0.3,
            "log ratio that stands for everything slower, failures included",
            (0.05, 10),
            stored="cliff",
        ),
    )

    def __init__(
        self,
        space: Space,
        *,
        seed: int,
        priors: Sequence[Setting] = (),
        options: Mapping[str, OptionValue] | None = None,
    ) -> None:
        super().__init__(space, seed=seed, priors=priors, options=options)
        self._belief = Prior()
        self._kernel = Kernel(self.codec, self._belief.shared)
        self._pool = Pool(space, self.codec)
        self._seen: dict[int, Observation] = {}
        self._keys: dict[Codes, str] = {}

    def learn(self, observation: Observation) -> None:
        self._seen[observation.number] = observation

    def propose(self) -> Proposal | None:
        ordered = [self._seen[number] for number in sorted(self._seen)]
        screening = None if self._pool.small else self._screen()
        if screening is not None:
            return Proposal(screening, {"dull": 0})
        codes, logs = self._data(ordered)
        model = self._model(ordered, codes, logs)
        best = self._best(model, codes)

        def score(rows: Matrix) -> Floats:
            return expected_improvement(*model.predict(rows), best)

        def expected(rows: Matrix) -> Floats:
            return -model.mean(rows)

        pool = self._pool.candidates(self._seeds(model, codes), expected, score)
        fresh = [c for c in pool if self._key(c) not in self._taken]
        if not fresh:
            return self.anything_new()
        scores = score(np.array(fresh, dtype=np.intp))
        # Ties (many before anything is known) are broken at random, so that seeds differ.
        jitter = self.rng(self.ordinal).random(len(fresh))
        top = int(np.lexsort((jitter, -scores))[0])
        dull = self._dull(ordered) + 1 if scores[top] < float(self.values["ei_threshold"]) else 0
        patience = int(self.values["patience"])
        if patience and dull > patience and len(ordered) >= int(self.values["min_trials"]):
            return None
        return Proposal(self.codec.decode(fresh[top]), {"dull": dull})

    def favourite(self) -> Setting | None:
        """The setting with the best estimate of the surrogate, not the one with the best own run.

        So every run of a level counts. None if nothing is estimated to be faster than the default.
        """
        ordered = [self._seen[number] for number in sorted(self._seen)]
        codes, logs = self._data(ordered)
        good = np.flatnonzero(logs < float(self.values["loss_clip"]))
        if not good.size:
            return None
        means = self._model(ordered, codes, logs).mean(codes[good])
        best = int(np.argmin(means))
        if means[best] >= 0 and self.space.is_valid(DEFAULT):
            return None
        return self.codec.decode(tuple(codes[good[best]].tolist()))

    def _screen(self) -> Setting | None:
        """Screening of many parameters: two at a time at random levels, until each was changed."""
        order = self.rng(0).permutation(np.flatnonzero(self.codec.sizes > 1))
        hands = [order[i : i + _HAND] for i in range(0, len(order), _HAND)]
        for number in range(self.ordinal, len(hands)):
            codes = np.zeros(len(self.codec.sizes), dtype=np.intp)
            hand = hands[number]
            codes[hand] = self.rng(0, number).integers(1, self.codec.sizes[hand])
            setting = self.codec.settle(self.codec.decode(codes.tolist()))
            if setting is not None and self.is_new(setting):
                return setting
        return None

    def _key(self, codes: Codes) -> str:
        """The key of canonical codes; cached, since a small space asks for all of its keys."""
        if codes not in self._keys:
            self._keys[codes] = self.codec.decode(codes).key
        return self._keys[codes]

    def _dull(self, ordered: Sequence[Observation]) -> int:
        """Number of proposals in a row below ``ei_threshold``, up to the last ended one."""
        kept = ordered[-1].attrs.get("dull", 0) if ordered else 0
        return kept if isinstance(kept, int) else 0

    def _data(self, ordered: Sequence[Observation]) -> tuple[Matrix, Floats]:
        """Codes and log ratios of what was measured; the default's ratio is 1 by definition."""
        ratios: dict[Codes, float] = {}
        for observation in ordered:
            settled = self.codec.settle(observation.setting)
            codes = None if settled is None else self.codec.encode(settled)
            if codes is not None:
                ratios[codes] = observation.fitness
        if len(ratios) > _KEPT:
            latest = list(ratios)[-_KEPT // 3 :]
            best = sorted(ratios, key=ratios.__getitem__)[: _KEPT - len(latest)]
            ratios = {c: ratios[c] for c in ratios if c in {*latest, *best}}
        clip = float(self.values["loss_clip"])
        logs = [max(min(math.log(r), clip), -clip * 4) for r in ratios.values()]
        shape = (len(ratios), len(self.codec.sizes))
        return np.array(list(ratios), dtype=np.intp).reshape(shape), np.array(logs)

    def _model(self, ordered: Sequence[Observation], codes: Matrix, logs: Floats) -> Additive:
        """The fitted surrogate; the default's own runs show the noise before any repetition."""
        told = ordered[-1].attrs.get(SCATTER) if ordered else None
        scatter = (0.0, 0.0)
        if isinstance(told, list | tuple) and len(told) == 2:
            scatter = (min(float(told[0]), float(self.values["loss_clip"]) ** 2), float(told[1]))
        return Additive(self._kernel, self._belief, codes, logs, scatter)

    def _best(self, model: Additive, codes: Matrix) -> float:
        """The smallest estimated log ratio of what was measured, at most the default's 0."""
        if not len(codes):
            return 0.0
        smallest = float(model.mean(codes).min())
        return min(smallest, 0.0) if self.space.is_valid(DEFAULT) else smallest

    def _seeds(self, model: Additive, codes: Matrix) -> list[Codes]:
        """Starts of the climb: the default and the settings with the best estimates."""
        start = tuple([0] * len(self.codec.sizes))
        if not len(codes):
            return [start]
        order = np.argsort(model.mean(codes), kind="stable")[:3]
        return [*(tuple(codes[i].tolist()) for i in order), start]
