"""The interface of all models: predicted times of candidate settings for a program's features.

:class:`Scaler` scales features to vectors whose Euclidean distance measures similarity.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from autotune.prediction.examples import Example
from autotune.prediction.measured_cell import Floats
from autotune.prediction.parsing import floats, names
from autotune.space import Setting, Value
from runner.trace import FEATURES, SPECS, THESIS_NAMES, Features

Options = Mapping[str, float | str]


@dataclass(frozen=True)
class Effect:
    """One parameter: the share of the run time that it affects, and its log(T / T_default)."""

    touched: float
    log: float


class Scorer(ABC):
    """A fitted model.  It is deterministic: the same examples and options give the same model."""

    kind: ClassVar[str]
    summary: ClassVar[str]
    grid: ClassVar[tuple[Options, ...]]
    """Options that cross-validation chooses from."""

    @classmethod
    @abstractmethod
    def fit(
        cls, examples: Sequence[Example], options: Options, defaults: Mapping[str, Value]
    ) -> Scorer:
        """Fit a model.  ``defaults`` are the values of unset parameters, where known."""

    @abstractmethod
    def scores(self, values: Mapping[str, float], candidates: Sequence[Setting]) -> Floats:
        """Expected log(T / T_default) of each candidate for a program with these features; shape
        (candidates,).

        Lower is better. The default has 0, and so has a candidate unknown to the model.
        """

    def why(self, values: Mapping[str, float], setting: Setting) -> dict[str, Effect]:
        """The expected effect of each parameter; empty if the model does not provide it."""
        return {}

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The content of the model as JSON types, as :meth:`from_json` needs it."""

    @classmethod
    @abstractmethod
    def from_json(cls, data: Mapping[str, Any]) -> Scorer:
        """Inverse of :meth:`to_json`; raises ValueError naming the key for anything else."""


NODES = "nodes"
"""The number of nodes of the launch, added to the features by :func:`model_values`."""
SETS: dict[str, tuple[str, ...]] = {
    "thesis": THESIS_NAMES,
    "full": tuple(f.name for f in FEATURES if f.group != "histogram"),
    "placed": (*THESIS_NAMES, NODES),
}
"""Sets of features by name, without histograms: their 52 numbers would dominate the distance."""
_WEIGHTS = {NODES: 3.0}
"""Weights of features other than 1: different parameters matter between nodes than on one node."""

_FLAT = 1e-9


def model_values(features: Features) -> dict[str, float]:
    """Everything that a model may know of a program: its features, and the nodes of its trace."""
    return features.values | {NODES: float(features.nodes)}


@dataclass(frozen=True)
class Scaler:
    """Scales features: log2(1 + x) where that is the natural scale, then mean 0 and deviation 1.

    Mean and deviation are those of the training programs.  A feature that is equal in all of them
    gets the deviation 1, so that a program in which it differs is far away.
    """

    names: tuple[str, ...]
    mean: Floats
    scale: Floats

    @classmethod
    def fit(cls, examples: Sequence[Example], names: Sequence[str]) -> Scaler:
        raw = np.array([_raw(model_values(e.features), names) for e in examples])
        deviation = raw.std(axis=0)
        return cls(tuple(names), raw.mean(axis=0), np.where(deviation > _FLAT, deviation, 1.0))

    def __call__(self, values: Mapping[str, float]) -> Floats:
        """The vector of a program, shape (features,), divided by the root of the number of
        features."""
        weights = [_WEIGHTS.get(name, 1.0) for name in self.names]
        vector = (_raw(values, self.names) - self.mean) / self.scale * weights
        return np.asarray(vector / np.sqrt(len(self.names)), dtype=np.float64)

    def to_json(self) -> dict[str, Any]:
        return {
            "names": list(self.names),
            "mean": self.mean.tolist(),
            "scale": self.scale.tolist(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Scaler:
        feature_names = names(data, "names", {*SPECS, NODES})
        scale = floats(data, "scale", (len(feature_names),))
        if (scale <= 0).any():
            raise ValueError("scale: expected numbers above 0")
        return cls(feature_names, floats(data, "mean", (len(feature_names),)), scale)


def _raw(values: Mapping[str, float], names: Sequence[str]) -> Floats:
    raw = np.array([values[name] for name in names], dtype=np.float64)
    logs = np.array([name == NODES or SPECS[name].scale == "log2" for name in names])
    return np.where(logs, np.log2(1 + raw), raw)
