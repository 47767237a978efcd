"""A model that is trained from recorded runs: which kinds, its document, its file."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from autotune.document import Document
from autotune.errors import UsageError
from autotune.files import write_text
from autotune.json_types import Number
from autotune.notes import Note
from autotune.prediction import CHOICES, THESIS, TrainingSet, model_of
from autotune.prediction import train as fit
from autotune.prediction.layout_examples import LayoutTrainingSet
from autotune.prediction.layout_kinds import LAYOUT_KINDS
from autotune.prediction.layout_model_file import layout_model_of
from autotune.prediction.layout_predictor import LayoutTraining, train_layouts
from autotune.prediction.program_effects import COMPOSITION, ProgramEffects
from autotune.prediction.training import TrainingResult


class TrainedModel(Document):
    """A model that was trained, and on what."""

    schema_: Literal["autotune-training-1"] = Field(default="autotune-training-1", alias="schema")
    model: str
    """File of the model."""
    kind: str
    options: dict[str, Any]
    cost: dict[str, Number]
    cells: int
    programs: list[str]
    settings: int
    data: str
    notes: list[Note]


def train_model(
    data: TrainingSet, kinds: Sequence[str], place: Path, watch: Callable[[str], None]
) -> tuple[TrainedModel, list[TrainingResult]]:
    """Train each kind and write the best one; returns it, and what was trained, of every kind."""
    results = [fit(kind, data.examples, data.defaults, watch=watch) for kind in kinds]
    best = min(results, key=lambda t: t.cost)
    costs = {t.kind: t.cost for t in results}
    model_file = model_of(best, data, costs)
    write_text(place, json.dumps(model_file.to_json(), allow_nan=False) + "\n")
    document = _model_document(data, place, best.kind, dict(best.options), len(data.examples))
    return document.model_copy(
        update={"cost": costs, "settings": len(model_file.settings) - 1}
    ), results


def train_layout_model(
    data: LayoutTrainingSet, kinds: Sequence[str], place: Path, watch: Callable[[str], None]
) -> tuple[TrainedModel, list[LayoutTraining]]:
    """Train each kind of model over layouts and write the best one; returns it, and what was
    trained, of every kind."""
    results = [train_layouts(kind, data.examples, watch) for kind in kinds]
    model_file = layout_model_of(results, data)
    write_text(place, json.dumps(model_file.to_json(), allow_nan=False) + "\n")
    about = model_file.about
    document = TrainedModel(
        model=str(place),
        kind=about.kind,
        options=dict(about.options),
        cost={t.kind: t.cost for t in results},
        cells=len(data.examples),
        programs=list(data.apps),
        settings=sum(len(e.settings) - 1 for e in data.examples),
        data=data.hash,
        notes=list(data.notes),
    )
    return document, results


def layout_kinds(model: str, preset: str | None) -> tuple[str, ...]:
    """The kinds of models over layouts to train; raises UsageError for one that there is not."""
    if preset is not None or (model != "auto" and model not in LAYOUT_KINDS):
        raise UsageError(
            f"--{'preset' if preset is not None else 'model'} {preset or model}: these datasets "
            f"are of layouts, for which there is --model auto, {', '.join(LAYOUT_KINDS)}",
            code="training.not_applicable",
        )
    return tuple(LAYOUT_KINDS) if model == "auto" else (model,)


def learn_effects(data: TrainingSet, place: Path) -> tuple[TrainedModel, ProgramEffects]:
    """Learn how programs differ from what a calibration composes, and write it.

    Raises UsageError without a calibration.
    """
    calibrated_examples = [one for one in data.examples if one.calibration is not None]
    if not calibrated_examples:
        raise UsageError(
            f"--model {COMPOSITION}: no dataset has a calibration.json; expected one with the file "
            "that autotune calibrate wrote",
            code="training.no_calibration",
        )
    effects = ProgramEffects.fit(calibrated_examples)
    about = {
        "data": data.hash,
        "sources": [Path(source).name for source in data.sources],
        "programs": list(data.apps),
        "machines": list(data.machines),
        "mpis": list(data.mpis),
    }
    effects = dataclasses.replace(effects, about=about)
    write_text(place, json.dumps(effects.to_json(), indent=2) + "\n")
    options = {"situations": effects.to_json()["situations"]}
    return _model_document(data, place, COMPOSITION, options, len(calibrated_examples)), effects


def _model_document(
    data: TrainingSet, place: Path, kind: str, options: dict[str, Any], cells: int
) -> TrainedModel:
    return TrainedModel(
        model=str(place),
        kind=kind,
        options=options,
        cost={},
        cells=cells,
        programs=list(data.apps),
        settings=0,
        data=data.hash,
        notes=list(data.notes),
    )


def model_kinds(model: str, preset: str | None) -> tuple[str, ...]:
    """The kinds of models to train; raises UsageError for a model or preset that is not known."""
    if model != "auto" and model not in CHOICES:
        raise UsageError(
            f"--model {model!r} is not known; expected auto, {', '.join(CHOICES)} or composed",
            code="training.unknown",
        )
    if preset is None:
        return CHOICES if model == "auto" else (model,)
    if preset != "thesis":
        raise UsageError(
            f"--preset {preset!r} is not known; expected thesis", code="training.unknown"
        )
    if model not in THESIS:
        raise UsageError(
            f"--preset thesis needs --model {' or '.join(THESIS)}, not {model}",
            code="training.preset",
        )
    return (THESIS[model],)
