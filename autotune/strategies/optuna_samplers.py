"""Optuna's samplers as strategies, ``optuna:SAMPLER``: ask and tell on a study in memory.

The study is rebuilt from observations. There is one class for each sampler.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import optuna
from optuna import Study
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, NSGAIISampler, TPESampler
from optuna.trial import FrozenTrial, TrialState, create_trial

from autotune.space import DEFAULT, Setting, Space
from autotune.strategies.base import (
    DEFAULTS,
    EQUAL,
    INACTIVE,
    SCATTER,
    UNUSED,
    Observation,
    Proposal,
    Strategy,
)
from autotune.strategies.codec import Codec
from autotune.strategies.options import Option, OptionValue, need, table

NUMBER = "number"
"""User attribute of an Optuna trial: the number of its observation, which gives the order."""
_SYSTEM = "optuna"
"""Attribute of a proposal with the data that the sampler stored with the trial."""
_TRIES = 5
_WORST = 10.0
"""A larger ratio counts as this one for CMA-ES."""
_YES = {"yes": True, "no": False}

optuna.logging.set_verbosity(optuna.logging.ERROR)


class _Shared(BaseDistribution):
    """A distribution that is not copied, and equals itself without a look at what it holds.

    Optuna deep-copies every added trial with its distributions, and compares those of all trials
    at each draw. They never change, and copying 25 of them takes longer than everything else.
    """

    def __deepcopy__(self, memo: dict[int, object]) -> _Shared:
        return self

    def __eq__(self, other: object) -> bool:
        return self is other or super().__eq__(other)

    __hash__ = BaseDistribution.__hash__


class _SharedChoices(_Shared, CategoricalDistribution):
    pass


class _SharedPositions(_Shared, IntDistribution):
    pass


def distributions(
    codec: Codec, kind: type[CategoricalDistribution] = CategoricalDistribution
) -> dict[str, BaseDistribution]:
    """One categorical distribution per parameter, over the texts of its choices."""
    parameters = zip(codec.names, codec.texts, strict=True)
    return {name: kind(list(texts)) for name, texts in parameters}


def _positions(codec: Codec) -> list[tuple[int, ...]]:
    """The position of each code among all levels of its parameter; words in the space's order.

    Unset is below all levels if its position among them is unknown.
    """
    positions = []
    for axis, size in zip(codec.axis, codec.sizes.tolist(), strict=True):
        order = [*(code for code in range(size) if code not in axis), *axis]
        positions.append(tuple(order.index(code) for code in range(size)))
    return positions


class OptunaStrategy(Strategy):
    """A strategy that wraps an Optuna sampler.

    ``sampler`` is its class; the options are arguments of its constructor. With ``uses_order`` a
    parameter is the position of its level, a whole number; else it is the text of its level.

    Before each draw the sampler gets a new seed, from the seed and the position in the stream. So a
    rebuilt study continues exactly like the old one. The sampler draws on a scratch trial, which is
    then dropped; only the repaired setting is used. An ended trial is added as finished. A failure
    has the value infinity instead of Optuna's state FAIL, which samplers ignore.
    """

    sampler: ClassVar[type[Any]]
    uses_order: ClassVar[bool] = False

    def __init__(
        self,
        space: Space,
        *,
        seed: int,
        priors: Sequence[Setting] = (),
        options: Mapping[str, OptionValue] | None = None,
    ) -> None:
        super().__init__(space, seed=seed, priors=priors, options=options)
        self._levels: Sequence[Sequence[str | int]] = self.codec.texts
        self._distributions = distributions(self.codec, _SharedChoices)
        if self.uses_order:
            self._levels = _positions(self.codec)
            self._distributions = {
                name: _SharedPositions(0, len(levels) - 1)
                for name, levels in zip(self.codec.names, self._levels, strict=True)
            }
        self._study = optuna.create_study(sampler=self._sampler(0))
        self._pending: dict[str, Proposal] = {}
        self._running: dict[str, int] = {}
        if space.is_valid(DEFAULT):
            self._finish_trial(Observation(-1, DEFAULT, 1.0))

    @classmethod
    def check_options(cls, values: Mapping[str, OptionValue]) -> None:
        """Raise UsageError if a package that the sampler needs is not installed."""
        need(cls.name, cls.needs)

    def _sampler(self, seed: int) -> BaseSampler:
        """The sampler, ready for one draw from this seed."""
        arguments = {name: _YES.get(str(value), value) for name, value in self.values.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # A sampler may change in a later Optuna.
            sampler: BaseSampler = self.sampler(seed=seed, **arguments)
        return sampler

    def propose(self) -> Proposal | None:
        self._show_pending()
        attrs: dict[str, object] = {}
        for attempt in range(_TRIES):
            raw_setting, attrs = self._draw(attempt)
            setting = self.codec.settle(raw_setting)
            if setting is not None and self.is_new(setting):
                return self._remember(Proposal(setting, attrs))
        fallback = self.anything_new()
        return fallback and self._remember(replace(fallback, attrs=attrs))

    def admit(self, prior: Setting) -> Proposal:
        self._show_pending()
        return self._remember(Proposal(prior))

    def learn(self, observation: Observation) -> None:
        key = self.space.canonical(observation.setting).key
        self._pending.pop(key, None)
        if key in self._running:
            self._study.tell(self._running.pop(key), state=TrialState.FAIL)
        self._finish_trial(observation)

    def learn_running(self, observation: Observation) -> None:
        canonical = self.space.canonical(observation.setting)
        if canonical.key not in self._running:
            self._pending[canonical.key] = Proposal(canonical, dict(observation.attrs))

    def _remember(self, proposal: Proposal) -> Proposal:
        self._pending[proposal.setting.key] = proposal
        return proposal

    def _show_pending(self) -> None:
        """Add running settings as running trials; with one worker there are none."""
        for key, proposal in self._pending.items():
            trial = self._trial(proposal.setting, TrialState.RUNNING, None, proposal.attrs, {})
            if trial is not None:
                self._running[key] = len(self._study.get_trials(deepcopy=False))
                self._study.add_trial(trial)
        self._pending.clear()

    def _draw(self, attempt: int) -> tuple[Setting, dict[str, object]]:
        """The setting drawn by the sampler, and the data that it stores with it."""
        seed = int(self.rng(self.ordinal, attempt).integers(2**32))
        study = self._study
        study.sampler = sampler = self._sampler(seed)
        scratch = study.ask()
        params = dict(scratch.relative_params)
        frozen_trial = study.get_trials(deepcopy=False)[scratch.number]
        for name, distribution in self._distributions.items():
            if name not in params:
                params[name] = sampler.sample_independent(study, frozen_trial, name, distribution)
        study.tell(scratch, state=TrialState.FAIL)
        system_attrs = dict(frozen_trial.system_attrs)
        return self._decode(params), {_SYSTEM: system_attrs} if system_attrs else {}

    def _decode(self, params: Mapping[str, Any]) -> Setting:
        parameters = zip(self.codec.names, self._levels, strict=True)
        return self.codec.decode([levels.index(params[name]) for name, levels in parameters])

    def _finish_trial(self, observation: Observation) -> None:
        notes: dict[str, object] = {NUMBER: observation.number}
        note_names = (INACTIVE, UNUSED, DEFAULTS, EQUAL, SCATTER)
        notes |= {n: observation.attrs[n] for n in note_names if n in observation.attrs}
        trial = self._trial(
            self.space.canonical(observation.setting),
            TrialState.COMPLETE,
            observation.fitness,
            observation.attrs,
            notes,
        )
        if trial is not None:
            self._study.add_trial(trial)

    def _trial(
        self,
        setting: Setting,
        state: TrialState,
        value: float | None,
        attrs: Mapping[str, object],
        notes: dict[str, object],
    ) -> FrozenTrial | None:
        codes = self.codec.encode(setting)
        if codes is None:
            return None  # Off the grid: no sampler could have drawn it or can learn from it.
        parameters = zip(self.codec.names, self._levels, codes, strict=True)
        system = attrs.get(_SYSTEM, {})
        return create_trial(
            state=state,
            value=value,
            params={name: levels[code] for name, levels, code in parameters},
            distributions=self._distributions,
            user_attrs=notes,
            system_attrs=dict(system) if isinstance(system, Mapping) else {},
        )


class TPE(OptunaStrategy):
    """Optuna's tree-structured Parzen estimator, by default over all parameters together."""

    name = "optuna:TPESampler"
    summary = "Optuna's tree-structured Parzen estimator"
    sampler = TPESampler
    options = table(
        Option(
            "n_startup_trials", "int", 10, "trials drawn at random before the model", (1, 10_000)
        ),
        Option("n_ei_candidates", "int", 24, "candidates per proposal", (1, 10_000)),
        Option("multivariate", "choice", "yes", "all parameters in one model", ("yes", "no")),
    )


class _Recomputed(NSGAIISampler):
    """NSGA-II whose parents depend only on the trials.

    Optuna stores a generation's parents in the order of selection and reads them back in another.
    Here they are selected again each time.
    """

    def get_parent_population(self, study: Study, generation: int) -> list[FrozenTrial]:
        return self.select_parent(study, generation) if generation else []


class NSGA2(OptunaStrategy):
    """Optuna's NSGA-II with the ratio as its only objective."""

    name = "optuna:NSGAIISampler"
    summary = "Optuna's NSGA-II with one objective"
    sampler = _Recomputed
    options = table(
        Option("population_size", "int", 50, "individuals per generation", (2, 10_000)),
        Option("crossover_prob", "float", 0.9, "probability that a child has two parents", (0, 1)),
        Option("swapping_prob", "float", 0.5, "probability that they swap a parameter", (0, 1)),
    )


class _ReplayedCmaEs(CmaEsSampler):
    """CMA-ES whose state is computed from the trials before each draw; Optuna's is a pickle."""

    _trials: Sequence[FrozenTrial] = ()

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        # Optuna adds the trial's number to the seed; a rebuilt study has other numbers.
        trial_copy = copy.copy(trial)
        trial_copy.number = 0
        return super().sample_relative(study, trial_copy, search_space)

    def _restore_optimizer(self, completed_trials: list[FrozenTrial]) -> None:
        self._trials = sorted(completed_trials, key=lambda t: int(t.user_attrs[NUMBER]))

    def _init_optimizer(self, trans: Any, direction: Any) -> Any:
        optimizer = super()._init_optimizer(trans, direction)
        size = optimizer.population_size
        while True:
            trials = self._get_solution_trials(list(self._trials), optimizer.generation)[:size]
            if len(trials) < size:
                return optimizer
            optimizer.tell([(trans.transform(t.params), _finite_value(t.value)) for t in trials])


def _finite_value(value: float | None) -> float:
    return _WORST if value is None or not math.isfinite(value) else min(value, _WORST)


class CMAES(OptunaStrategy):
    """Optuna's CMA-ES on the positions of the levels; raises UsageError without its package."""

    name = "optuna:CmaEsSampler"
    summary = "Optuna's CMA-ES on the order of the levels; needs the package cmaes"
    needs = ("cmaes",)
    sampler = _ReplayedCmaEs
    uses_order = True
    options = table(Option("popsize", "int", 8, "settings per generation", (4, 10_000)))


class GaussianProcess(OptunaStrategy):
    """Optuna's Gaussian process; raises UsageError if PyTorch is not installed."""

    name = "optuna:GPSampler"
    summary = "Optuna's Gaussian process; needs PyTorch"
    needs = ("torch",)
    sampler = GPSampler
    options = table(
        Option(
            "n_startup_trials", "int", 10, "trials drawn at random before the model", (1, 10_000)
        )
    )
