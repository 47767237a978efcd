"""Model files of layouts: one JSON document of numbers and names; loading one runs no code."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from autotune.errors import UsageError
from autotune.prediction.layout_examples import LayoutTrainingSet
from autotune.prediction.layout_points import COLUMNS
from autotune.prediction.layout_predictor import LayoutPredictor, LayoutTraining
from autotune.prediction.model_file import (
    About,
    about_model,
    model_data,
    model_text,
    read_about,
)
from autotune.prediction.parsing import mapping, texts
from runner import files
from runner.files.paths import is_file

SCHEMA = "autotune-layout-model-1"
SHIPPED_FILE = "layouts.json"
_TRAIN_HINT = "Train a new one: autotune train DATASET..., with datasets of layouts"


@dataclass(frozen=True, eq=False)
class LayoutModelFile:
    """A predictor of layouts and its origin."""

    predictor: LayoutPredictor
    about: About
    place: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "about": json.loads(json.dumps(dataclasses.asdict(self.about))),
            "columns": list(COLUMNS),
            "predictor": self.predictor.to_json(),
        }


def layout_model_of(
    training: LayoutTraining, data: LayoutTrainingSet, scores: Mapping[str, float]
) -> LayoutModelFile:
    """The model file of a trained predictor of layouts."""
    about = about_model(training.kind, training.options, data, data.hash, scores)
    return LayoutModelFile(training.predictor, about)


def layout_place() -> Path:
    """The file that ``autotune train`` writes for layouts, and that is read first."""
    return files.data("layout-model.json")


def own_layout_model() -> LayoutModelFile | None:
    """The model that the user has trained; None if there is none.  Raises UsageError if it is
    unusable."""
    place = layout_place()
    return read_layout_model(place) if is_file(place) else None


def find_layout_model(place: str | None = None) -> LayoutModelFile:
    """The model in a file; without one the user's own, else the shipped one.

    Raises UsageError if it is missing or unusable.
    """
    if place is not None:
        return read_layout_model(Path(place))
    if (own := own_layout_model()) is not None:
        return own
    resource = resources.files("autotune.prediction") / SHIPPED_FILE
    return _from_text(resource.read_text(encoding="utf-8"), "the shipped model of layouts")


def read_layout_model(path: Path) -> LayoutModelFile:
    """Read and check a model file; raises UsageError with the file and the invalid key."""
    return _from_text(model_text(path), str(path))


def _from_text(content: str, place: str) -> LayoutModelFile:
    data = model_data(content, place, SCHEMA)
    try:
        if texts(data, "columns") != tuple(COLUMNS):
            raise ValueError("columns: written for other words of layouts")
        return LayoutModelFile(
            LayoutPredictor.from_json(mapping(data, "predictor")),
            read_about(mapping(data, "about")),
            place,
        )
    except ValueError as problem:
        raise UsageError(f"{place}: {problem}.\n{_TRAIN_HINT}", code="model.invalid") from None
