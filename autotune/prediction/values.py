"""Values of parameters as numbers from -1 to 1, and back to values that were run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from autotune.prediction.measured_cell import Floats
from autotune.prediction.parsing import mapping
from autotune.space import DEFAULT, Setting, Value
from autotune.space.setting import normalise_value


@dataclass(frozen=True)
class ValueCode:
    """The levels of every varied parameter, in order, each with a place from -1 to 1.

    Numbers are placed by log2(1 + value), because sizes and counts span orders of magnitude, and
    words in alphabetical order.  "Unset" (None) is placed at the library's default if that is known
    and a number, else before the first level.
    """

    levels: Mapping[str, tuple[Value | None, ...]]
    places: Mapping[str, tuple[float, ...]]

    @classmethod
    def of(cls, settings: Sequence[Setting], defaults: Mapping[str, Value]) -> ValueCode:
        values_by_name: dict[str, set[Value]] = {}
        for setting in settings:
            for name, value in setting.items():
                values_by_name.setdefault(name, set()).add(value)
        levels = {
            name: (None, *_sort_values(values)) for name, values in sorted(values_by_name.items())
        }
        places = {name: _places(levels[name], defaults.get(name)) for name in levels}
        return cls(levels, places)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.levels)

    def encode(self, setting: Setting) -> Floats:
        """One place for each parameter, shape (parameters,); a value never run counts as unset."""
        codes = []
        for name in self.names:
            value = setting.get(name)
            at = self.levels[name].index(value) if value in self.levels[name] else 0
            codes.append(self.places[name][at])
        return np.array(codes, dtype=np.float64)

    def snap(self, places: Floats) -> Floats:
        """Each place moved to the nearest place of a level."""
        nearest = [
            min(self.places[name], key=lambda p, x=float(x): abs(p - x))  # type: ignore[misc]
            for name, x in zip(self.names, places, strict=True)
        ]
        return np.array(nearest, dtype=np.float64)

    def average(self, settings: Sequence[Setting]) -> Floats:
        """Mean of the places, snapped to levels; for words the majority, of a tie the first."""
        codes = np.array([self.encode(s) for s in settings]).reshape(len(settings), -1)
        target = self.snap(codes.mean(axis=0))
        for column, name in enumerate(self.names):
            if any(isinstance(level, str) for level in self.levels[name]):
                votes = Counter(codes[:, column].tolist())
                target[column] = votes.most_common(1)[0][0]
        return target

    def to_json(self) -> dict[str, Any]:
        return {
            "levels": {name: list(values) for name, values in self.levels.items()},
            "places": {name: list(values) for name, values in self.places.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ValueCode:
        levels, places = mapping(data, "levels"), mapping(data, "places")
        if list(levels) != list(places):
            raise ValueError("levels and places: expected the same parameters")
        for name in levels:
            row = levels[name], places[name]
            if not all(isinstance(r, list) and r for r in row) or len(row[0]) != len(row[1]):
                raise ValueError(f"levels and places of {name}: expected lists of one length")
            if row[0][0] is not None:
                raise ValueError(f"levels of {name}: expected null (unset) first")
            for value in row[0][1:]:
                if not isinstance(value, int | float | str) or normalise_value(value) != value:
                    raise ValueError(f"levels of {name}: {value!r} is not a value")
            if not all(isinstance(p, int | float) and -1 <= p <= 1 for p in row[1]):
                raise ValueError(f"places of {name}: expected numbers from -1 to 1")
        return cls(
            {name: tuple(values) for name, values in levels.items()},
            {name: tuple(float(p) for p in values) for name, values in places.items()},
        )


def near_scores(
    code: ValueCode, target: Floats, candidates: Sequence[Setting], mean_gain: float
) -> Floats:
    """Scores of a model that names values, shape (candidates,).

    The default has 0, a candidate with the named values ``mean_gain`` (as a log ratio), and one
    that is farther from them than the default a score above 0. So if the values are those of the
    default, the default is the best.
    """
    codes = np.array([code.encode(c) for c in candidates]).reshape(len(candidates), -1)
    distances = np.abs(codes - target).sum(axis=1)
    of_default = float(np.abs(code.encode(DEFAULT) - target).sum())
    nearer = (of_default - distances) / (of_default or max(float(distances.max()), 1e-12))
    return np.asarray(min(mean_gain, 0.0) * nearer)


def _sort_values(values: set[Value]) -> list[Value]:
    def order(value: Value) -> tuple[bool, str, float]:
        return isinstance(value, str), value if isinstance(value, str) else "", _x(value)

    return sorted(values, key=order)


def _x(value: Value | None) -> float:
    return (
        math.copysign(math.log2(1 + abs(value)), value) if isinstance(value, int | float) else 0.0
    )


def _places(levels: tuple[Value | None, ...], default: Value | None) -> tuple[float, ...]:
    numeric = not any(isinstance(level, str) for level in levels)
    if numeric and isinstance(default, int | float):
        raw = [_x(default), *(_x(v) for v in levels[1:])]
    elif numeric:
        numbers = [_x(v) for v in levels[1:]]
        raw = [min(numbers) - 1, *numbers]
    else:
        raw = [float(i) for i in range(len(levels))]
    low, span = min(raw), max(max(raw) - min(raw), 1e-12)
    return tuple(min(1.0, max(-1.0, 2 * (x - low) / span - 1)) for x in raw)
