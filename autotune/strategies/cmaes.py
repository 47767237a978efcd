"""CMA-ES on the positions of the levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from autotune.space import Setting, Space
from autotune.strategies._codec import Codes
from autotune.strategies.base import Observation, Proposal, Strategy
from autotune.strategies.options import Option, OptionValue, need, table

_POINT = "point"
"""Attribute of a proposal: the drawn point, in units of all levels of each parameter."""
_TRIES = 20
_WORST = 10.0


class CMAES(Strategy):
    """The covariance matrix adaptation evolution strategy (package ``cmaes``, as in Optuna).

    A parameter is a number from 0 to 1, and the level at this position is run; words are in the
    order of the space. The state is rebuilt from the stored points before every draw, because
    Optuna would store it as a pickle. Raises UsageError if the package is not installed.
    """

    name = "cmaes"
    summary = "CMA-ES on the order of the levels; needs the package cmaes"
    needs = ("cmaes",)
    options = table(
        Option("population", "int", 8, "settings per generation", (4, 10_000)),
        Option("sigma", "float", 0.25, "first standard deviation, 1 is all levels", (0.01, 1)),
    )

    def __init__(
        self,
        space: Space,
        *,
        seed: int,
        priors: Sequence[Setting] = (),
        options: Mapping[str, OptionValue] | None = None,
    ) -> None:
        super().__init__(space, seed=seed, priors=priors, options=options)
        # Unset is below all levels if its place among them is not known.
        self._axes = [
            (*(code for code in range(int(size)) if code not in axis), *axis)
            for axis, size in zip(self.codec.axis, self.codec.sizes, strict=True)
        ]
        self._told: dict[int, tuple[list[float], float]] = {}

    @classmethod
    def check_options(cls, values: Mapping[str, OptionValue]) -> None:
        """Raise UsageError if the package is not installed."""
        need(cls.name, cls.needs)

    def learn(self, observation: Observation) -> None:
        point = observation.attrs.get(_POINT)
        if isinstance(point, list):
            fitness = min(observation.fitness, _WORST)
            self._told[observation.number] = ([float(x) for x in point], fitness)

    def propose(self) -> Proposal | None:
        drawer = self._drawer()
        for _ in range(_TRIES):
            point = np.asarray(drawer.ask())
            setting = self.codec.settle(self.codec.decode(self._codes(point)))
            if setting is not None and self.is_new(setting):
                return Proposal(setting, {_POINT: point.tolist()})
        return self.anything_new()

    def _drawer(self) -> Any:
        """The optimiser after all complete generations so far, seeded for this draw."""
        count, size = len(self._axes), int(self.values["population"])
        centre = [(axis.index(0) + 0.5) / len(axis) for axis in self._axes]
        # One number alone has no covariance to adapt; the package needs two.
        extra = 2 - count if count < 2 else 0
        optimiser = import_module("cmaes").CMA(
            mean=np.array(centre + [0.5] * extra),
            sigma=float(self.values["sigma"]),
            bounds=np.tile([0.0, 1.0], (count + extra, 1)),
            population_size=size,
            seed=int(self.rng(self.ordinal).integers(2**32)),
        )
        told = [self._told[number] for number in sorted(self._told)]
        for first in range(0, len(told) - size + 1, size):
            optimiser.tell([(np.array(x), value) for x, value in told[first : first + size]])
        return optimiser

    def _codes(self, point: Any) -> Codes:
        places = zip(self._axes, point, strict=False)
        return tuple(axis[min(int(x * len(axis)), len(axis) - 1)] for axis, x in places)
