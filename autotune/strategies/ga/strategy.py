"""The genetic search as a strategy for studies, and as an Optuna sampler.

The sampler drives the search itself by ask and tell (:mod:`autotune.strategies.ga.population`,
which describes the steps of a generation).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from optuna import Study
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState

from autotune.errors import UsageError
from autotune.space import Setting, Space
from autotune.strategies.base import SCATTER, Proposal
from autotune.strategies.codec import Codec, Codes
from autotune.strategies.ga.assisted_population import AssistedPopulation
from autotune.strategies.ga.options import OPTIONS, THESIS, GeneticOptions, genetic_options
from autotune.strategies.ga.population import GeneticSearch, Population
from autotune.strategies.options import Option, OptionValue
from autotune.strategies.optuna_samplers import NUMBER, OptunaStrategy, distributions


class GASampler(BaseSampler):
    """Genetic search over a space; its state is a function of the study's finished trials.

    Trials are ordered by their user attribute ``number``, else by Optuna's own number. After a late
    trial the sampler rebuilds the population. ``seeds`` are individuals of the first population.
    """

    def __init__(
        self, space: Space, plan: GeneticOptions, seed: int, seeds: Sequence[Setting] = ()
    ) -> None:
        self._space = space
        self._plan = plan
        self._seed = seed
        self._seeds = tuple(seeds)
        self._rng = np.random.default_rng([seed])
        self._start()
        self._distributions = distributions(self._codec)

    @property
    def is_finished(self) -> bool:
        """True if the search has ended by its own rules, after the trials seen so far."""
        return self._population.is_finished

    def favourite(self) -> Setting | None:
        """The setting that the surrogate estimates as best; None without a surrogate."""
        codes = self._population.favourite()
        return None if codes is None else self._codec.decode(codes)

    def spares(self, count: int) -> list[Setting]:
        """At most ``count`` settings to run if others have begun the one just sampled."""
        return [self._codec.decode(codes) for codes in self._population.spares(count)]

    def set_seed(self, seed: int) -> None:
        """Set the seed for everything drawn outside the population."""
        self._rng = np.random.default_rng([seed])

    def follow(self, study: Study) -> None:
        """Record the trials that have finished since the last call."""
        trials = study.get_trials(deepcopy=False)
        fresh = sorted(
            (
                t
                for t in trials[self._read :]
                if _is_complete(t) and t.number not in self._told_trials
            ),
            key=_order,
        )
        if fresh and _order(fresh[0]) < self._last:
            self._start()
            fresh = sorted((t for t in trials if _is_complete(t)), key=_order)
        for trial in fresh:
            self._take(trial)
        while self._read < len(trials) and trials[self._read].state.is_finished():
            self._read += 1

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """All parameters of the space, since they are drawn together."""
        return self._distributions

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The next individual to run; empty if the population has none."""
        self.follow(study)
        running = {
            self._codes(t)
            for t in study.get_trials(deepcopy=False)[self._read :]
            if t.state == TrialState.RUNNING and t.number != trial.number
        }
        codes = self._population.ask(running, len(self._told_trials) + len(running))
        if codes is None:
            return {}
        texts = zip(self._codec.names, self._codec.texts, codes, strict=True)
        return {name: choices[code] for name, choices, code in texts}

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """A uniform choice, for parameters outside the population's space.

        Raises UsageError for a parameter that is not categorical.
        """
        if not isinstance(param_distribution, CategoricalDistribution):
            raise UsageError(
                f"parameter {param_name}: the genetic algorithm handles categorical parameters "
                "only",
                code="strategy.numeric_parameter",
            )
        choices = param_distribution.choices
        return choices[int(self._rng.integers(len(choices)))]

    def _start(self) -> None:
        # The sampler has its own codec, whose inactive parameters must follow the order of the
        # trials.
        self._codec = Codec(self._space)
        seeds = [codes for s in self._seeds if (codes := self._codec.encode(s)) is not None]
        kind = AssistedPopulation if self._plan.is_assisted else Population
        self._population: GeneticSearch = kind(self._codec, self._plan, self._seed, seeds)
        self._told_trials: set[int] = set()
        self._read = 0  # Trials before this index have ended and were recorded.
        self._last = (-1, -1)

    def _take(self, trial: FrozenTrial) -> None:
        self._told_trials.add(trial.number)
        self._last = _order(trial)
        codes = self._codes(trial)
        ratio = float("inf") if trial.value is None else trial.value
        scatter = trial.user_attrs.get(SCATTER)
        self._population.tell(codes, ratio, tuple(scatter) if scatter else None)
        setting = self._codec.decode(codes)
        if self._codec.leave_out(trial.user_attrs, setting):
            self._population.relabel()

    def _codes(self, trial: FrozenTrial) -> Codes:
        texts_by_name = zip(self._codec.names, self._codec.texts, strict=True)
        return tuple(texts.index(trial.params[name]) for name, texts in texts_by_name)


def _is_complete(trial: FrozenTrial) -> bool:
    return trial.state == TrialState.COMPLETE


def _order(trial: FrozenTrial) -> tuple[int, int]:
    return (int(trial.user_attrs.get(NUMBER, trial.number)), trial.number)


class Genetic(OptunaStrategy):
    """The genetic search of Pellegrini 1.8; by default a surrogate selects the offspring.

    :meth:`ask` returns None if the patience or the number of generations is used up, or if the
    space is exhausted.
    """

    name = "ga"
    summary = "genetic search; --preset thesis is the published one"
    options: ClassVar[dict[str, Option]] = OPTIONS
    presets: ClassVar[dict[str, dict[str, OptionValue]]] = {"thesis": THESIS}

    def __init__(
        self,
        space: Space,
        *,
        seed: int,
        priors: Sequence[Setting] = (),
        options: Mapping[str, OptionValue] | None = None,
    ) -> None:
        super().__init__(space, seed=seed, priors=priors, options=options)
        # The thesis runs every individual once. A surrogate compares a lucky run with all others
        # that share a level with it; a run of another individual is more informative than a
        # repetition.
        self.repeats = self.values["rules"] != "thesis" and self.values["breed"] == 1
        self.estimates = self.values["breed"] != 1

    @classmethod
    def check_options(cls, values: Mapping[str, OptionValue]) -> None:
        """Raise UsageError for a tournament that is too large or small, or init_min > init_max."""
        tournament, offspring = int(values["tournament"]), int(values["offspring"])
        if int(values["population"]) < tournament:
            raise UsageError(
                f"option tournament={tournament}: expected at most the population "
                f"({values['population']})",
                code="strategy.option_range",
            )
        if tournament < offspring + 2:
            raise UsageError(
                f"option tournament={tournament}: expected at least offspring + 2 "
                f"({offspring + 2}), the parents and those replaced",
                code="strategy.option_range",
            )
        if values["rules"] == "thesis" and values["breed"] != 1:
            raise UsageError(
                f"option breed={values['breed']}: expected 1 with rules=thesis, which knows no "
                "surrogate",
                code="strategy.option_range",
            )
        if values["init_max"] and float(values["init_min"]) > float(values["init_max"]):
            raise UsageError(
                f"option init_min={values['init_min']}: expected at most init_max "
                f"({values['init_max']})",
                code="strategy.option_range",
            )

    def _sampler(self, seed: int) -> BaseSampler:
        if not hasattr(self, "_ga"):
            self._ga = GASampler(self.space, genetic_options(self.values), self.seed, self.priors)
        self._ga.set_seed(seed)
        return self._ga

    def favourite(self) -> Setting | None:
        """The measured setting with the surrogate's best estimate.

        None without a surrogate, or if no setting is estimated to be faster than the default.
        """
        self._ga.follow(self._study)
        return self._ga.favourite()

    def propose(self) -> Proposal | None:
        self._ga.follow(self._study)
        proposal = None if self._ga.is_finished else super().propose()
        if proposal is None or not self.spares or proposal.spares:
            return proposal
        others = dict.fromkeys(self._ga.spares(self.spares))
        spares = tuple(Proposal(s) for s in others if s != proposal.setting and self.is_new(s))
        return replace(proposal, spares=spares)
