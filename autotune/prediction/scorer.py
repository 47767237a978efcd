"""What every model is: it says of each candidate setting how fast a program would be with it.

Features as vectors whose Euclidean distance means something.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from autotune.prediction.examples import Example, Floats
from autotune.prediction.parsing import floats, names
from autotune.space import Setting, Value
from runner.trace import FEATURES, SPECS, THESIS_NAMES, Features

Options = Mapping[str, float | str]


@dataclass(frozen=True)
class Effect:
    """Of one parameter: the share of the run time that it acts on, and its log(T / T_default)."""

    touched: float
    log: float


class Scorer(ABC):
    """A fitted model.  Pure: the same examples and options give the same model."""

    kind: ClassVar[str]
    summary: ClassVar[str]
    grid: ClassVar[tuple[Options, ...]]
    """Options that cross-validation chooses from."""

    @classmethod
    @abstractmethod
    def fit(
        cls, examples: Sequence[Example], options: Options, defaults: Mapping[str, Value]
    ) -> Scorer:
        """Learn.  ``defaults`` are the values of unset parameters, where known."""

    @abstractmethod
    def scores(self, values: Mapping[str, float], candidates: Sequence[Setting]) -> Floats:
        """Expected log(T / T_default) of each candidate for a program with these features.

        Lower is better; a candidate about which nothing is known, like the default, has 0.
        """

    def why(self, values: Mapping[str, float], setting: Setting) -> dict[str, Effect]:
        """What each of its parameters is expected to do; nothing where the model cannot tell."""
        return {}

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Everything that :meth:`from_json` needs, as JSON types."""

    @classmethod
    @abstractmethod
    def from_json(cls, data: Mapping[str, Any]) -> Scorer:
        """Inverse of :meth:`to_json`; raises ValueError naming the key for anything else."""


NODES = "nodes"
"""Of the launch, not of the program; beside the features in what :func:`described` gives."""
SETS: dict[str, tuple[str, ...]] = {
    "thesis": THESIS_NAMES,
    "full": tuple(f.name for f in FEATURES if f.group != "histogram"),
    "placed": (*THESIS_NAMES, NODES),
}
"""Sets of features by name.  Histograms are left out: 52 numbers would drown all others."""
_WEIGHTS = {NODES: 3.0}
"""What counts more than one of many: between nodes other parameters matter than on one."""

_FLAT = 1e-9


def described(features: Features) -> dict[str, float]:
    """All that a model may know of a program: its features, and the nodes that it was traced on."""
    return features.values | {NODES: float(features.nodes)}


@dataclass(frozen=True)
class Scaler:
    """log2(1 + x) where that is a feature's natural scale, then mean 0 and deviation 1.

    Mean and deviation are those of the training programs.  A feature that is the same in all of
    them says nothing there: it gets the deviation 1, so that a program in which it differs is far.
    """

    names: tuple[str, ...]
    mean: Floats
    scale: Floats

    @classmethod
    def fit(cls, examples: Sequence[Example], chosen: Sequence[str]) -> Scaler:
        raw = np.array([_raw(described(e.features), chosen) for e in examples])
        deviation = raw.std(axis=0)
        return cls(tuple(chosen), raw.mean(axis=0), np.where(deviation > _FLAT, deviation, 1.0))

    def __call__(self, values: Mapping[str, float]) -> Floats:
        """The vector of a program; distances do not grow with the number of features."""
        weights = [_WEIGHTS.get(name, 1.0) for name in self.names]
        moved = (_raw(values, self.names) - self.mean) / self.scale * weights
        return np.asarray(moved / np.sqrt(len(self.names)), dtype=np.float64)

    def to_json(self) -> dict[str, Any]:
        return {
            "names": list(self.names),
            "mean": self.mean.tolist(),
            "scale": self.scale.tolist(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Scaler:
        known = names(data, "names", {*SPECS, NODES})
        scale = floats(data, "scale", (len(known),))
        if (scale <= 0).any():
            raise ValueError("scale: expected numbers above 0")
        return cls(known, floats(data, "mean", (len(known),)), scale)


def _raw(values: Mapping[str, float], chosen: Sequence[str]) -> Floats:
    raw = np.array([values[name] for name in chosen], dtype=np.float64)
    logs = np.array([name == NODES or SPECS[name].scale == "log2" for name in chosen])
    return np.where(logs, np.log2(1 + raw), raw)
