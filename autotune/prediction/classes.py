"""Classes of programs with similar features, found by clustering the features of traced runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import Field

from autotune.document import Document
from autotune.errors import UsageError
from autotune.prediction.examples import Example
from autotune.prediction.measured_cell import Floats
from autotune.prediction.scorer import SETS, Scaler, model_values
from runner.trace import SPECS

MOST = 6
"""Largest number of classes that is tried if the user gives none."""
LEAST_SILHOUETTE = 0.25
"""Mean silhouette below which there is no clear structure: all cells are then one class."""
_MOST_MARKS = 3


@dataclass(frozen=True)
class ProgramClass:
    """Cells of one class."""

    number: int
    cells: tuple[str, ...]
    apps: tuple[str, ...]
    marks: tuple[tuple[str, float, float], ...]
    """The features in which they differ most from the others: (name, mean value in the class, mean
    value elsewhere)."""


@dataclass(frozen=True)
class Classes:
    """The classes, largest first.  ``silhouette``: mean over the cells, -1 to 1, how clearly the
    classes are separated; None for one class."""

    classes: tuple[ProgramClass, ...]
    silhouette: float | None


class ClassList(Document):
    """The classes of a dataset, largest first."""

    schema_: Literal["autotune-classes-1"] = Field(default="autotune-classes-1", alias="schema")
    silhouette: float | None
    classes: tuple[ProgramClass, ...]


def find_classes(examples: Sequence[Example], count: int | None = None) -> Classes:
    """Cluster the cells by average linkage on scaled features (Euclidean distance, as in k-NN).

    ``count`` is the number of classes. Without it, the number with the best silhouette is used, at
    most 6, or one class if none is clearly separated. The largest class comes first. Raises
    UsageError for a count below 1 or above the number of cells.
    """
    # These imports are slow, and only this function needs them.
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.metrics import silhouette_score

    total = len(examples)
    if count is not None and not 1 <= count <= total:
        raise UsageError(
            f"{count} classes of {total} cells are not possible; expected 1 to {total}",
            code="classwide.classes_range",
        )
    scaler = Scaler.fit(examples, SETS["full"])
    points = np.array([scaler(model_values(e.features)) for e in examples])
    best: tuple[Any, float | None] = (np.zeros(total, dtype=np.int_), None)
    counts = range(2, min(MOST, total - 1) + 1) if count is None else [count]
    for k in counts:
        if k < 2:
            continue
        labels = AgglomerativeClustering(n_clusters=k, linkage="average").fit_predict(points)
        clear = float(silhouette_score(points, labels)) if k < total else 0.0
        bar = LEAST_SILHOUETTE if best[1] is None else best[1]
        if count is not None or clear > bar:
            best = (labels, clear)
    labels, silhouette = best
    groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    groups.sort(key=lambda group: (-len(group), examples[int(group[0])].key))
    classes = tuple(
        ProgramClass(
            number,
            tuple(examples[int(i)].key for i in group),
            tuple(sorted({examples[int(i)].app for i in group})),
            _marks(examples, points, scaler, group),
        )
        for number, group in enumerate(groups, 1)
    )
    return Classes(classes, silhouette)


def _marks(
    examples: Sequence[Example], points: Floats, scaler: Scaler, group: np.ndarray
) -> tuple[tuple[str, float, float], ...]:
    rest = np.setdiff1d(np.arange(len(examples)), group)
    if not len(rest):
        return ()
    distances = np.abs(points[group].mean(axis=0) - points[rest].mean(axis=0))
    marks = []
    for place in np.argsort(-distances, kind="stable")[:_MOST_MARKS]:
        name = scaler.names[int(place)]
        inside, outside = (
            float(np.mean([model_values(examples[int(i)].features)[name] for i in part]))
            for part in (group, rest)
        )
        marks.append((name, inside, outside))
    return tuple(marks)


def words_of(marks: Sequence[tuple[str, float, float]]) -> str:
    """``mean message 64.2k B (elsewhere 1.1k)``: the features that mark a class, as text."""
    return "; ".join(
        f"{name} {inside:.3g} {SPECS[name].unit} (elsewhere {outside:.3g})"
        for name, inside, outside in marks
    )
