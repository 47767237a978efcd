"""k nearest neighbours: a setting fast for similar programs is fast here (Pellegrini 1.9.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from autotune.prediction.examples import Example, means
from autotune.prediction.measured_cell import Floats
from autotune.prediction.parsing import floats, integer, mapping, required_entry, settings
from autotune.prediction.scorer import SETS, Options, Scaler, Scorer, model_values
from autotune.prediction.values import ValueCode, near_scores
from autotune.space import Setting, Value

K = 3


def nearest(distances: Floats, k: int) -> list[int]:
    """Indices of the k smallest distances, nearest first; ties by index."""
    return [int(i) for i in np.argsort(distances, kind="stable")[:k]]


class Neighbours(Scorer):
    """Scores a setting by its mean log ratio over the k nearest programs that ran it."""

    kind: ClassVar[str] = "knn"
    summary: ClassVar[str] = "mean over the k nearest programs"
    grid: ClassVar[tuple[Options, ...]] = tuple(
        {"k": k, "features": chosen} for chosen in SETS for k in (1, K, 5)
    )

    def __init__(self, scaler: Scaler, points: Floats, tables: list[dict[str, float]], k: int):
        self._scaler = scaler
        self._points = points
        self._tables = tables
        self._k = k

    @classmethod
    def fit(
        cls, examples: Sequence[Example], options: Options, defaults: Mapping[str, Value]
    ) -> Neighbours:
        scaler = Scaler.fit(examples, SETS[str(options["features"])])
        points = np.array([scaler(model_values(e.features)) for e in examples])
        return cls(scaler, points, [means([e]) for e in examples], int(options["k"]))

    def scores(self, values: Mapping[str, float], candidates: Sequence[Setting]) -> Floats:
        distances = np.linalg.norm(self._points - self._scaler(values), axis=1)
        near = [self._tables[i] for i in nearest(distances, self._k)]
        means = np.zeros(len(candidates))
        for place, candidate in enumerate(candidates):
            logs = [table[candidate.key] for table in near if candidate.key in table]
            # More than half of the neighbours must have run the setting; fewer are no evidence.
            if 2 * len(logs) > len(near):
                means[place] = float(np.mean(logs))
        return means

    def to_json(self) -> dict[str, Any]:
        return {
            "scaler": self._scaler.to_json(),
            "points": self._points.tolist(),
            "tables": self._tables,
            "k": self._k,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Neighbours:
        scaler = Scaler.from_json(mapping(data, "scaler"))
        points = floats(data, "points", (None, len(scaler.names)))
        tables = required_entry(data, "tables")
        if not isinstance(tables, list) or len(tables) != len(points):
            raise ValueError("tables: expected one table for each of points")
        logs_by_key = []
        for table in tables:
            if not isinstance(table, dict):
                raise ValueError("tables: expected JSON objects")
            numbers = floats({"tables": list(table.values())}, "tables", (None,))
            logs_by_key.append(dict(zip(table, numbers.tolist(), strict=True)))
        return cls(scaler, points, logs_by_key, integer(data, "k", 1, 100))


class ThesisNeighbours(Scorer):
    """k-NN as in the thesis: each parameter is the mean of the values that were best for the three
    nearest programs (the majority for words), over 19 features. Uncertainty never makes it name the
    default."""

    kind: ClassVar[str] = "knn-thesis"
    summary: ClassVar[str] = "k-NN as in the thesis: mean of the 3 neighbours' best values"
    grid: ClassVar[tuple[Options, ...]] = ({"k": K},)

    def __init__(
        self,
        scaler: Scaler,
        points: Floats,
        best: tuple[Setting, ...],
        gains: Floats,
        code: ValueCode,
        k: int,
    ):
        self._scaler = scaler
        self._points = points
        self._best = best
        self._gains = gains
        self._code = code
        self._k = k

    @classmethod
    def fit(
        cls, examples: Sequence[Example], options: Options, defaults: Mapping[str, Value]
    ) -> ThesisNeighbours:
        scaler = Scaler.fit(examples, SETS["thesis"])
        return cls(
            scaler,
            np.array([scaler(model_values(e.features)) for e in examples]),
            tuple(e.settings[e.fastest] for e in examples),
            np.array([e.fastest_log for e in examples]),
            ValueCode.of([s for e in examples for s in e.settings], defaults),
            int(options["k"]),
        )

    def scores(self, values: Mapping[str, float], candidates: Sequence[Setting]) -> Floats:
        distances = np.linalg.norm(self._points - self._scaler(values), axis=1)
        near = nearest(distances, self._k)
        target = self._code.average([self._best[i] for i in near])
        mean_gain = float(self._gains[near].mean())
        return near_scores(self._code, target, candidates, mean_gain)

    def to_json(self) -> dict[str, Any]:
        return {
            "scaler": self._scaler.to_json(),
            "points": self._points.tolist(),
            "best": [s.to_json() for s in self._best],
            "gains": self._gains.tolist(),
            "code": self._code.to_json(),
            "k": self._k,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ThesisNeighbours:
        scaler = Scaler.from_json(mapping(data, "scaler"))
        best = settings(data, "best")
        return cls(
            scaler,
            floats(data, "points", (len(best), len(scaler.names))),
            best,
            floats(data, "gains", (len(best),)),
            ValueCode.from_json(mapping(data, "code")),
            integer(data, "k", 1, 100),
        )
