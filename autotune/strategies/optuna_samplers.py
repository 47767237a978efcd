"""Optuna's samplers as strategies: ask and tell on a study in memory.

The study is rebuilt from observations. The last part has the samplers that come with Optuna.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence

import optuna
from optuna import Study
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler, GPSampler, NSGAIISampler, TPESampler
from optuna.trial import FrozenTrial, TrialState, create_trial

from autotune.space import DEFAULT, Setting, Space
from autotune.strategies._codec import Codec
from autotune.strategies.base import (
    DEFAULTS,
    INACTIVE,
    SCATTER,
    UNUSED,
    Observation,
    Proposal,
    Strategy,
)
from autotune.strategies.options import Option, OptionValue, need, table

NUMBER = "number"
"""User attribute of an Optuna trial: the number of its observation, which gives the order."""
_SYSTEM = "optuna"
"""Attribute of a proposal with what the sampler stored with the trial."""
_TRIES = 5

optuna.logging.set_verbosity(optuna.logging.ERROR)


class _Shared(CategoricalDistribution):
    """A categorical distribution that is not copied.

    Optuna makes a deep copy of a trial, with its distributions, whenever one is added. These
    distributions never change, and copying 25 of them takes longer than everything else.
    """

    def __deepcopy__(self, memo: dict[int, object]) -> _Shared:
        return self


def distributions(
    codec: Codec, kind: type[CategoricalDistribution] = CategoricalDistribution
) -> dict[str, BaseDistribution]:
    """One categorical distribution per parameter, over the texts of its choices."""
    named = zip(codec.names, codec.texts, strict=True)
    return {name: kind(list(texts)) for name, texts in named}


class OptunaStrategy(Strategy):
    """A strategy that wraps an Optuna sampler.

    The sampler gets a new seed before each draw, from the seed and the position in the stream. So a
    rebuilt study continues as the old one would have. The sampler draws on a scratch trial, which
    is then dropped; only the repaired setting is used. An ended trial is added as a finished one. A
    failure has the value infinity and not Optuna's state FAIL, which samplers ignore.
    """

    def __init__(
        self,
        space: Space,
        *,
        seed: int,
        priors: Sequence[Setting] = (),
        options: Mapping[str, OptionValue] | None = None,
    ) -> None:
        super().__init__(space, seed=seed, priors=priors, options=options)
        self._distributions = distributions(self.codec, _Shared)
        self._study = optuna.create_study(sampler=self._sampler(0))
        self._pending: dict[str, Proposal] = {}
        self._running: dict[str, int] = {}
        if space.is_valid(DEFAULT):
            self._finish_trial(Observation(-1, DEFAULT, 1.0))

    @abstractmethod
    def _sampler(self, seed: int) -> BaseSampler:
        """The sampler, ready for one draw from this seed."""

    def propose(self) -> Proposal | None:
        self._show_pending()
        attrs: dict[str, object] = {}
        for attempt in range(_TRIES):
            drawn, attrs = self._draw(attempt)
            setting = self.codec.settle(drawn)
            if setting is not None and self.is_new(setting):
                return self._remember(Proposal(setting, attrs))
        fallback = self.anything_new()
        return fallback and self._remember(Proposal(fallback.setting, attrs))

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
        """The setting that the sampler draws, and what the sampler stores with it."""
        seed = int(self.rng(self.ordinal, attempt).integers(2**32))
        study = self._study
        study.sampler = sampler = self._sampler(seed)
        scratch = study.ask()
        texts = dict(scratch.relative_params)
        frozen = study.get_trials(deepcopy=False)[scratch.number]
        for name, distribution in self._distributions.items():
            if name not in texts:
                texts[name] = sampler.sample_independent(study, frozen, name, distribution)
        study.tell(scratch, state=TrialState.FAIL)
        kept = dict(frozen.system_attrs)
        return self._decode(texts), {_SYSTEM: kept} if kept else {}

    def _decode(self, texts: Mapping[str, str]) -> Setting:
        codes = [
            choices.index(texts[name])
            for name, choices in zip(self.codec.names, self.codec.texts, strict=True)
        ]
        return self.codec.decode(codes)

    def _finish_trial(self, observation: Observation) -> None:
        notes: dict[str, object] = {NUMBER: observation.number}
        told = (INACTIVE, UNUSED, DEFAULTS, SCATTER)
        notes |= {n: observation.attrs[n] for n in told if n in observation.attrs}
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
        texts = zip(self.codec.names, self.codec.texts, codes, strict=True)
        system = attrs.get(_SYSTEM, {})
        return create_trial(
            state=state,
            value=value,
            params={name: choices[code] for name, choices, code in texts},
            distributions=self._distributions,
            user_attrs=notes,
            system_attrs=dict(system) if isinstance(system, Mapping) else {},
        )


class TPE(OptunaStrategy):
    """Optuna's tree-structured Parzen estimator over all parameters together."""

    name = "tpe"
    summary = "Optuna's TPE, multivariate"
    options = table(
        Option(
            "startup", "int", 10, "trials drawn at random before the model is used", (1, 10_000)
        ),
        Option("candidates", "int", 24, "candidates per proposal", (1, 10_000)),
    )

    def _sampler(self, seed: int) -> BaseSampler:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            return TPESampler(
                seed=seed,
                multivariate=True,
                n_startup_trials=int(self.values["startup"]),
                n_ei_candidates=int(self.values["candidates"]),
            )


class _Recomputed(NSGAIISampler):
    """NSGA-II whose parents depend on the trials only.

    Optuna stores the parents of a generation in the order of their first choice and reads them back
    in another. Here they are chosen anew each time.
    """

    def get_parent_population(self, study: Study, generation: int) -> list[FrozenTrial]:
        return self.select_parent(study, generation) if generation else []


class NSGA2(OptunaStrategy):
    """Optuna's NSGA-II with the ratio as its only objective."""

    name = "nsga2"
    summary = "Optuna's NSGA-II with one objective"
    options = table(Option("population", "int", 20, "individuals per generation", (2, 10_000)))

    def _sampler(self, seed: int) -> BaseSampler:
        return _Recomputed(population_size=int(self.values["population"]), seed=seed)


class GaussianProcess(OptunaStrategy):
    """Optuna's Gaussian process; raises UsageError if PyTorch is not installed."""

    name = "gp"
    summary = "Optuna's Gaussian process; needs PyTorch"
    needs = ("torch",)
    options = table(
        Option("startup", "int", 10, "trials drawn at random before the model is used", (1, 10_000))
    )

    @classmethod
    def check_options(cls, values: Mapping[str, OptionValue]) -> None:
        """Raise UsageError if the package is not installed."""
        need(cls.name, cls.needs)

    def _sampler(self, seed: int) -> BaseSampler:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            return GPSampler(seed=seed, n_startup_trials=int(self.values["startup"]))
