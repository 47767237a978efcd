"""The peer SMAC3: the facade for hyperparameters, with random forest and initial design."""

# mypy: disable-error-code="import-not-found, import-untyped, misc"

from __future__ import annotations

import logging
import tempfile

from ConfigSpace import (
    CategoricalHyperparameter,
    Configuration,
    ConfigurationSpace,
    OrdinalHyperparameter,
)
from smac import HyperparameterOptimizationFacade, Scenario
from smac.main.exceptions import ConfigurationSpaceExhaustedException
from smac.runhistory.dataclasses import TrialValue

from autotune.space import DEFAULT, Setting
from autotune.strategies.codec import Codes
from benchmarks.search.peers.base import STARTUP, Peer

_TRIALS = 150
"""Number of trials that a peer as it comes is told."""


class SMAC3(Peer):
    """HyperparameterOptimizationFacade, driven by ask and tell.

    Matched: its own number of trials, an initial design of four settings and the default, ordinal
    levels; the incumbent is named.
    """

    name = "smac3"
    budgeted = True

    def prepare(self) -> None:
        space = ConfigurationSpace(seed=self.seed % 2**32)
        self._names = [f"p{i:03d}" for i in range(len(self.sizes))]
        for name, size, ordered in zip(self._names, self.sizes, self.ordered, strict=True):
            kind = OrdinalHyperparameter if ordered else CategoricalHyperparameter
            space.add(kind(name, list(range(size))))
        self._place = tempfile.TemporaryDirectory()
        scenario = Scenario(
            space,
            deterministic=True,
            n_trials=self.trials or _TRIALS,
            seed=self.seed % 2**31,
            output_directory=self._place.name,
        )
        design = None
        if self.trials is not None:
            first = [] if self.default is None else [self._configuration(space, self.default)]
            design = HyperparameterOptimizationFacade.get_initial_design(
                scenario, n_configs=STARTUP - len(first), max_ratio=1.0, additional_configs=first
            )
        self._smac = HyperparameterOptimizationFacade(
            scenario,
            lambda config, seed=0: 0.0,
            initial_design=design,
            overwrite=True,
            logging_level=logging.ERROR,
        )

    def draw(self) -> Codes | None:
        try:
            self._info = self._smac.ask()
        except ConfigurationSpaceExhaustedException:
            return None
        return self._ranks(self._info.config)

    def recommendation(self) -> Setting | None:
        """The incumbent of the intensifier."""
        found = self._smac.intensifier.get_incumbent()
        setting = None if found is None else self.setting(self._ranks(found))
        return None if setting == DEFAULT else setting

    def _configuration(self, space: ConfigurationSpace, ranks: Codes) -> Configuration:
        return Configuration(space, dict(zip(self._names, ranks, strict=True)))

    def _ranks(self, configuration: Configuration) -> Codes:
        return tuple(int(configuration[name]) for name in self._names)

    def report(self, ranks: Codes, loss: float) -> None:
        self._smac.tell(self._info, TrialValue(cost=loss))
