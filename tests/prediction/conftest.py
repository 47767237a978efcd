"""A recorded family of programs, a model of it, and features files, for the commands."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from autotune.prediction import model_of, train, training_set
from runner.machine import describe_machine
from tests.cli.conftest import cli as cli
from tests.prediction.family import traced
from tests.prediction.recorded import record


@dataclass(frozen=True)
class Recorded:
    dataset: Path
    model: Path
    features: Path
    home: Path


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("recorded") / "toy"
    record(folder)
    data = training_set([folder])
    trained = train("knn", data.examples)
    return folder, json.dumps(model_of(trained, data, {}).to_json())


@pytest.fixture(scope="session")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of which four programs have features."""
    return record(tmp_path_factory.mktemp("few") / "toy", traced_cells=4).folder


@pytest.fixture
def recorded(made: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    """The model trained on another machine; nothing in the user's own place yet."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    (tmp_path / "model.json").write_text(made[1])
    traced(150.0).save(tmp_path / "f.json")
    return Recorded(made[0], tmp_path / "model.json", tmp_path / "f.json", tmp_path / "home")


@pytest.fixture
def native(recorded: Recorded) -> Recorded:
    """The same, as if model and features came from this machine."""
    here = describe_machine().fingerprint
    for path in (recorded.model, recorded.features):
        path.write_text(path.read_text().replace("f" * 16, here))
    return recorded
