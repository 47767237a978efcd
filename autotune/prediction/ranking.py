"""Ranking: the gain of a setting for a program, by ridge regression with interactions.

The kernel is (what all programs share + what similar programs share) x (each parameter by itself +
the setting as a whole).  Settings that no program ran can be ranked through their parameters.  The
log ratio of the default is exactly 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from autotune.prediction.examples import Example, Floats, distinct
from autotune.prediction.parsing import floats, mapping, number, settings
from autotune.prediction.scorer import SETS, Options, Scaler, Scorer, described
from autotune.space import DEFAULT, Setting, Value

_WHOLE = 0.5
"""Weight of the setting as a whole; the single parameters have the rest."""
_JOINT = 0.5
"""How fast the similarity of whole settings falls with each parameter in which they differ."""
_TOLERANCE = 1e-6
"""Largest error left in a fitted log ratio, relative to the largest log ratio."""
_MOST_STEPS = 2000
"""Largest number of steps of the conjugate gradients."""


@dataclass(frozen=True)
class Likeness:
    """The kernel of settings: how similar two settings are, relative to the default, which has 0.

    ``spans``: for parameters with numbers, the range of log2(1 + value) over which the similarity
    falls to nothing.  Words are equal or not; unset is different from every value.  ``size`` scales
    the mean similarity of a setting with itself to 1.
    """

    spans: tuple[tuple[str, float], ...]
    size: tuple[float, float] = (1.0, 1.0)

    @classmethod
    def of(cls, known: Sequence[Setting]) -> Likeness:
        numbers: dict[str, list[float]] = {}
        for setting in known:
            for name, value in setting.items():
                place = 0.0 if isinstance(value, str) else math.log2(1 + abs(value))
                numbers.setdefault(name, []).append(place)
        spans = tuple((name, max(max(p) - min(p), 1.0)) for name, p in numbers.items())
        raw = cls(spans)
        parts = raw._parts(known, known)
        real = [i for i, s in enumerate(known) if len(s)]
        sizes = [float(part.diagonal()[real].mean()) if real else 1.0 for part in parts]
        return cls(spans, (max(sizes[0], 1e-9), max(sizes[1], 1e-9)))

    def __call__(self, left: Sequence[Setting], right: Sequence[Setting]) -> Floats:
        alone, whole = self._parts(left, right)
        return (1 - _WHOLE) * alone / self.size[0] + _WHOLE * whole / self.size[1]

    def _parts(self, left: Sequence[Setting], right: Sequence[Setting]) -> tuple[Floats, Floats]:
        shape = (len(left), len(right))
        alone, apart = np.zeros(shape), np.zeros(shape)
        ones, others = np.zeros(len(left)), np.zeros(len(right))
        for name, span in self.spans:
            a, b = [s.get(name) for s in left], [s.get(name) for s in right]
            distance = _distances(a, b, span)
            set_a = np.array([v is not None for v in a])
            set_b = np.array([v is not None for v in b])
            alone += np.where(set_a[:, None] & set_b[None, :], 2 - distance, 0.0)
            apart += distance
            ones += set_a
            others += set_b
        near = [np.exp(-_JOINT * d) for d in (apart, ones[:, None], others[None, :])]
        return alone, near[0] - near[1] - near[2] + 1


def _distances(left: Sequence[Value | None], right: Sequence[Value | None], span: float) -> Floats:
    """Distances, shape (left, right): 0 for equal values, 1 for unlike ones, between for
    numbers."""
    values = list(dict.fromkeys([*left, *right]))
    table = np.ones((len(values), len(values)))
    for i, a in enumerate(values):
        for j, b in enumerate(values):
            if a == b:
                table[i, j] = 0.0
            elif isinstance(a, int | float) and isinstance(b, int | float):
                gap = abs(math.log2(1 + abs(a)) - math.log2(1 + abs(b)))
                table[i, j] = min(1.0, gap / span)
    place = {value: at for at, value in enumerate(values)}
    return table[np.ix_([place[v] for v in left], [place[v] for v in right])]


@lru_cache(maxsize=8)
def _likeness(known: tuple[Setting, ...]) -> Likeness:
    """Cached, because leaving programs out asks for the same settings many times."""
    return Likeness.of(known)


@lru_cache(maxsize=8)
def _between(likeness: Likeness, left: tuple[Setting, ...], right: tuple[Setting, ...]) -> Floats:
    return likeness(left, right)


def _solve(
    by_program: Floats, by_setting: Floats, logs: Floats, runs: Floats, ridge: float
) -> Floats:
    """Ridge coefficients, shape (programs, settings); 0 where a program did not run a setting.

    Solved by conjugate gradients.  The matrix over all pairs of rows is never built, because it is
    the product of the two small matrices.  ``runs`` divides the variance of a row.
    """
    ran = runs > 0
    ridges = ridge / np.where(ran, runs, 1.0)
    scale = np.where(ran, np.outer(by_program.diagonal(), by_setting.diagonal()) + ridges, 1.0)
    found = np.zeros_like(logs)
    rest = np.where(ran, logs, 0.0)
    enough = _TOLERANCE * float(np.abs(rest).max(initial=0.0))
    step = rest / scale
    level = float((rest * step).sum())
    for _ in range(_MOST_STEPS):
        if float(np.abs(rest).max(initial=0.0)) <= enough:
            break
        image = np.where(ran, by_program @ step @ by_setting + ridges * step, 0.0)
        length = level / float((step * image).sum())
        found += length * step
        rest -= length * image
        eased = rest / scale
        level, before = float((rest * eased).sum()), level
        step = eased + level / before * step
    return found


class Ranking(Scorer):
    """``shared`` is the part common to all programs (1: the features have no influence).  ``ridge``
    is the variance of a single run relative to the variance of settings."""

    kind: ClassVar[str] = "ranking"
    summary: ClassVar[str] = "ridge regression of the gain on features x setting, in kernel form"
    grid: ClassVar[tuple[Options, ...]] = (
        {"shared": 0.5, "ridge": 0.3, "features": "thesis"},
        {"shared": 0.5, "ridge": 3.0, "features": "thesis"},
        {"shared": 0.1, "ridge": 0.3, "features": "thesis"},
        {"shared": 0.1, "ridge": 3.0, "features": "thesis"},
        {"shared": 0.5, "ridge": 0.3, "features": "full"},
        {"shared": 0.5, "ridge": 3.0, "features": "full"},
        {"shared": 0.5, "ridge": 3.0, "features": "placed"},
        {"shared": 0.1, "ridge": 3.0, "features": "placed"},
        {"shared": 0.02, "ridge": 3.0, "features": "placed"},
        {"shared": 1.0, "ridge": 3.0, "features": "thesis"},
    )

    def __init__(
        self,
        scaler: Scaler,
        points: Floats,
        width: float,
        shared: float,
        likeness: Likeness,
        known: tuple[Setting, ...],
        table: Floats,
    ):
        self._scaler = scaler
        self._points = points
        self._width = width
        self._shared = shared
        self._likeness = likeness
        self._known = known
        self._table = table
        """Coefficients, shape (programs, known settings)."""

    @classmethod
    def fit(
        cls, examples: Sequence[Example], options: Options, defaults: Mapping[str, Value]
    ) -> Ranking:
        scaler = Scaler.fit(examples, SETS[str(options["features"])])
        points = np.array([scaler(described(e.features)) for e in examples])
        gaps = np.linalg.norm(points[:, None] - points[None], axis=2)
        apart = gaps[np.triu_indices(len(points), 1)]
        width = max(float(np.median(apart)), 1e-6)
        known = tuple(s for s in distinct(examples) if s != DEFAULT)
        likeness = _likeness(known)
        place = {s: at for at, s in enumerate(known)}
        logs, runs = np.zeros((2, len(examples), len(known)))
        for c, e in enumerate(examples):
            at = [(place[s], i) for i, s in enumerate(e.settings) if s in place]
            for column, i in at:
                logs[c, column] = e.logs[i]
                runs[c, column] = max(1, len(e.runs[i]))
        shared = float(options["shared"])
        by_program = _alike(gaps, width, shared)
        by_setting = _between(likeness, known, known)
        table = _solve(by_program, by_setting, logs, runs, float(options["ridge"]))
        return cls(scaler, points, width, shared, likeness, known, table)

    def scores(self, values: Mapping[str, float], candidates: Sequence[Setting]) -> Floats:
        gaps = np.linalg.norm(self._points - self._scaler(values), axis=1)
        weights = _alike(gaps, self._width, self._shared) @ self._table
        alike = _between(self._likeness, tuple(candidates), self._known)
        return np.asarray(alike @ weights, dtype=np.float64)

    def to_json(self) -> dict[str, Any]:
        return {
            "scaler": self._scaler.to_json(),
            "points": self._points.tolist(),
            "width": self._width,
            "shared": self._shared,
            "spans": dict(self._likeness.spans),
            "size": list(self._likeness.size),
            "known": [s.to_json() for s in self._known],
            "table": self._table.tolist(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Ranking:
        scaler = Scaler.from_json(mapping(data, "scaler"))
        points = floats(data, "points", (None, len(scaler.names)))
        known = settings(data, "known")
        spans = mapping(data, "spans")
        lengths = floats({"spans": list(spans.values())}, "spans", (len(spans),))
        size = floats(data, "size", (2,))
        if (lengths <= 0).any() or (size <= 0).any():
            raise ValueError("spans and size: expected numbers above 0")
        likeness = Likeness(
            tuple(zip(spans, lengths.tolist(), strict=True)), (float(size[0]), float(size[1]))
        )
        return cls(
            scaler,
            points,
            number(data, "width", 1e-9, 1e9),
            number(data, "shared", 0, 1),
            likeness,
            known,
            floats(data, "table", (len(points), len(known))),
        )


def _alike(gaps: Floats, width: float, shared: float) -> Floats:
    near = np.exp(-0.5 * (gaps / width) ** 2)
    return np.asarray(shared + (1 - shared) * near, dtype=np.float64)
