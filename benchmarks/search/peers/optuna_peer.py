"""The peer Optuna: its TPE and NSGA-II with their defaults."""

from __future__ import annotations

import warnings
from abc import abstractmethod

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler, NSGAIISampler, TPESampler

from autotune.strategies._codec import Codes
from benchmarks.search.peers.base import Peer


class _Optuna(Peer):
    def prepare(self) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._study = optuna.create_study(sampler=self.sampler())
        self._distributions: dict[str, BaseDistribution] = {
            f"p{i:03d}": CategoricalDistribution(list(range(n))) for i, n in enumerate(self.sizes)
        }

    @abstractmethod
    def sampler(self) -> BaseSampler:
        """The sampler of Optuna."""

    def draw(self) -> Codes:
        self._trial = self._study.ask(self._distributions)
        return tuple(self._trial.params[name] for name in self._distributions)

    def report(self, codes: Codes, loss: float) -> None:
        self._study.tell(self._trial, loss)


class OptunaTPE(_Optuna):
    """TPESampler()."""

    name = "optuna-tpe"

    def sampler(self) -> BaseSampler:
        return TPESampler(seed=self.seed)


class MatchedOptunaTPE(_Optuna):
    """TPESampler for a small budget: five start-up trials, the default among them, multivariate."""

    name = "optuna-tpe:matched"

    def prepare(self) -> None:
        super().prepare()
        self._study.enqueue_trial(dict.fromkeys(self._distributions, 0))
        self.draw()
        self.report((0,) * len(self.sizes), 1.0)

    def sampler(self) -> BaseSampler:
        warnings.simplefilter("ignore", ExperimentalWarning)  # On "multivariate".
        return TPESampler(seed=self.seed, n_startup_trials=5, multivariate=True, group=False)


class OptunaNSGA2(_Optuna):
    """NSGAIISampler(), which has populations of 50."""

    name = "optuna-nsga2"

    def sampler(self) -> BaseSampler:
        return NSGAIISampler(seed=self.seed)
