"""The composed model: composition on a calibrated machine with the effects of programs, and the
settings named by it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from autotune.calibration.response import Calibration
from autotune.prediction.composition import MATTERS, Composition, proposals
from autotune.prediction.mapping import IN_TURN, MappingChange
from autotune.prediction.program_effects import (
    MOST_GAP,
    RESIDUAL_PARTS,
    ProgramEffects,
)
from autotune.prediction.workload import Work
from autotune.space import DEFAULT, Setting
from runner.trace import Features

HARM = 0.05
"""A setting is named only up to this chance of being slower."""
APART_H = 1.0
"""Settings are named if calibrations span at least this many hours. A copy through shared memory
can be four times faster than the default for some minutes and three times slower in others."""
LEAST = 0.02
"""Smallest expected gain for naming a setting, or for checking it without naming it."""
ENOUGH = 2
"""Smallest number of runs behind a response that may be named. Any number of runs at only one time
counts as one: they do not see a machine that changes its state."""


@dataclass(frozen=True)
class Judgement:
    """A setting for one program: log(T / T_default) expected, its standard deviation, and the
    chance of being slower than the default, 0 to 1. ``runs``: how often the calibration measured
    the responses that matter. ``above``: the standard deviation towards stronger effects than
    expected, which may be larger."""

    setting: Setting
    log: float
    sd: float
    harm: float
    runs: int
    above: float = 0.0

    @property
    def gain(self) -> float:
        """The expected gain as a fraction."""
        return math.expm1(-self.log)

    def interval(self, dof: float) -> tuple[float, float]:
        """95 % interval of the gain for this one program (Student's t)."""
        from scipy import stats

        reach = float(stats.t.ppf(0.975, dof))
        above = max(self.sd, self.above)
        slow, fast = (above, self.sd) if self.log > 0 else (self.sd, above)
        return math.expm1(-(self.log + reach * slow)), math.expm1(-(self.log - reach * fast))


DEFAULT_JUDGEMENT = Judgement(DEFAULT, 0.0, 0.0, 0.0, 0)


@dataclass(frozen=True)
class ComposedModel:
    """Composition with the effects of programs; without any, their prior is used."""

    effects: ProgramEffects = field(default_factory=ProgramEffects)

    def composition(self, features: Features, calibration: Calibration) -> Composition | None:
        """None if the calibration has no table for the program's nodes."""
        return Composition.of(features, calibration, self.effects.of(features).waiting)

    def judge(
        self, composition: Composition, features: Features, settings: Iterable[Setting]
    ) -> list[Judgement]:
        """The settings covered by measurements, each with its chance of harm."""
        from scipy import stats

        effects = self.effects.of(features)
        rest = max(composition.communicates - composition.responds, 0.0)
        judgements = []
        for setting in settings:
            effect = composition.log(setting)
            mean, spread, programs = effects.residual(setting)
            if effect.uncovered > MOST_GAP or not (effect.touched or programs):
                continue
            log = effects.slope * effect.log + rest * mean
            parts = effect.sd, effects.between * effect.log, effects.floor, rest * spread
            sd = math.sqrt(sum(part**2 for part in parts))
            above = math.hypot(sd, effect.log * effects.above)
            runs = effect.runs or (programs if rest * abs(mean) > MATTERS else 0)
            harm = float(stats.t.sf(-log / sd, effects.dof)) if sd else 0.0
            judgements.append(Judgement(setting, log, sd, harm, runs, above))
        return judgements

    def choose(self, judgements: Sequence[Judgement]) -> Judgement:
        """The sufficiently certain setting with the largest gain; the default if there is none."""
        good = [
            one
            for one in judgements
            if one.harm <= HARM and one.gain >= LEAST and one.runs >= ENOUGH
        ]
        return min(
            good, key=lambda one: (one.log + one.sd, one.setting.key), default=DEFAULT_JUDGEMENT
        )

    def candidates(
        self,
        composition: Composition,
        calibration: Calibration,
        allows: Callable[[Setting], bool],
    ) -> list[Setting]:
        """Settings that may be named: composed of measured ones or with only a residual, if
        ``allows`` is true for them."""
        parts = [part for part in RESIDUAL_PARTS if allows(part)]
        settings = proposals(composition, [*calibration.settings, IN_TURN], allows)
        return list(dict.fromkeys([*settings, *parts]))

    def fastest(
        self,
        features: Features,
        calibration: Calibration,
        allows: Callable[[Setting], bool],
        most: int = 3,
    ) -> list[Setting] | None:
        """The settings with the best expected gains of at least :data:`LEAST`, certain or not; None
        as in :meth:`answer`."""
        composition = self.composition(features, calibration)
        if composition is None:
            return None
        judgements = self.judge(
            composition, features, self.candidates(composition, calibration, allows)
        )
        order = sorted(judgements, key=lambda one: (one.log, one.setting.key))
        return [one.setting for one in order if one.gain >= LEAST][:most]

    def answer(
        self,
        features: Features,
        calibration: Calibration,
        allows: Callable[[Setting], bool],
        hours: float,
    ) -> ComposedAnswer | None:
        """The setting for a program; None if the calibration has no table for its nodes.

        ``hours``: the time span of the calibration; with a single time nothing is named.
        """
        composition = self.composition(features, calibration)
        if composition is None:
            return None
        judgements = self.judge(
            composition, features, self.candidates(composition, calibration, allows)
        )
        best = min(
            judgements, key=lambda one: (one.log, one.setting.key), default=DEFAULT_JUDGEMENT
        )
        parts = sorted(
            zip(composition.shares, composition.work, strict=True), key=lambda one: -one[0]
        )
        return ComposedAnswer(
            self.choose(judgements) if hours >= APART_H else DEFAULT_JUDGEMENT,
            best if best.log < 0 else DEFAULT_JUDGEMENT,
            composition.most(),
            composition.responds,
            tuple((work, share) for share, work in parts),
            calibration,
            self.effects.of(features).dof,
            hours,
            composition.moved,
        )


@dataclass(frozen=True)
class ComposedAnswer:
    """The answer for one program. ``best`` has the largest expected gain, ``named`` is also certain
    enough; both may be the default.

    ``most``: the largest gain that any measured setting could give, as a fraction. ``responds``:
    the share of the run time that responds to settings at all, ``parts`` its work with the share of
    each, largest first. ``moved``: the messages between nodes under another mapping, if the trace
    shows a change.
    """

    named: Judgement
    best: Judgement
    most: float
    responds: float
    parts: tuple[tuple[Work, float], ...]
    calibration: Calibration
    dof: float
    hours: float
    moved: MappingChange | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the gain of ``named`` for this one program."""
        return self.named.interval(self.dof)
