"""The peer Optuna: its TPE and NSGA-II."""

from __future__ import annotations

import warnings
from abc import abstractmethod

import optuna
from optuna.distributions import CategoricalDistribution, IntDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler, NSGAIISampler, TPESampler

from autotune.space import Space
from autotune.strategies.codec import Codes
from benchmarks.search.peers.base import STARTUP, Peer


class _Optuna(Peer):
    def prepare(self) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.simplefilter("ignore", ExperimentalWarning)  # On "multivariate".
        self._study = optuna.create_study(sampler=self.sampler())
        self._distributions = {
            f"p{i:03d}": IntDistribution(0, n - 1) if ordered else CategoricalDistribution(range(n))
            for i, (n, ordered) in enumerate(zip(self.sizes, self.ordered, strict=True))
        }
        if self.trials is not None and self.default is not None:
            self._study.enqueue_trial(dict(zip(self._distributions, self.default, strict=True)))

    @abstractmethod
    def sampler(self) -> BaseSampler:
        """The sampler of Optuna."""

    def draw(self) -> Codes:
        self._trial = self._study.ask(self._distributions)
        return tuple(self._trial.params[name] for name in self._distributions)

    def report(self, ranks: Codes, loss: float) -> None:
        self._study.tell(self._trial, loss)


class OptunaTPE(_Optuna):
    """TPESampler(); matched: five start-up trials, multivariate."""

    name = "optuna-tpe"

    def sampler(self) -> BaseSampler:
        if self.trials is None:
            return TPESampler(seed=self.seed)
        return TPESampler(seed=self.seed, n_startup_trials=STARTUP, multivariate=True, group=False)


class UnorderedOptunaTPE(OptunaTPE):
    """The matched one that takes sizes for words: what others often compare with."""

    name = "optuna-tpe:unordered"

    def __init__(self, space: Space, *, seed: int, trials: int | None = None) -> None:
        super().__init__(space, seed=seed, trials=trials or STARTUP)

    def prepare(self) -> None:
        self.ordered = [False] * len(self.sizes)
        self._codes = [tuple(range(size)) for size in self.sizes]
        super().prepare()


class OptunaNSGA2(_Optuna):
    """NSGAIISampler(), which has populations of 50; matched: of five."""

    name = "optuna-nsga2"

    def sampler(self) -> BaseSampler:
        if self.trials is None:
            return NSGAIISampler(seed=self.seed)
        return NSGAIISampler(seed=self.seed, population_size=STARTUP)
