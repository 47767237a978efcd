"""Samplers that come with Optuna."""

from __future__ import annotations

import warnings

from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler, NSGAIISampler, TPESampler

from autotune.strategies._optuna import OptunaStrategy
from autotune.strategies.options import Option, table


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


class NSGAII(OptunaStrategy):
    """Optuna's NSGA-II with one objective; a generation is stored with each trial."""

    name = "nsgaii"
    summary = "Optuna's NSGA-II with the one objective"
    options = table(
        Option("population", "int", 20, "individuals of a generation", (2, 10_000)),
        Option("crossover", "float", 0.9, "probability of a crossover", (0, 1)),
        Option("swap", "float", 0.5, "probability of each parameter to be swapped", (0, 1)),
    )

    def _sampler(self, seed: int) -> BaseSampler:
        return NSGAIISampler(
            seed=seed,
            population_size=int(self.values["population"]),
            crossover_prob=float(self.values["crossover"]),
            swapping_prob=float(self.values["swap"]),
        )
