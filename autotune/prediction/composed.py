"""The composed model: composition on a calibrated machine, and how far programs differ from it.

What a machine does is calibrated; what a program does is traced.  What is left is learned from
programs: whether they answer as their composition says (``slope``), how far one program differs
from another in this (``between``), and what happens under settings that should not touch a program
(``floor``).  These are random effects of programs, not of cells: two inputs of a program are not
two witnesses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from autotune.calibration.response import Calibration
from autotune.prediction.composition import Composition, proposals
from autotune.prediction.examples import Example
from autotune.prediction.workload import Work
from autotune.space import DEFAULT, Setting
from runner.trace import Features

HARM = 0.05
"""Largest chance of being slower with which a setting is named."""
LEAST = 0.02
"""Smallest expected gain with which a setting is named."""
ENOUGH = 6
"""Smallest number of runs behind a response that may be named: fewer do not see a machine that
changes its state."""
_COVERED = 0.01
"""A setting that may act on a larger share of the run time without any measurement is not
touched."""
_TELLS = 0.02
"""Composed log ratios above this tell a program's slope, those below its floor."""
_PRIOR_PROGRAMS = 2.0
_PRIOR_SLOPE, _PRIOR_BETWEEN, _PRIOR_FLOOR = 0.9, 0.4, 0.01
"""What counts before any program was seen, as heavy as so many programs."""


@dataclass(frozen=True)
class Judged:
    """A setting for one program: log(T / T_default) expected, its standard deviation, and the
    chance of being slower than the default, 0 to 1.  ``runs``: how often the calibration measured
    what makes the difference."""

    setting: Setting
    log: float
    sd: float
    harm: float
    runs: int

    @property
    def gain(self) -> float:
        """The expected gain as a fraction."""
        return math.expm1(-self.log)

    def interval(self, dof: float) -> tuple[float, float]:
        """95 % interval of the gain for this one program (Student's t)."""
        from scipy import stats

        reach = float(stats.t.ppf(0.975, dof)) * self.sd
        return math.expm1(-(self.log + reach)), math.expm1(-(self.log - reach))


DEFAULT_JUDGED = Judged(DEFAULT, 0.0, 0.0, 0.0, 0)


@dataclass(frozen=True)
class ComposedModel:
    """``slope``, ``between`` and ``floor`` as in the module's text; ``programs``: how many programs
    they were learned from."""

    slope: float = _PRIOR_SLOPE
    between: float = _PRIOR_BETWEEN
    floor: float = _PRIOR_FLOOR
    programs: int = 0

    @property
    def dof(self) -> float:
        """Degrees of freedom of an interval for a further program."""
        return self.programs + _PRIOR_PROGRAMS

    @classmethod
    def fit(cls, examples: Sequence[tuple[Example, Calibration]]) -> ComposedModel:
        """Learn the random effects from the programs of the examples, each with the calibration of
        its machine; with none, the priors stand."""
        slopes: dict[str, list[tuple[float, float]]] = {}
        rest: dict[str, list[float]] = {}
        for example, calibration in examples:
            found = Composition.of(example.features, calibration)
            if found is None:
                continue
            for composed, actual in _pairs(example, found):
                if abs(composed) > _TELLS:
                    slopes.setdefault(example.app, []).append((composed, actual))
                else:
                    rest.setdefault(example.app, []).append(actual - composed)
        own = [_slope(pairs) for pairs in slopes.values()]
        slope = _mean(own, _PRIOR_SLOPE)
        between = _root_mean_square([one - slope for one in own], _PRIOR_BETWEEN)
        floors = [float(np.median(np.abs(values))) / 0.6745 for values in rest.values()]
        return cls(
            slope,
            between,
            _root_mean_square(floors, _PRIOR_FLOOR),
            len({*slopes, *rest}),
        )

    def judge(self, composition: Composition, settings: Iterable[Setting]) -> list[Judged]:
        """The settings that measurements cover, each with its chance of harm."""
        from scipy import stats

        found = []
        for setting in settings:
            composed = composition.log(setting)
            if composed.uncovered > _COVERED or not composed.touched:
                continue
            log = self.slope * composed.log
            sd = math.sqrt(composed.sd**2 + (self.between * composed.log) ** 2 + self.floor**2)
            found.append(
                Judged(setting, log, sd, float(stats.t.sf(-log / sd, self.dof)), composed.runs)
            )
        return found

    def choose(self, composition: Composition, settings: Sequence[Setting]) -> Judged:
        """The setting with the largest gain that is certain enough; the default if none is."""
        good = [
            one
            for one in self.judge(composition, settings)
            if one.harm <= HARM and one.gain >= LEAST and one.runs >= ENOUGH
        ]
        return min(
            good, key=lambda one: (one.log + one.sd, one.setting.key), default=DEFAULT_JUDGED
        )

    def answer(
        self, features: Features, calibration: Calibration, allowed: Callable[[Setting], bool]
    ) -> ComposedAnswer | None:
        """The setting for a program, among those composed of what was measured, as far as they are
        ``allowed``; None if the calibration has no table for the program's nodes."""
        found = Composition.of(features, calibration)
        if found is None:
            return None
        settings = proposals(found, calibration.settings, allowed)
        judged = self.judge(found, settings)
        best = min(judged, key=lambda one: (one.log, one.setting.key), default=DEFAULT_JUDGED)
        parts = sorted(zip(found.shares, found.work, strict=True), key=lambda one: -one[0])
        return ComposedAnswer(
            self.choose(found, settings),
            best if best.log < 0 else DEFAULT_JUDGED,
            found.most(),
            found.responds,
            tuple((work, share) for share, work in parts),
            calibration,
            self,
        )


@dataclass(frozen=True)
class ComposedAnswer:
    """The answer for one program.  ``best`` has the largest expected gain, ``named`` is certain
    enough as well; both may be the default.

    ``most``: the largest gain that any measured setting could give, as a fraction.  ``responds``:
    the share of the run time that responds to settings at all, ``parts`` its work with the share of
    each, largest first.
    """

    named: Judged
    best: Judged
    most: float
    responds: float
    parts: tuple[tuple[Work, float], ...]
    calibration: Calibration
    model: ComposedModel

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the gain of ``named`` for this one program."""
        return self.named.interval(self.model.dof)


def _pairs(example: Example, composition: Composition) -> list[tuple[float, float]]:
    """Composed and measured log ratio of the example's settings that measurements cover."""
    found = []
    for setting, actual in zip(example.settings[1:], example.logs[1:], strict=True):
        composed = composition.log(setting)
        if composed.uncovered <= _COVERED:
            found.append((composed.log, float(actual)))
    return found


def _slope(pairs: Sequence[tuple[float, float]]) -> float:
    composed, actual = np.array(pairs).T
    return float(composed @ actual / (composed @ composed))


def _mean(values: Sequence[float], prior: float) -> float:
    return (sum(values) + _PRIOR_PROGRAMS * prior) / (len(values) + _PRIOR_PROGRAMS)


def _root_mean_square(values: Sequence[float], prior: float) -> float:
    return math.sqrt(_mean([value**2 for value in values], prior**2))
