"""Samplers that come with Optuna.

Not NSGA-II: rebuilt from stored trials it goes on differently, which the contract forbids.
"""

from __future__ import annotations

import warnings

from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler, TPESampler

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
