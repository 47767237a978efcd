"""Training sets from datasets on disk."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from autotune.errors import UsageError
from autotune.prediction import TrainingSet, training_set
from autotune.prediction.evaluation import class_wide
from tests.prediction.family import LIMIT, SETTINGS, SIZES
from tests.prediction.recorded import FINGERPRINT, record
from tests.refusals import refused


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("toy") / "toy").folder


@pytest.fixture(scope="module")
def data(toy: Path) -> TrainingSet:
    return training_set([toy])


@pytest.fixture
def copy(toy: Path, tmp_path: Path) -> Path:
    """The dataset, to be damaged."""
    return Path(shutil.copytree(toy, tmp_path / "toy"))


def test_a_dataset_gives_its_cells_with_features(toy: Path, data: TrainingSet) -> None:
    assert len(data.examples) == len(SIZES)
    first = data.examples[0]
    assert first.settings == SETTINGS
    assert [len(r) for r in first.runs[:2]] == [6, 3]
    assert first.opub == pytest.approx(0.741, abs=0.03)
    assert not first.null
    assert first.mpi == "openmpi 5.0.11"
    assert data.machines == (FINGERPRINT,)
    assert data.defaults[LIMIT] == 4096
    assert data.hash == training_set([toy]).hash


def test_an_exploration_is_valued_too(tmp_path: Path) -> None:
    record(tmp_path / "toy", kind="explore")
    assert training_set([tmp_path / "toy"]).examples[0].opub == pytest.approx(0.741, abs=0.05)


def test_cells_without_features_are_left_out_and_named(few: Path) -> None:
    data = training_set([few])
    assert len(data.examples) == 4
    assert len(data.notes) == len(SIZES) - 4
    assert (data.notes[0].code, data.notes[0].data) == ("cell.no_features", {"cell": "toy/app04"})
    assert data.notes[0].words.endswith(f" trace {few}")  # the command


def test_too_few_programs_are_refused(copy: Path) -> None:
    for path in sorted((copy / "features").iterdir())[2:]:
        path.unlink()
    with refused(UsageError, "training.too_few_programs"):
        training_set([copy])


def test_a_damaged_features_file_is_named(copy: Path) -> None:
    path = copy / "features" / "app03.json"
    path.write_text(path.read_text()[:200])
    with pytest.raises(UsageError, match=r"app03\.json"):
        training_set([copy])


def test_features_of_another_launch_are_refused(copy: Path) -> None:
    path = copy / "features" / "app03.json"
    text = path.read_text().replace('"ranks": 4', '"ranks": 8')
    path.write_text(text.replace('"ranks": 4.0', '"ranks": 8.0'))
    with refused(UsageError, "features.other_ranks"):
        training_set([copy])


def test_the_class_wide_setting_slows_nobody(toy: Path, data: TrainingSet) -> None:
    choose = class_wide([toy])
    assert choose is not None
    near = [e for e in data.examples if e.key in ("app00", "app01", "app02")]
    assert choose(near).get(LIMIT) == 512
    assert choose(data.examples).get("bind_to") != "core"
