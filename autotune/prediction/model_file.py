"""Model files: one JSON document of numbers and names, so that loading a model runs no code."""

from __future__ import annotations

import dataclasses
import errno
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from autotune.errors import UsageError
from autotune.prediction.examples import ExampleSet, TrainingSet, distinct
from autotune.prediction.parsing import mapping, number, settings, text, texts
from autotune.prediction.predictor import Predictor
from autotune.prediction.training import TrainingResult
from autotune.space import Setting
from runner import files
from runner.files.json_text import parse_json
from runner.files.paths import is_file

SCHEMA = "autotune-model-1"
SHIPPED_FILE = "shipped.json"
_LARGEST = 64 << 20
_TRAIN_HINT = "Train a new one: autotune train --from DATASET"


@dataclass(frozen=True)
class About:
    """The origin of a model. ``scores``: the cost of each tried kind (:class:`TrainingResult`)."""

    kind: str
    options: Mapping[str, Any]
    data_hash: str
    sources: tuple[str, ...]
    programs: tuple[str, ...]
    machines: tuple[str, ...]
    mpis: tuple[str, ...]
    versions: Mapping[str, str]
    scores: Mapping[str, float]


@dataclass(frozen=True)
class ModelFile:
    """A predictor, the settings that it may name, and its origin."""

    predictor: Predictor
    settings: tuple[Setting, ...]
    about: About
    place: str = ""

    def to_json(self) -> dict[str, Any]:
        about = dataclasses.asdict(self.about)
        return {
            "schema": SCHEMA,
            "about": json.loads(json.dumps(about)),
            "settings": [s.to_json() for s in self.settings],
            "predictor": self.predictor.to_json(),
        }


def about_model(
    kind: str,
    options: Mapping[str, Any],
    data: ExampleSet[Any],
    data_hash: str,
    scores: Mapping[str, float],
) -> About:
    """Where a model comes from that was trained now with ``data``."""
    return About(
        kind=kind,
        options=dict(options),
        data_hash=data_hash,
        # The last part of the path names the data; the rest holds only on one machine.
        sources=tuple(Path(s).name for s in data.sources),
        programs=data.apps,
        machines=data.machines,
        mpis=data.mpis,
        versions=package_versions(),
        scores=dict(scores),
    )


def model_of(training: TrainingResult, data: TrainingSet, scores: Mapping[str, float]) -> ModelFile:
    """The model file of a trained predictor."""
    about = about_model(training.kind, training.options, data, data.hash, scores)
    return ModelFile(training.predictor, distinct(data.examples), about)


def package_versions() -> dict[str, str]:
    """The versions of the packages with which a model was trained."""
    versions = {}
    for name in ("mpi-autotune", "numpy", "scikit-learn", "scipy"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "unknown"
    return versions


def default_place() -> Path:
    """The file that ``autotune train`` writes and ``autotune predict`` reads first."""
    return files.data("model.json")


def find_model(place: str | None = None) -> ModelFile:
    """The model in a file; without one the user's own model, else the shipped one.

    Raises UsageError if it is missing or unusable.
    """
    if place is not None:
        return load_model(Path(place))
    if is_file(default_place()):
        return load_model(default_place())
    resource = resources.files("autotune.prediction") / SHIPPED_FILE
    if resource.is_file():
        return model_from_text(resource.read_text(encoding="utf-8"), "the shipped model")
    raise UsageError(
        f"no model found: none at {default_place()}, and none is shipped.\n{_TRAIN_HINT}",
        code="model.missing",
    )


def load_model(path: Path) -> ModelFile:
    """Read and check a model file; raises UsageError with the file and the invalid key."""
    return model_from_text(model_text(path), str(path))


def model_text(path: Path) -> str:
    """The text of a model file; raises UsageError if it cannot be read."""
    try:
        content = files.read_user_file(path, _LARGEST)
    except (OSError, UnicodeDecodeError) as problem:
        if getattr(problem, "errno", None) == errno.EFBIG:
            raise UsageError(
                f"{path} is too large to be a model (limit: 64 MiB)", code="model.too_large"
            ) from None
        reason = getattr(problem, "strerror", None) or problem
        raise UsageError(
            f"cannot read the model {path}: {reason}.\n{_TRAIN_HINT}", code="model.unreadable"
        ) from None
    return content


def model_from_text(content: str, place: str) -> ModelFile:
    """A model from the content of a file; ``place`` names it in errors.  Raises UsageError."""
    data = model_data(content, place, SCHEMA)
    try:
        return ModelFile(
            Predictor.from_json(mapping(data, "predictor")),
            settings(data, "settings"),
            read_about(mapping(data, "about")),
            place,
        )
    except ValueError as problem:
        raise UsageError(f"{place}: {problem}.\n{_TRAIN_HINT}", code="model.invalid") from None


def model_data(content: str, place: str, expected: str) -> dict[str, Any]:
    """The JSON object of a model file with the schema ``expected``; raises UsageError."""
    try:
        data = parse_json(content, finite=True)
    except ValueError as problem:
        raise UsageError(
            f"{place} is not a complete JSON file ({problem}): cut off or damaged.\n{_TRAIN_HINT}",
            code="model.damaged",
        ) from None
    if not isinstance(data, dict) or data.get("schema") != expected:
        schema = data.get("schema") if isinstance(data, dict) else None
        raise UsageError(
            f"{place}: schema is {schema!r}, expected {expected!r}: written by another "
            f"version, or not a model.\n{_TRAIN_HINT}",
            code="model.version",
        )
    return data


def read_about(data: Mapping[str, Any]) -> About:
    """The origin of a model from its file; raises ValueError naming the key."""
    scores = mapping(data, "scores")
    versions = mapping(data, "versions")
    return About(
        kind=text(data, "kind"),
        options=mapping(data, "options"),
        data_hash=text(data, "data_hash"),
        sources=texts(data, "sources"),
        programs=texts(data, "programs"),
        machines=texts(data, "machines"),
        mpis=texts(data, "mpis"),
        versions={name: text(versions, name) for name in versions},
        scores={name: number(scores, name, -1e6, 1e6) for name in scores},
    )
