"""The peer OpenTuner: its bandit over techniques, driven from outside."""

# mypy: disable-error-code="import-not-found, import-untyped, misc"

from __future__ import annotations

import argparse
import random

import opentuner
from opentuner.api import TuningRunManager
from opentuner.measurement.interface import DefaultMeasurementInterface
from opentuner.resultsdb.models import Result
from opentuner.search.manipulator import ConfigurationManipulator, EnumParameter

from autotune.strategies._codec import Codes
from benchmarks.search.peers.base import Peer


class OpenTuner(Peer):
    """TuningRunManager with the default technique and a database in memory."""

    name = "opentuner"

    def prepare(self) -> None:
        random.seed(self.seed)  # OpenTuner draws from the global generator.
        manipulator = ConfigurationManipulator()
        for number, size in enumerate(self.sizes):
            manipulator.add_parameter(EnumParameter(f"p{number:03d}", list(range(size))))
        parser = argparse.ArgumentParser(parents=opentuner.argparsers())
        given = parser.parse_args(["--no-dups", "--database", "sqlite://"])
        interface = DefaultMeasurementInterface(
            args=given, manipulator=manipulator, project_name="p", program_name="p"
        )
        self._manager = TuningRunManager(interface, given)

    def draw(self) -> Codes | None:
        self._wanted = self._manager.get_next_desired_result()
        if self._wanted is None:
            return None
        data = self._wanted.configuration.data
        return tuple(int(data[name]) for name in sorted(data))

    def report(self, codes: Codes, loss: float) -> None:
        self._manager.report_result(self._wanted, Result(time=loss))
