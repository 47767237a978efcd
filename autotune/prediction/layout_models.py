"""Models over layouts: the expected effect of a layout, from what layouts did in other programs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from autotune.prediction.layout_examples import LayoutExample
from autotune.prediction.layout_points import COLUMNS
from autotune.prediction.measured_cell import Floats
from autotune.prediction.network import Layers
from autotune.prediction.parsing import floats, mapping, number
from autotune.prediction.scorer import Options


class LayoutScorer(ABC):
    """A fitted model.  It is deterministic: the same examples and options give the same model."""

    kind: ClassVar[str]
    grid: ClassVar[tuple[Options, ...]]
    """Options that cross-validation chooses from."""

    @classmethod
    @abstractmethod
    def fit(cls, examples: Sequence[LayoutExample], options: Options) -> LayoutScorer:
        """Fit a model."""

    @abstractmethod
    def scores(self, points: Floats, parts: Floats) -> Floats:
        """Expected log(T / T_default) of layouts; lower is better.

        Their points have the shape (layouts, columns), their parts (layouts, parts).
        """

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The content of the model as JSON types, as :meth:`from_json` needs it."""

    @classmethod
    @abstractmethod
    def from_json(cls, data: Mapping[str, Any]) -> LayoutScorer:
        """Inverse of :meth:`to_json`; raises ValueError naming the key for anything else."""


def program_rows(examples: Sequence[LayoutExample]) -> tuple[Floats, Floats, Floats]:
    """The points of all settings but defaults, their log ratios, and the number of each one's
    program; shapes (rows, columns), (rows,), (rows,)."""
    apps = list(dict.fromkeys(e.app for e in examples))
    points = np.concatenate([e.points[1:] for e in examples])
    logs = np.concatenate([e.logs[1:] for e in examples])
    programs = np.concatenate([np.full(len(e.settings) - 1, apps.index(e.app)) for e in examples])
    return points, logs, programs.astype(np.float64)


class LayoutNeighbours(LayoutScorer):
    """The mean over programs of what layouts like this one did there.

    Within a program rows count by their distance; a program counts by its nearest row. A program
    that nothing is like has no say, and :data:`DOUBT` stands for "no effect".
    """

    kind: ClassVar[str] = "knn"
    grid: ClassVar[tuple[Options, ...]] = ({"width": 0.7}, {"width": 1.0}, {"width": 1.5})
    DOUBT: ClassVar[float] = 0.3

    def __init__(self, points: Floats, logs: Floats, programs: Floats, width: float):
        self._points = points
        self._logs = logs
        self._programs = programs
        self._width = width

    @classmethod
    def fit(cls, examples: Sequence[LayoutExample], options: Options) -> LayoutNeighbours:
        return cls(*program_rows(examples), float(options["width"]))

    def scores(self, points: Floats, parts: Floats) -> Floats:
        squares = ((points[:, None, :] - self._points[None, :, :]) ** 2).sum(axis=2)
        weights = np.exp(-squares / (2 * self._width**2))
        total = np.zeros(len(points))
        say = np.full(len(points), self.DOUBT)
        for program in np.unique(self._programs):
            own = weights[:, self._programs == program]
            mass = own.sum(axis=1)
            mean = (own @ self._logs[self._programs == program]) / np.maximum(mass, 1e-12)
            nearest = own.max(axis=1)
            total += nearest * mean
            say += nearest
        return np.asarray(total / say, dtype=np.float64)

    def to_json(self) -> dict[str, Any]:
        return {
            "points": self._points.tolist(),
            "logs": self._logs.tolist(),
            "programs": self._programs.tolist(),
            "width": self._width,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LayoutNeighbours:
        points = floats(data, "points", (None, len(COLUMNS)))
        logs = floats(data, "logs", (len(points),))
        programs = floats(data, "programs", (len(points),))
        return cls(points, logs, programs, number(data, "width", 1e-3, 1e3))


class LayoutNetwork(LayoutScorer):
    """A perceptron with the log ratio of one layout as output; every program has the same weight
    in its training."""

    kind: ClassVar[str] = "mlp"
    grid: ClassVar[tuple[Options, ...]] = ({"alpha": 0.1}, {"alpha": 1.0}, {"alpha": 10.0})
    ROWS: ClassVar[int] = 60
    """Rows of each program: those of a small grid are repeated, of a large one some are taken."""

    def __init__(self, layers: Layers):
        self._layers = layers

    @classmethod
    def fit(cls, examples: Sequence[LayoutExample], options: Options) -> LayoutNetwork:
        points, logs, programs = program_rows(examples)
        index = np.concatenate(
            [
                np.resize(np.flatnonzero(programs == program), cls.ROWS)
                if (programs == program).sum() < cls.ROWS
                else np.flatnonzero(programs == program)[
                    np.linspace(0, (programs == program).sum() - 1, cls.ROWS).astype(int)
                ]
                for program in np.unique(programs)
            ]
        )
        size = max(float(logs[index].std()), 1e-6)
        layers = Layers.fit(
            _inputs(points[index]),
            (logs[index] / size)[:, None],
            solver="lbfgs",
            alpha=float(options["alpha"]),
            max_iter=60,
        )
        return cls(layers.times(size))

    def scores(self, points: Floats, parts: Floats) -> Floats:
        return np.asarray(self._layers(_inputs(points)).reshape(len(points)), dtype=np.float64)

    def to_json(self) -> dict[str, Any]:
        return {"layers": self._layers.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LayoutNetwork:
        return cls(Layers.from_json(mapping(data, "layers"), len(COLUMNS), 1))


def _inputs(points: Floats) -> Floats:
    """The points as :class:`Layers` scales them: it multiplies by the root of 19 features."""
    return np.asarray(points / np.sqrt(19.0), dtype=np.float64)
