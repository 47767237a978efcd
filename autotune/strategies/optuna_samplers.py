"""Samplers that come with Optuna."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from optuna import Study
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler, GPSampler, NSGAIISampler, TPESampler
from optuna.trial import FrozenTrial

from autotune.strategies._optional import need
from autotune.strategies._optuna import OptunaStrategy
from autotune.strategies.options import Option, OptionValue, table


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
    """Optuna keeps the parents of a generation in the order in which they were first chosen, and
    in another one when it reads them back; chosen anew each time, they depend on the trials only.
    """

    def get_parent_population(self, study: Study, generation: int) -> list[FrozenTrial]:
        return self.select_parent(study, generation) if generation else []


class NSGA2(OptunaStrategy):
    """Optuna's NSGA-II with the ratio as its one objective."""

    name = "nsga2"
    summary = "Optuna's NSGA-II with one objective"
    options = table(Option("population", "int", 20, "individuals per generation", (2, 10_000)))

    def _sampler(self, seed: int) -> BaseSampler:
        return _Recomputed(population_size=int(self.values["population"]), seed=seed)


class GaussianProcess(OptunaStrategy):
    """Optuna's Gaussian process.  Raises UsageError where PyTorch is not installed."""

    name = "gp"
    summary = "Optuna's Gaussian process; needs PyTorch"
    needs = ("torch",)
    options = table(
        Option("startup", "int", 10, "trials drawn at random before the model is used", (1, 10_000))
    )

    @classmethod
    def check_options(cls, values: Mapping[str, OptionValue]) -> None:
        """Nothing goes without the package."""
        need(cls.name, cls.needs)

    def _sampler(self, seed: int) -> BaseSampler:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            return GPSampler(seed=seed, n_startup_trials=int(self.values["startup"]))
