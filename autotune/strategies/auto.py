"""The default strategy: a surrogate of effects; the acquisition is expected improvement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from autotune.space import Setting, Space
from autotune.strategies.base import SCATTER, Observation, Proposal, Strategy
from autotune.strategies.candidates import balanced_start, crowding
from autotune.strategies.codec import Codes
from autotune.strategies.models.additive import Prior
from autotune.strategies.models.worlds import Worlds, count_of_starts, worlds
from autotune.strategies.options import Option, OptionValue, table

_PATIENCE_FOR_BEST = 6
"""Where effects depend on each other, so many times ``patience`` runs without a new best end it.

Far from all runs, the expected improvement stays large there.
"""


class Auto(Strategy):
    """Proposes the setting with the largest expected improvement, beginning near the default.

    :meth:`ask` returns None if the space is exhausted, or if the best expected improvement was
    below ``ei_threshold`` for ``patience`` proposals in a row.
    """

    name = "auto"
    # The surrogate compares a lucky run with all other runs that share a level with it. A run of
    # another promising setting is more informative than a repetition. The race repeats later.
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
        ),
        Option(
            "loss_clip",
            "float",
            0.3,
            "log ratio above which a run counts like a failure",
            (0.05, 10),
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
        self._model = worlds(self.codec, float(self.values["loss_clip"]), self._draws, Prior())
        self._starts = count_of_starts(space)
        self._stale = False
        self._observations: dict[int, Observation] = {}
        self._running: dict[str, Codes] = {}
        """Settings that other workers measure, by their keys."""
        self._keys: dict[Codes, str] = {}
        self._codes: dict[Setting, Codes | None] = {}

    def learn(self, observation: Observation) -> None:
        self._running.pop(self.space.canonical(observation.setting).key, None)
        self._observations[observation.number] = observation
        self._stale = True

    def learn_running(self, observation: Observation) -> None:
        canonical = self.space.canonical(observation.setting)
        codes = self._codes_of(canonical)
        if codes is not None:
            self._running[canonical.key] = codes

    def propose(self) -> Proposal | None:
        if self.ordinal < self._starts and (start := self._balanced()) is not None:
            return Proposal(self.codec.decode(start))
        fresh, values = self._current_model().candidates(self._is_fresh)
        if not fresh:
            return self.anything_new()
        # Ties (frequent before anything is known) are broken at random, so that seeds differ.
        jitter = self.rng(self.ordinal).random(len(fresh))
        worth = values
        if self._running:
            worth = values / (1.0 + crowding(np.array(fresh, np.intp), self._running.values()))
        order = np.lexsort((jitter, -worth)).tolist()
        top = order[0]
        observations = self._observations_in_order()
        dull = (
            self._dull(observations) + 1 if values.max() < float(self.values["ei_threshold"]) else 0
        )
        patience = int(self.values["patience"]) * self._model.persistence
        in_vain = self._model.interacts and _in_vain(observations) >= _PATIENCE_FOR_BEST * patience
        is_over = dull > patience or in_vain
        if patience and is_over and len(observations) >= int(self.values["min_trials"]):
            return None
        attrs: dict[str, object] = {"dull": dull}
        spares = (Proposal(self.codec.decode(fresh[at]), attrs) for at in order[1:][: self.spares])
        return Proposal(self.codec.decode(fresh[top]), attrs, tuple(spares))

    def favourite(self) -> Setting | None:
        """The setting with the surrogate's best estimate, not the one with the fastest run.

        So every run of a level counts. None if no setting is estimated to be faster than the
        default.
        """
        codes = self._current_model().favourite()
        return None if codes is None else self.codec.decode(codes)

    def _current_model(self) -> Worlds:
        """The model of all observations, in the order of their numbers."""
        if self._stale:
            observations = self._observations_in_order()
            value = observations[-1].attrs.get(SCATTER)
            scatter = None
            if isinstance(value, list | tuple) and len(value) == 2:
                scatter = (float(value[0]), float(value[1]))
            self._model.fit(self._ratios(observations), scatter)
            self._stale = False
        return self._model

    def _balanced(self) -> Codes | None:
        """A random new setting whose levels are rare among the settings so far."""
        codes = (self.codec.encode(setting) for setting in self._settings_by_key.values())
        known = [c for c in codes if c is not None]
        return balanced_start(self.codec, known, self._is_fresh, self.rng(self.ordinal, 2))

    def _draws(self, count: int) -> np.random.Generator:
        """The generator of the samples drawn after ``count`` measured settings."""
        return self.rng(count, 1)

    def _is_fresh(self, codes: Codes) -> bool:
        return self._key(codes) not in self._taken_keys

    def _key(self, codes: Codes) -> str:
        """The key of canonical codes; cached, since all keys of a small space are needed."""
        if codes not in self._keys:
            self._keys[codes] = self.codec.decode(codes).key
        return self._keys[codes]

    def _codes_of(self, setting: Setting) -> Codes | None:
        """The codes of a canonical setting, cached."""
        if setting not in self._codes:
            self._codes[setting] = self.codec.encode(setting)
        return self._codes[setting]

    def _dull(self, observations: Sequence[Observation]) -> int:
        """Number of proposals in a row below ``ei_threshold``, up to the last ended one."""
        count = observations[-1].attrs.get("dull", 0) if observations else 0
        return count if isinstance(count, int) else 0

    def _ratios(self, observations: Sequence[Observation]) -> dict[Codes, float]:
        """The ratio to the default of each measured setting; infinite if it failed."""
        ratios: dict[Codes, float] = {}
        for observation in observations:
            canonical = self.codec.settle(observation.setting)
            codes = None if canonical is None else self._codes_of(canonical)
            if codes is not None:
                ratios[codes] = observation.fitness
        return ratios

    def _observations_in_order(self) -> list[Observation]:
        return [self._observations[number] for number in sorted(self._observations)]


def _in_vain(observations: Sequence[Observation]) -> int:
    """The number of runs since the best one."""
    if not observations:
        return 0
    best = min(range(len(observations)), key=lambda place: observations[place].fitness)
    return len(observations) - 1 - best
