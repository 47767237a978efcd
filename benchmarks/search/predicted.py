"""Warm starts from one traced run of a program and a model of the *other* programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from autotune.datasets import Cell, Dataset
from autotune.prediction import (
    ModelFile,
    model_of,
    stored_features,
    train,
    training_set,
    warm_start_settings,
)
from autotune.space import Setting, Space
from benchmarks.search.landscapes import Foresee

KIND = "exposure"


def predicted_settings(sources: Sequence[str]) -> Foresee:
    """Warm starts as ``autotune search --features`` makes them, without runs of the program itself.

    A cell that was not traced has none. Raises UsageError if there are too few recordings.
    """
    data = training_set(sources)

    @cache
    def without(app: str) -> ModelFile:
        others = replace(data, examples=tuple(e for e in data.examples if e.app != app))
        return model_of(train(KIND, others.examples, others.defaults), others, {})

    def foresee(dataset: Dataset, cell: Cell, space: Space) -> tuple[Setting, ...]:
        features = stored_features(dataset, cell)
        return (
            ()
            if features is None
            else tuple(warm_start_settings(features, space, without(cell.app), "openmpi"))
        )

    return foresee
