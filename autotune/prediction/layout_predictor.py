"""The predictor of layouts: a model over layouts, checked on programs left out.

It names a layout only where the checks support it (:mod:`autotune.prediction.confidence`), else the
default.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from autotune.prediction.confidence import Checks, Confidence
from autotune.prediction.layout_examples import LayoutExample
from autotune.prediction.layout_kinds import LAYOUT_KINDS
from autotune.prediction.layout_models import LayoutScorer
from autotune.prediction.layout_points import COLUMNS
from autotune.prediction.measured_cell import Floats
from autotune.prediction.parsing import floats, mapping, number, required_entry, text
from autotune.prediction.scorer import Options
from autotune.prediction.training import Watch, mean_cost, silent
from autotune.space import DEFAULT, Setting
from runner.types import finite

_BEYOND = 20.0
"""Limit of log ratios; no program has larger ones."""
NEAR = 0.01
"""Layouts whose expected log ratios differ by less are equally good: of them, the one that changes
the fewest parameters is named."""


@dataclass(frozen=True)
class NamedLayout:
    """The answer for one program; fields as of
    :class:`autotune.prediction.predictor.NamedSetting`."""

    setting: Setting
    gain: float | None
    interval: tuple[float, float] | None
    best: Setting
    best_gain: float
    harm: float
    distance: float
    far: bool
    unsure: str


@dataclass(frozen=True, eq=False)
class LayoutPredictor:
    """A model with its checks. ``points``: the layouts of the training set, shape (rows, columns);
    a layout far from all of them is not named."""

    scorer: LayoutScorer
    confidence: Confidence
    points: Floats

    def name(self, settings: Sequence[Setting], points: Floats, parts: Floats) -> NamedLayout:
        """The layout for a program: one of ``settings``, the default first, with these points and
        parts."""
        at, log, distance = best_layout(self.scorer, self.points, settings, points, parts)
        far = distance > self.confidence.reach
        unsure = self.confidence.unsure(-log, far) if at else ""
        keep = not at or bool(unsure)
        return NamedLayout(
            setting=DEFAULT if keep else settings[at],
            gain=None if keep else math.expm1(-self.confidence.centre(log)),
            interval=None if keep else self.confidence.interval(log),
            best=settings[at],
            best_gain=math.expm1(-log),
            harm=self.confidence.harm(log) if at else 0.0,
            distance=distance,
            far=far,
            unsure=unsure,
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "scorer": {"kind": self.scorer.kind, **self.scorer.to_json()},
            # JSON has no infinity: null means "never".
            "bar": finite(self.confidence.bar),
            "reach": self.confidence.reach,
            "residuals": self.confidence.residuals.tolist(),
            "points": self.points.tolist(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LayoutPredictor:
        """Inverse of :meth:`to_json`; raises ValueError naming the key for anything else."""
        scorer = mapping(data, "scorer")
        kind = text(scorer, "kind")
        if kind not in LAYOUT_KINDS:
            kinds = ", ".join(LAYOUT_KINDS)
            raise ValueError(f"kind: model {kind!r} is not known; expected one of {kinds}")
        bar = math.inf if required_entry(data, "bar") is None else number(data, "bar", 0, 100)
        return cls(
            LAYOUT_KINDS[kind].from_json(scorer),
            Confidence(bar, number(data, "reach", 0, 1e12), floats(data, "residuals", (None,))),
            floats(data, "points", (None, len(COLUMNS))),
        )


def _scores(scorer: LayoutScorer, points: Floats, parts: Floats) -> Floats:
    """The scores of layouts, the default first with 0. Only a manipulated file has extreme ones."""
    scores = np.clip(np.nan_to_num(scorer.scores(points, parts)), -_BEYOND, _BEYOND)
    scores[0] = 0.0
    return np.asarray(scores, dtype=np.float64)


def best_layout(
    scorer: LayoutScorer,
    known_points: Floats,
    settings: Sequence[Setting],
    points: Floats,
    parts: Floats,
) -> tuple[int, float, float]:
    """Index, score and distance to the nearest known layout of the layout to name."""
    scores = _scores(scorer, points, parts)
    good = np.flatnonzero(scores <= scores.min() + NEAR) if scores.min() < -NEAR else [0]
    at = min((int(i) for i in good), key=lambda i: (len(settings[i]), scores[i], i))
    distance = float(np.linalg.norm(known_points - points[at], axis=1).min())
    return at, float(scores[at]), distance


@dataclass(frozen=True, eq=False)
class LayoutTraining:
    """A predictor and its cost on programs left out, as
    :class:`autotune.prediction.training.TrainingResult`."""

    kind: str
    options: Options
    predictor: LayoutPredictor
    cost: float


def train_layouts(
    kind: str, examples: Sequence[LayoutExample], watch: Watch = silent
) -> LayoutTraining:
    """Fit a model of that kind; options and threshold are chosen by leaving programs out."""
    model = LAYOUT_KINDS[kind]
    results = []
    for number_, options in enumerate(model.grid, 1):
        watch(f"{kind}: options {number_} of {len(model.grid)}")
        checks = check_layouts(lambda some, o=options: model.fit(some, o), examples)  # type: ignore[misc]
        results.append((mean_cost(checks, cautious=True), number_, options, checks))
    cost, _, options, checks = min(results, key=lambda entry: entry[:2])
    bar = checks.threshold()
    confidence = Confidence(bar, checks.reach(), checks.residuals(bar))
    known_points = np.concatenate([e.points[1:] for e in examples])
    predictor = LayoutPredictor(model.fit(examples, options), confidence, known_points)
    return LayoutTraining(kind, options, predictor, cost)


def check_layouts(
    fit: Callable[[Sequence[LayoutExample]], LayoutScorer], examples: Sequence[LayoutExample]
) -> Checks:
    """Predict each program in turn with a model of the others."""
    rows = []
    for number_, app in enumerate(dict.fromkeys(e.app for e in examples)):
        others = [e for e in examples if e.app != app]
        if len({e.app for e in others}) < 2:
            continue
        scorer = fit(others)
        known_points = np.concatenate([e.points[1:] for e in others])
        for example in (e for e in examples if e.app == app):
            at, score, distance = best_layout(
                scorer, known_points, example.settings, example.points, example.parts
            )
            slower = at > 0 and example.logs[at] > example.beyond_noise(at)
            null = float(example.null and at > 0)
            rows.append((score, example.logs[at], distance, float(slower), null, number_))
    columns = np.array(rows, dtype=np.float64).reshape(-1, 6).T if rows else np.zeros((6, 1))
    return Checks(*columns)
