"""The default strategy: a surrogate of sparse effects, cliffs, and expected improvement."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from autotune.space import DEFAULT, Setting, Space
from autotune.strategies._additive import one_thread
from autotune.strategies._candidates import Pool
from autotune.strategies._cliffs import CliffPrior, Cliffs
from autotune.strategies._codec import Codes
from autotune.strategies._sparse import (
    Beliefs,
    Columns,
    Floats,
    Levels,
    Matrix,
    SparseEffects,
)
from autotune.strategies.base import SCATTER, Observation, Proposal, Strategy
from autotune.strategies.options import Option, OptionValue, table

_KEPT = 150
"""Largest number of observations in the fit: the best of them and the latest."""
_STARTS = 3
"""Number of the best measured settings from which candidates are sought."""
_OWN = 0.3
"""Weight of the own run of a setting in its estimate, against the effects of its levels."""
_REST = 1e-6
"""Weight of the mean in the expected improvement."""
_SURE = 2.0
"""A run slower than ``loss_clip`` times this was hardly slow by chance."""


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
            "log ratio above which a run, like a failure, shows that a level is a cliff",
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
        self._levels = Levels(self.codec)
        self._beliefs = Beliefs()
        self._columns = Columns(self.codec, self._levels, self._beliefs)
        self._pool = Pool(space, self.codec)
        self._seen: dict[int, Observation] = {}
        self._keys: dict[Codes, str] = {}
        self._codes: dict[Setting, Codes | None] = {}
        self._known_fit: _Fit | None = None

    def learn(self, observation: Observation) -> None:
        self._seen[observation.number] = observation
        self._known_fit = None

    def propose(self) -> Proposal | None:
        with one_thread():
            return self._improvement()

    def favourite(self) -> Setting | None:
        """The setting with the best estimate of the surrogate, not the one with the best own run.

        So every run of a level counts. None if nothing is estimated to be faster than the default.
        """
        with one_thread():
            fit = self._fit()
        if not fit.estimates.size:
            return None
        best = int(np.argmin(fit.estimates))
        if fit.estimates[best] >= 0 and self.space.is_valid(DEFAULT):
            return None
        return self.codec.decode(tuple(fit.codes[best].tolist()))

    def _improvement(self) -> Proposal | None:
        """The proposal with the largest expected improvement; None if it is not worth its cost."""
        fit = self._fit()
        acquisition = SafeImprovement(self._levels, fit.effects.samples, fit.cliffs, fit.best)
        pool = self._pool.candidates(self._starts(fit), acquisition, self._is_fresh)
        fresh = [c for c in pool if self._is_fresh(c)]
        if not fresh:
            return self.anything_new()
        scores = acquisition.values(np.array(fresh, dtype=np.intp))
        # Ties (many before anything is known) are broken at random, so that seeds differ.
        jitter = self.rng(self.ordinal).random(len(fresh))
        top = int(np.lexsort((jitter, -scores))[0])
        ordered = self._ordered()
        dull = self._dull(ordered) + 1 if scores[top] < float(self.values["ei_threshold"]) else 0
        patience = int(self.values["patience"])
        if patience and dull > patience and len(ordered) >= int(self.values["min_trials"]):
            return None
        return Proposal(self.codec.decode(fresh[top]), {"dull": dull})

    def _is_fresh(self, codes: Codes) -> bool:
        return self._key(codes) not in self._taken

    def _key(self, codes: Codes) -> str:
        """The key of canonical codes; cached, since a small space asks for all of its keys."""
        if codes not in self._keys:
            self._keys[codes] = self.codec.decode(codes).key
        return self._keys[codes]

    def _encoded(self, setting: Setting) -> Codes | None:
        """The codes of a canonical setting, cached."""
        if setting not in self._codes:
            self._codes[setting] = self.codec.encode(setting)
        return self._codes[setting]

    def _dull(self, ordered: Sequence[Observation]) -> int:
        """Number of proposals in a row below ``ei_threshold``, up to the last ended one."""
        kept = ordered[-1].attrs.get("dull", 0) if ordered else 0
        return kept if isinstance(kept, int) else 0

    def _data(self, ordered: Sequence[Observation]) -> tuple[Matrix, Floats]:
        """Codes and log ratios of what was measured (inf: it failed), each setting once."""
        ratios: dict[Codes, float] = {}
        for observation in ordered:
            settled = self.codec.settle(observation.setting)
            codes = None if settled is None else self._encoded(settled)
            if codes is not None:
                ratios[codes] = observation.fitness
        if len(ratios) > _KEPT:
            latest = list(ratios)[-_KEPT // 3 :]
            best = sorted(ratios, key=ratios.__getitem__)[: _KEPT - len(latest)]
            ratios = {c: ratios[c] for c in ratios if c in {*latest, *best}}
        logs = [math.log(ratio) for ratio in ratios.values()]
        shape = (len(ratios), len(self.codec.sizes))
        return np.array(list(ratios), dtype=np.intp).reshape(shape), np.array(logs)

    def _ordered(self) -> list[Observation]:
        return [self._seen[number] for number in sorted(self._seen)]

    def _fit(self) -> _Fit:
        """What is known after the last observation; it follows from the observations and the seed.

        The default's own runs show the noise before any repetition.
        """
        if self._known_fit is not None:
            return self._known_fit
        ordered = self._ordered()
        codes, logs = self._data(ordered)
        clip = float(self.values["loss_clip"])
        fell = logs > clip
        cliffs = Cliffs(self._levels, CliffPrior(), codes, fell, logs > _SURE * clip)
        codes, logs = codes[~fell], np.maximum(logs[~fell], -4 * clip)
        told = ordered[-1].attrs.get(SCATTER) if ordered else None
        scatter = (0.0, 0.0)
        if isinstance(told, list | tuple) and len(told) == 2:
            scatter = (min(float(told[0]), clip**2), float(told[1]))
        rng = self.rng(len(ordered), 1)
        effects = SparseEffects(
            self._levels, self._columns, self._beliefs, codes, logs, rng, scatter
        )
        estimates = effects.mean(codes)
        # Interactions of parameters are in no effect of a level, but in the setting's own run.
        estimates += _OWN * (logs - estimates)
        best = float(estimates.min()) if len(estimates) else 0.0
        best = min(best, 0.0) if self.space.is_valid(DEFAULT) else best
        self._known_fit = _Fit(codes, estimates, best, effects, cliffs)
        return self._known_fit

    def _starts(self, fit: _Fit) -> list[Codes]:
        """Starts of the climbs: the default and the settings with the best estimates."""
        order = np.argsort(fit.estimates, kind="stable")[:_STARTS]
        return [(0,) * len(self.codec.sizes), *(tuple(fit.codes[i].tolist()) for i in order)]


@dataclass(frozen=True)
class _Fit:
    """The settings without a cliff, their estimated log ratios, the best of these, the models."""

    codes: Matrix
    estimates: Floats
    best: float
    effects: SparseEffects
    cliffs: Cliffs


class SafeImprovement:
    """Expected improvement of the log ratio below ``best``, if no level is a cliff.

    It is the mean of max(best - log ratio, 0) over ``samples`` of the effects (samples, choices),
    times the probability that no level of the setting is a cliff. So unknown levels are changed
    together as far as the costs and cliffs that were seen allow.
    """

    def __init__(self, levels: Levels, samples: Floats, cliffs: Cliffs, best: float) -> None:
        self._levels, self._samples, self._cliffs, self._best = levels, samples, cliffs, best

    def values(self, codes: Matrix) -> Floats:
        """The value of each setting, shape (settings,)."""
        logs = self._samples @ self._levels.one_hot(codes).T
        return self._safe(logs, self._cliffs.clear(codes))

    def changes(self, codes: Codes) -> Floats:
        """The value of a setting after each change of one parameter, shape (choices,)."""
        levels, clear = self._levels, self._cliffs.log_clear
        places = levels.places(np.array(codes, dtype=np.intp))
        own = self._samples[:, places]
        logs = own.sum(axis=1)[:, None] - own[:, levels.owner] + self._samples
        safe = clear[places].sum() - clear[places][levels.owner] + clear
        return self._safe(logs, safe)

    def _safe(self, logs: Floats, clear: Floats) -> Floats:
        gains = np.maximum(self._best - logs, 0.0).mean(axis=0)
        # Where no sample improves, the mean decides.
        gains += _REST * np.exp(self._best - logs.mean(axis=0))
        return np.asarray(gains * np.exp(clear), dtype=np.float64)
