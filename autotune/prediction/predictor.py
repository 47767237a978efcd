"""The predictor: a model with the results of its checks on held-out programs.

The checks say how certain a prediction is, and when the default is named instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from autotune.prediction.confidence import Checks, Confidence
from autotune.prediction.examples import Example
from autotune.prediction.exposure import ExposureModel
from autotune.prediction.measured_cell import Floats
from autotune.prediction.neighbours import Neighbours, ThesisNeighbours
from autotune.prediction.network import Network, ThesisNetwork
from autotune.prediction.parsing import floats, mapping, number, texts
from autotune.prediction.scorer import SETS, Effect, Scaler, Scorer, model_values
from autotune.space import DEFAULT, Setting
from runner.types import finite

KINDS: dict[str, type[Scorer]] = {
    kind.kind: kind
    for kind in (Neighbours, ThesisNeighbours, Network, ThesisNetwork, ExposureModel)
}
CHOICES = (Neighbours.kind, Network.kind, ExposureModel.kind)
"""Models that cross-validation chooses from if the user names none."""
THESIS = {Neighbours.kind: ThesisNeighbours.kind, Network.kind: ThesisNetwork.kind}
"""The model that ``--preset thesis`` uses instead of a model."""


def careful(kind: str) -> bool:
    """True if a model names the default when it is uncertain; the models of the thesis never do."""
    return kind not in THESIS.values()


def find_kind(kind: str) -> type[Scorer]:
    """The class of the model with that name; raises ValueError with the known names."""
    if kind not in KINDS:
        raise ValueError(f"kind: model {kind!r} is not known; expected one of {', '.join(KINDS)}")
    return KINDS[kind]


_BEYOND = 20.0
"""Limit of log ratios; no program has larger ones."""


@dataclass(frozen=True)
class NamedSetting:
    """The answer for one program.

    ``gain`` and ``interval`` (95 %, for this one program) are those of ``setting``, None for the
    default. ``harm``: the chance, 0 to 1, that ``best`` is slower than the default; None on an
    unknown machine. ``unsure`` says why the default is named although ``best`` has a better score.
    ``why``: the expected effect of each parameter of ``best``, if the model provides it.
    """

    setting: Setting
    gain: float | None
    interval: tuple[float, float] | None
    best: Setting
    best_gain: float
    harm: float | None
    distance: float
    far: bool
    unsure: str
    why: Mapping[str, Effect] = field(default_factory=dict)

    def meaning(self, local_settings: Mapping[Setting, Setting]) -> NamedSetting:
        """The same answer with its settings replaced by their counterparts in ``local_settings``,
        if any."""
        setting, best = (local_settings.get(one, one) for one in (self.setting, self.best))
        return replace(self, setting=setting, best=best)

    def withdrawn(self, unsure: str) -> NamedSetting:
        """The default instead of the setting, for the reason ``unsure``; its chance of being slower
        is unknown."""
        return replace(
            self, setting=DEFAULT, gain=None, interval=None, harm=None, unsure=unsure, why={}
        )

    def with_names(self, names: Mapping[str, str]) -> NamedSetting:
        """The same answer with other parameter names; names not in ``names`` stay."""

        def under(setting: Setting) -> Setting:
            return Setting({names.get(name, name): value for name, value in setting.items()})

        why = {names.get(name, name): effect for name, effect in self.why.items()}
        return replace(self, setting=under(self.setting), best=under(self.best), why=why)


@dataclass(frozen=True)
class Neighbour:
    """A program of the training set and its distance."""

    cell: str
    distance: float
    best: Setting
    gain: float


@dataclass(frozen=True)
class Predictor:
    """A model that names a setting or the default.  ``careful`` is off for the models of the
    thesis, which always name their best setting.

    ``bar``: the smallest predicted log gain with which a setting is named.  ``reach``: the distance
    up to which a program counts as near.  ``cells``, ``points``, ``best`` and ``gains`` describe
    the programs of the training set, to name the neighbours of a program.
    """

    scorer: Scorer
    scaler: Scaler
    cells: tuple[str, ...]
    points: Floats
    best: tuple[Setting, ...]
    gains: Floats
    bar: float
    reach: float
    residuals: Floats
    careful: bool

    @classmethod
    def build(
        cls, scorer: Scorer, examples: Sequence[Example], checks: Checks, careful: bool
    ) -> Predictor:
        scaler = Scaler.fit(examples, SETS["placed"])
        best = [int(e.ratios.argmin()) for e in examples]
        bar = checks.threshold() if careful else 0.0
        return cls(
            scorer=scorer,
            scaler=scaler,
            cells=tuple(e.key for e in examples),
            points=np.array([scaler(model_values(e.features)) for e in examples]),
            best=tuple(e.settings[i] for e, i in zip(examples, best, strict=True)),
            gains=np.array([1 / e.ratios[i] - 1 for e, i in zip(examples, best, strict=True)]),
            bar=bar,
            reach=checks.reach(),
            residuals=checks.residuals(bar),
            careful=careful,
        )

    @property
    def _confidence(self) -> Confidence:
        return Confidence(self.bar, self.reach, self.residuals)

    def name(self, values: Mapping[str, float], candidates: Sequence[Setting]) -> NamedSetting:
        """The setting for a program with these features: one of ``candidates`` or the default."""
        settings = [DEFAULT, *(c for c in candidates if c != DEFAULT)]
        scores = self.scorer.scores(values, settings)
        scores[0] = 0.0
        # Only a manipulated model file has such scores; they must not overflow.
        scores = np.clip(np.nan_to_num(scores), -_BEYOND, _BEYOND)
        at = int(scores.argmin())
        distance = self.distance(values)
        far = distance > self.reach
        log = float(scores[at])
        unsure = self._confidence.unsure(-log, far) if at and self.careful else ""
        keep = not at or bool(unsure)
        return NamedSetting(
            setting=DEFAULT if keep else settings[at],
            gain=None if keep else math.expm1(-self._confidence.centre(log)),
            interval=None if keep else self._confidence.interval(log),
            best=settings[at],
            best_gain=math.expm1(-log),
            harm=self._confidence.harm(log) if at else 0.0,
            distance=distance,
            far=far,
            unsure=unsure,
            why=self.scorer.why(values, settings[at]),
        )

    def distance(self, values: Mapping[str, float]) -> float:
        """Distance to the nearest program of the training set, in deviations of the features."""
        return float(np.linalg.norm(self.points - self.scaler(values), axis=1).min())

    def neighbours(self, values: Mapping[str, float], count: int = 3) -> list[Neighbour]:
        """The ``count`` nearest programs, nearest first."""
        distances = np.linalg.norm(self.points - self.scaler(values), axis=1)
        order = np.argsort(distances, kind="stable")[:count]
        return [
            Neighbour(self.cells[i], float(distances[i]), self.best[i], float(self.gains[i]))
            for i in order
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "scorer": {"kind": self.scorer.kind, **self.scorer.to_json()},
            "scaler": self.scaler.to_json(),
            "cells": list(self.cells),
            "points": self.points.tolist(),
            "best": [s.to_json() for s in self.best],
            "gains": self.gains.tolist(),
            # JSON has no infinity: null means "never".
            "bar": finite(self.bar),
            "reach": self.reach,
            "residuals": self.residuals.tolist(),
            "careful": self.careful,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Predictor:
        """Inverse of :meth:`to_json`; raises ValueError naming the key for anything else."""
        from autotune.prediction.parsing import required_entry, settings, text

        scorer = mapping(data, "scorer")
        scaler = Scaler.from_json(mapping(data, "scaler"))
        cells = texts(data, "cells")
        if not cells:
            raise ValueError("cells: expected at least one")
        careful = required_entry(data, "careful")
        if not isinstance(careful, bool):
            raise ValueError("careful: expected true or false")
        best = settings(data, "best")
        if len(best) != len(cells):
            raise ValueError("best: expected one setting for each of cells")
        return cls(
            scorer=find_kind(text(scorer, "kind")).from_json(scorer),
            scaler=scaler,
            cells=cells,
            points=floats(data, "points", (len(cells), len(scaler.names))),
            best=best,
            gains=floats(data, "gains", (len(cells),)),
            bar=math.inf if required_entry(data, "bar") is None else number(data, "bar", 0, 100),
            reach=number(data, "reach", 0, 1e12),
            residuals=floats(data, "residuals", (None,)),
            careful=careful,
        )
