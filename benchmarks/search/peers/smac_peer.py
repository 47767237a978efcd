"""The peer SMAC3: the facade for hyperparameters, with random forest and initial design."""

# mypy: disable-error-code="import-not-found, import-untyped, misc"

from __future__ import annotations

import logging
import tempfile

from ConfigSpace import CategoricalHyperparameter, ConfigurationSpace
from smac import HyperparameterOptimizationFacade, Scenario
from smac.main.exceptions import ConfigurationSpaceExhaustedException
from smac.runhistory.dataclasses import TrialValue

from autotune.strategies._codec import Codes
from benchmarks.search.peers.base import Peer

_TRIALS = 150


class SMAC3(Peer):
    """HyperparameterOptimizationFacade, driven by ask and tell."""

    name = "smac3"

    def prepare(self) -> None:
        space = ConfigurationSpace(seed=self.seed % 2**32)
        self._names = [f"p{i:03d}" for i in range(len(self.sizes))]
        for name, size in zip(self._names, self.sizes, strict=True):
            space.add(CategoricalHyperparameter(name, list(range(size))))
        self._place = tempfile.TemporaryDirectory()
        scenario = Scenario(
            space,
            deterministic=True,
            n_trials=_TRIALS,
            seed=self.seed % 2**31,
            output_directory=self._place.name,
        )
        self._smac = HyperparameterOptimizationFacade(
            scenario, lambda config, seed=0: 0.0, overwrite=True, logging_level=logging.ERROR
        )

    def draw(self) -> Codes | None:
        try:
            self._info = self._smac.ask()
        except ConfigurationSpaceExhaustedException:
            return None
        return tuple(int(self._info.config[name]) for name in self._names)

    def report(self, codes: Codes, loss: float) -> None:
        self._smac.tell(self._info, TrialValue(cost=loss))
