"""Deviations of programs from their composition: random effects, learned from programs.

The machine is calibrated, the program is traced, and the rest is learned separately for each
situation (more ranks than cores, several nodes). ``slope``: how strongly programs respond, relative
to their composition; ``between``: its variation over programs; ``waiting``: the part of waiting for
messages that responds; ``floor``: effects of settings that should not touch a program;
``residuals``: effects of some settings (waiting, mapping) on the time in MPI that does not respond.
The samples are programs, not cells: two inputs of a program are one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from autotune.errors import UsageError
from autotune.prediction.composition import MATTERS, Composition
from autotune.prediction.examples import Example
from autotune.prediction.mapping import IN_TURN
from autotune.prediction.measured_cell import LEAST_NOISE
from autotune.prediction.parsing import integer, number, required_entry, sequence
from autotune.space import Setting
from autotune.space.outside_names import check_values
from runner import files
from runner.files import MIB
from runner.files.json_text import parse_json
from runner.files.paths import is_file
from runner.trace import Features

SCHEMA = "autotune-composed-1"
COMPOSITION = "composed"
"""The name of the method, among the kinds of models: it needs a calibration."""
SHIPPED_FILE = f"{COMPOSITION}.json"
_LARGEST = MIB
MOST_GAP = 0.01
"""A setting that may act on a larger share of the run time unmeasured is left out."""
_TELLS = 0.02
"""Composed gains above this, as log ratios, determine a program's slope; smaller effects its
floor."""
_WAITING = (0.0, 0.25, 0.5, 0.75, 1.0)
_PRIOR_PROGRAMS = 2.0
_PRIOR_SLOPE, _PRIOR_BETWEEN, _PRIOR_FLOOR = 0.9, 0.4, 0.01
_PRIOR_RESIDUAL = 0.2
"""The prior before any program was seen, with the weight of a number of programs."""
RESIDUAL_PARTS = (
    Setting({"pml": "ucx"}),
    Setting({"mpi_yield_when_idle": True}),
    Setting({"bind_to": "none"}),
    IN_TURN,
)
"""Parts of settings that change how ranks wait or where they are."""
_STRONG = 1.5
"""Largest slope of a program that counts in the mean and the spread of all."""
_NEARLY = 1.02
"""A part of the waiting is as good as the best if its error is at most this many times larger."""
_RESTS = 0.05
"""Smallest share of the run time that determines a residual."""
_STEPS = 3
"""Number of alternating fits of slope and residuals."""
_EXTREME = 1.0
"""Limit of log ratios: a program that fails or becomes ten times faster must not decide alone."""


class Situation(NamedTuple):
    """Conditions that decide how programs wait: more ranks than cores, several nodes."""

    crowded: bool
    across: bool

    @classmethod
    def of(cls, features: Features) -> Situation:
        return cls(features.ranks > features.cores, features.nodes > 1)


@dataclass(frozen=True)
class Residual:
    """The effect of a part of a setting on the time in MPI that does not respond: log(T /
    T_default) of a program without any other time. ``mean`` and ``between`` (a standard deviation)
    over ``programs``."""

    part: Setting
    mean: float
    between: float
    programs: int


@dataclass(frozen=True)
class SituationEffects:
    """The effects in one situation; ``programs``: number of programs behind them.

    ``slope`` multiplies the composed log ratio; ``between`` is the standard deviation of a
    program's own slope, and ``above`` that of slopes above the mean; ``floor`` that of a log ratio
    composed as 0; ``waiting`` is a part, 0 to 1.
    """

    slope: float = _PRIOR_SLOPE
    between: float = _PRIOR_BETWEEN
    above: float = _PRIOR_BETWEEN
    floor: float = _PRIOR_FLOOR
    waiting: float = 0.0
    programs: int = 0
    residuals: tuple[Residual, ...] = ()

    @property
    def dof(self) -> float:
        """Degrees of freedom of an interval for a further program."""
        return self.programs + _PRIOR_PROGRAMS

    def residual(self, setting: Setting) -> tuple[float, float, int]:
        """Sum of the means, and standard deviation, of the known effects of the setting's parts,
        and the fewest programs behind them (0: nothing is known)."""
        own = [r for r in self.residuals if all(setting.get(n) == v for n, v in r.part.items())]
        spread = sum((r.between**2) * (1 + 1 / r.programs) for r in own)
        mean = sum(r.mean for r in own)
        return mean, math.sqrt(spread), min((r.programs for r in own), default=0)


@dataclass(frozen=True)
class ProgramEffects:
    """The effects in each situation; the prior for situations without programs."""

    situations: Mapping[Situation, SituationEffects] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)

    def of(self, features: Features) -> SituationEffects:
        """The effects in a program's situation."""
        return self.situations.get(Situation.of(features), SituationEffects())

    @classmethod
    def fit(cls, examples: Sequence[Example]) -> ProgramEffects:
        """Learn from programs on calibrated machines."""
        parts: dict[Situation, list[Example]] = {}
        for one in examples:
            if one.calibration is not None:
                parts.setdefault(Situation.of(one.features), []).append(one)
        return cls({situation: fit_situation(some) for situation, some in parts.items()})

    def to_json(self) -> dict[str, Any]:
        rows = []
        for situation, effects in sorted(self.situations.items()):
            residuals = [{**asdict(one), "part": one.part.to_json()} for one in effects.residuals]
            rows.append({**situation._asdict(), **asdict(effects), "residuals": residuals})
        return {"schema": SCHEMA, "situations": rows, "about": dict(self.about)}

    @classmethod
    def from_package(cls) -> ProgramEffects:
        """The effects shipped with this version."""
        text = (resources.files("autotune.prediction") / SHIPPED_FILE).read_text(encoding="utf-8")
        return effects_from_json(json.loads(text))


def own_place() -> Path:
    """The file that ``autotune train --model composed`` writes and ``autotune predict`` reads
    first."""
    return files.data(SHIPPED_FILE)


def find_effects() -> ProgramEffects:
    """The user's own effects, else the shipped ones; raises UsageError for an invalid file."""
    path = own_place()
    if not is_file(path):
        return ProgramEffects.from_package()
    try:
        return effects_from_json(parse_json(files.read_text(path, _LARGEST)))
    except (OSError, ValueError) as problem:
        raise UsageError(
            f"cannot use {path}: {problem}.\nLearn them again: autotune train --model composed "
            "--from DATASET",
            code="model.invalid",
        ) from None


def effects_from_json(data: Mapping[str, Any]) -> ProgramEffects:
    """Raises ValueError with the invalid key."""
    if required_entry(data, "schema") != SCHEMA:
        raise ValueError(f"schema: expected {SCHEMA}")
    effects = {}
    for row in sequence(data, "situations"):
        situation = Situation(
            bool(required_entry(row, "crowded")), bool(required_entry(row, "across"))
        )
        effects[situation] = SituationEffects(
            slope=number(row, "slope", -10.0, 10.0),
            between=number(row, "between", 0.0, 10.0),
            above=number(row, "above", 0.0, 10.0),
            floor=number(row, "floor", 0.0, 10.0),
            waiting=number(row, "waiting", 0.0, 1.0),
            programs=integer(row, "programs", 0, 1_000_000),
            residuals=tuple(_residual_from_json(one) for one in sequence(row, "residuals")),
        )
    return ProgramEffects(effects, dict(required_entry(data, "about")))


def _residual_from_json(data: Mapping[str, Any]) -> Residual:
    part = Setting(required_entry(data, "part"))
    check_values(part, SHIPPED_FILE)
    return Residual(
        part,
        number(data, "mean", -10.0, 10.0),
        number(data, "between", 0.0, 10.0),
        integer(data, "programs", 1, 1_000_000),
    )


def composition_of(example: Example, waiting: float = 0.0) -> Composition | None:
    """None if the example's machine was not calibrated for its place."""
    if example.calibration is None:
        return None
    return Composition.of(example.features, example.calibration, waiting)


class _Pair(NamedTuple):
    """One setting of a cell: its composed log ratio, the measured one, the noise of their
    difference, and the share of the run time in MPI that does not respond."""

    setting: Setting
    predicted_log: float
    actual: float
    noise: float
    rest: float


def fit_situation(examples: Sequence[Example]) -> SituationEffects:
    """The effects in one situation. The part of the waiting is the smallest with a nearly minimal
    mean squared error over programs."""
    fits = [_fit_with_waiting(examples, waiting) for waiting in _WAITING]
    least = min(error for error, _ in fits)
    return next(effects for error, effects in fits if error <= _NEARLY * least + LEAST_NOISE**2)


def _fit_with_waiting(
    examples: Sequence[Example], waiting: float
) -> tuple[float, SituationEffects]:
    """The mean squared error over programs, and the effects with that part of the waiting."""
    programs: dict[str, list[_Pair]] = {}
    for example in examples:
        composition = composition_of(example, waiting)
        if composition is not None:
            programs.setdefault(example.app, []).extend(_pairs(example, composition))
    programs = {name: pairs for name, pairs in programs.items() if pairs}
    if not programs:
        return 0.0, SituationEffects(waiting=waiting)
    residuals: tuple[Residual, ...] = ()
    slope, between, above = _PRIOR_SLOPE, _PRIOR_BETWEEN, _PRIOR_BETWEEN
    for _ in range(_STEPS):  # Slope and residuals explain the same runs.
        left = SituationEffects(residuals=residuals)
        slope, between, above = _slopes(programs, left)
        residuals = _residuals(programs, slope)
    effects = SituationEffects(slope, between, above, 0.0, waiting, len(programs), residuals)
    errors = {
        name: [
            p.actual - slope * p.predicted_log - p.rest * effects.residual(p.setting)[0]
            for p in pairs
        ]
        for name, pairs in programs.items()
    }
    floors = [
        _beyond(
            [e for e, p in sensitive if abs(p.predicted_log) <= _TELLS],
            [p.noise for _, p in sensitive],
        )
        for sensitive in (list(zip(errors[name], programs[name], strict=True)) for name in programs)
    ]
    fit = replace(
        effects, floor=_root_mean_square([f for f in floors if f is not None], _PRIOR_FLOOR)
    )
    return float(np.mean([np.mean(np.square(values)) for values in errors.values()])), fit


def _beyond(errors: Sequence[float], noise: Sequence[float]) -> float | None:
    """Standard deviation of the errors (robust) beyond the noise of the measurements; None without
    errors."""
    if not errors:
        return None
    spread = float(np.median(np.abs(errors))) / 0.6745
    return math.sqrt(max(spread**2 - float(np.mean(np.square(noise))), 0.0))


def _slopes(
    programs: Mapping[str, Sequence[_Pair]], left: SituationEffects
) -> tuple[float, float, float]:
    """Mean, standard deviation, and that above the mean.

    Settings composed as slower are never named, so they do not count. A program that responds far
    more strongly than composed does not make slower others likelier: for the first two results its
    slope counts as :data:`_STRONG`.
    """
    own = []
    for pairs in programs.values():
        telling = [
            p._replace(actual=p.actual - p.rest * left.residual(p.setting)[0])
            for p in pairs
            if p.predicted_log < -_TELLS
        ]
        if telling:
            own.append(_slope(telling))
    bounded = [(min(slope, _STRONG), variance) for slope, variance in own]
    slope, between = _pool(bounded, _PRIOR_SLOPE, _PRIOR_BETWEEN)
    over = [one - slope for one, _ in own if one > slope]
    return slope, between, max(between, _root_mean_square(over, _PRIOR_BETWEEN))


def _pairs(example: Example, composition: Composition) -> list[_Pair]:
    """The example's settings that are covered by measurements.

    The default of a cell has few runs, and its error is in all ratios. Settings that should not
    touch the program have the default's time, too: the median of their ratios is the cell's level.
    """
    rest = max(composition.communicates - composition.responds, 0.0)
    scatter = _scatter(example)
    pairs = []
    for index, setting in enumerate(example.settings[1:], 1):
        effect = composition.log(setting)
        if effect.uncovered > MOST_GAP:
            continue
        runs = max(len(example.runs[index]), 1)
        # The median of some runs scatters more than their mean by a factor of about 1.25.
        noise = math.hypot(effect.sd, 1.25 * scatter / math.sqrt(runs))
        log = _clip(effect.log)
        pairs.append(_Pair(setting, log, _actual(example, index), noise, rest))
    quiet = [
        p.actual for p in pairs if abs(p.predicted_log) <= MATTERS and not _residual_part(p.setting)
    ]
    level = float(np.median([0.0, *quiet]))
    return [p._replace(actual=p.actual - level) for p in pairs]


def _scatter(example: Example) -> float:
    """Standard deviation of one run's log ratio over all settings, including the default's
    noise."""
    logs = [[math.log(r) for r in runs if 0 < r < math.inf] for runs in example.runs[1:]]
    own = [float(np.std(some, ddof=1)) for some in logs if len(some) > 1]
    return max(float(np.median(own)), LEAST_NOISE) if own else example.noise


def _actual(example: Example, index: int) -> float:
    runs = [math.log(r) if 0 < r < math.inf else _EXTREME for r in example.runs[index]]
    return _clip(float(np.median(runs))) if runs else _EXTREME


def _clip(log: float) -> float:
    return min(max(log, -_EXTREME), _EXTREME)


def _slope(pairs: Sequence[_Pair]) -> tuple[float, float]:
    """The slope of one program and its variance; the noise of its settings counts as one and the
    same, because they share a calibration."""
    predictions = np.array([p.predicted_log for p in pairs])
    actual = np.array([p.actual for p in pairs])
    noise = np.array([p.noise for p in pairs])
    scale = float(predictions @ predictions)
    return float(predictions @ actual) / scale, float((np.abs(predictions) @ noise / scale) ** 2)


def _pool(own: Sequence[tuple[float, float]], prior: float, prior_sd: float) -> tuple[float, float]:
    """Mean and standard deviation of an effect over programs, beyond the noise of each (DerSimonian
    and Laird), combined with the prior. ``own``: the effect of each program, and the variance of
    its noise."""
    if not own:
        return prior, prior_sd
    effects, variances = np.array(own).T
    variances = np.maximum(variances, 1e-6)
    beyond = 0.0
    if len(own) > 1:
        weights = 1 / variances
        common = float(weights @ effects / weights.sum())
        spread = float(weights @ (effects - common) ** 2) - (len(own) - 1)
        beyond = max(0.0, spread / float(weights.sum() - (weights @ weights) / weights.sum()))
    heavy = len(own) + _PRIOR_PROGRAMS
    between = math.sqrt((len(own) * beyond + _PRIOR_PROGRAMS * prior_sd**2) / heavy)
    weights = 1 / (variances + between**2)
    before = _PRIOR_PROGRAMS / between**2 if between else 0.0
    mean = float((weights @ effects + before * prior) / (weights.sum() + before))
    return mean, between


def _residual_part(setting: Setting) -> list[Setting]:
    """The parts of a setting whose residual is learned."""
    return [part for part in RESIDUAL_PARTS if all(setting.get(n) == v for n, v in part.items())]


def _residuals(programs: Mapping[str, Sequence[_Pair]], slope: float) -> tuple[Residual, ...]:
    residuals = []
    for part in RESIDUAL_PARTS:
        own = []
        for pairs in programs.values():
            telling = [p for p in pairs if part in _residual_part(p.setting) and p.rest > _RESTS]
            if telling:
                rest = np.array([p.rest for p in telling])
                left = np.array([p.actual - slope * p.predicted_log for p in telling])
                noise = np.array([p.noise for p in telling])
                scale = float(rest @ rest)
                own.append((float(rest @ left) / scale, float((rest @ noise) / scale) ** 2))
        if own:
            residuals.append(Residual(part, *_pool(own, 0.0, _PRIOR_RESIDUAL), len(own)))
    return tuple(residuals)


def _mean(values: Sequence[float], prior: float) -> float:
    return (sum(values) + _PRIOR_PROGRAMS * prior) / (len(values) + _PRIOR_PROGRAMS)


def _root_mean_square(values: Sequence[float], prior: float) -> float:
    return math.sqrt(_mean([value**2 for value in values], prior**2))
