"""The peer OpenTuner: its bandit over techniques, driven from outside."""

# mypy: disable-error-code="import-not-found, import-untyped, misc"

from __future__ import annotations

import argparse
import random

import opentuner
from opentuner.api import TuningRunManager
from opentuner.measurement.interface import DefaultMeasurementInterface
from opentuner.resultsdb.models import Result
from opentuner.search.manipulator import (
    ConfigurationManipulator,
    EnumParameter,
    IntegerParameter,
)

from autotune.strategies.codec import Codes
from benchmarks.search.peers.base import Peer


class _Interface(DefaultMeasurementInterface):
    """An interface with configurations to try first."""

    def __init__(self, first: list[dict[str, int]], **given: object) -> None:
        self._first = first
        super().__init__(**given)

    def seed_configurations(self) -> list[dict[str, int]]:
        return self._first


class OpenTuner(Peer):
    """TuningRunManager with the default technique and a database in memory.

    Matched: integers for ordered levels, and the default as the first configuration.
    """

    name = "opentuner"

    def prepare(self) -> None:
        random.seed(self.seed)  # OpenTuner draws from the global generator.
        manipulator = ConfigurationManipulator()
        names = [f"p{number:03d}" for number in range(len(self.sizes))]
        for name, size, ordered in zip(names, self.sizes, self.ordered, strict=True):
            manipulator.add_parameter(
                IntegerParameter(name, 0, size - 1)
                if ordered
                else EnumParameter(name, list(range(size)))
            )
        first = []
        if self.trials is not None and self.default is not None:
            first = [dict(zip(names, self.default, strict=True))]
        parser = argparse.ArgumentParser(parents=opentuner.argparsers())
        given = parser.parse_args(["--no-dups", "--database", "sqlite://"])
        interface = _Interface(
            first, args=given, manipulator=manipulator, project_name="p", program_name="p"
        )
        self._manager = TuningRunManager(interface, given)

    def draw(self) -> Codes | None:
        self._wanted = self._manager.get_next_desired_result()
        if self._wanted is None:
            return None
        data = self._wanted.configuration.data
        return tuple(int(data[name]) for name in sorted(data))

    def report(self, ranks: Codes, loss: float) -> None:
        self._manager.report_result(self._wanted, Result(time=loss))
