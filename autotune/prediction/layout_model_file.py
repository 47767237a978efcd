"""Model files of layouts: one JSON document of numbers and names; loading one runs no code."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from autotune.errors import UsageError
from autotune.prediction.layout_composition import LayoutComposition
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
    """A predictor of layouts and its origin.

    ``traced``: the predictor for programs whose flat run was traced, where it was the better one on
    programs left out; None: ``predictor`` is for all programs.
    """

    predictor: LayoutPredictor
    about: About
    place: str = ""
    traced: LayoutPredictor | None = None

    def best(self, is_traced: bool) -> LayoutPredictor:
        """The predictor for a program."""
        return self.traced if is_traced and self.traced is not None else self.predictor

    @property
    def uses_traces(self) -> bool:
        """True if a trace of the program changes the answer."""
        return self.traced is not None or isinstance(self.predictor.scorer, LayoutComposition)

    def to_json(self) -> dict[str, Any]:
        traced = {} if self.traced is None else {"traced": self.traced.to_json()}
        return traced | {
            "schema": SCHEMA,
            "about": json.loads(json.dumps(dataclasses.asdict(self.about))),
            "columns": list(COLUMNS),
            "predictor": self.predictor.to_json(),
        }


def layout_model_of(
    trainings: Sequence[LayoutTraining], data: LayoutTrainingSet
) -> LayoutModelFile:
    """The model file of what was trained: the kind with the least cost on programs left out.

    If that is the composed one, it is for traced programs, and the best other kind for the rest.
    """
    scores = {training.kind: training.cost for training in trainings}
    order = sorted(trainings, key=lambda training: training.cost)
    others = [one for one in order if one.kind != LayoutComposition.kind] or order
    best = others[0]
    about = about_model(best.kind, best.options, data, data.hash, scores)
    traced = order[0].predictor if order[0] is not best else None
    return LayoutModelFile(best.predictor, about, traced=traced)


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
            LayoutPredictor.from_json(mapping(data, "traced")) if "traced" in data else None,
        )
    except ValueError as problem:
        raise UsageError(f"{place}: {problem}.\n{_TRAIN_HINT}", code="model.invalid") from None
