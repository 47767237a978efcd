"""Datasets with a calibration: what is learned from them, evaluated, and checked at import."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from autotune.datasets import Card, Cell, RecordedMachine, create_dataset, load, write_shard
from autotune.datasets.exchange import check_dataset
from autotune.errors import UsageError
from autotune.prediction import TrainingSet, evaluate, training_set
from autotune.prediction.composition import Composition
from autotune.prediction.evaluation import kept_for
from autotune.prediction.program_effects import COMPOSITION, ProgramEffects
from autotune.space import DEFAULT
from tests.calibration.machines import SPACE, calibration
from tests.cli.conftest import Cli
from tests.prediction.recorded import FINGERPRINT, run_row
from tests.prediction.test_composition import CHAIN, LIMIT, often_table, program, row
from tests.refusals import refused

SETTINGS = [DEFAULT, CHAIN, LIMIT]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten programs that broadcast more or less, and answer as composed."""
    folder = tmp_path_factory.mktemp("calibrated") / "programs"
    known = calibration(often_table())
    keys = [f"app{n}" for n in range(10)]
    card = Card(
        schema=1,
        name=folder.name,
        kind="explore",
        machine=RecordedMachine(fingerprint=FINGERPRINT),
        mpi="openmpi 5.0.11",
        cells=tuple(Cell(key=key, app=key, ranks=2, blocks=1) for key in keys),
    )
    create_dataset(folder, card, dict.fromkeys(keys, SPACE), {"all": SETTINGS})
    (folder / "features").mkdir()
    (folder / "calibration.json").write_text(json.dumps(known.to_json()))
    for number, key in enumerate(keys):
        features = program(row("bcast", 65536, 8000.0 * number, 0.1 * number))
        found = Composition.of(features, known)
        assert found is not None
        ratios = [math.exp(found.log(setting).log) for setting in SETTINGS]
        order = [0, 1, 2] * 4
        write_shard(folder, [run_row(key, at, i, ratios[i]) for at, i in enumerate(order)])
        features.save(folder / "features" / f"{key}.json")
    return folder


@pytest.fixture(scope="module")
def data(dataset: Path) -> TrainingSet:
    return training_set([dataset])


def test_effects_of_programs_are_learned_from_it(data: TrainingSet) -> None:
    examples = data.examples
    assert all(one.calibration is not None for one in examples)
    effects = ProgramEffects.fit(examples).of(examples[0].features)
    assert effects.programs == 10
    assert effects.slope == pytest.approx(1.0, abs=0.05)


def test_the_composed_method_is_evaluated(data: TrainingSet) -> None:
    found = evaluate(data, "program", (COMPOSITION, "knn-thesis"))
    rows = {one.method: one for one in found.rows}
    composed = rows[COMPOSITION]
    assert composed.slower == composed.false == 0
    assert composed.share is not None
    assert composed.share > 0.8
    held, of = composed.interval_hits
    assert held == of >= 8
    assert rows["default"].interval_hits == (0, 0)
    told = composed.document.to_json()
    assert told["intervals_hold"] == {"programs": held, "of": of}
    assert 0 <= told["slower_as_stated"] < 0.5


def test_program_and_machine_are_both_left_out(data: TrainingSet) -> None:
    examples = data.examples
    assert kept_for(examples, "program+machine", (examples[0].app, FINGERPRINT)) == []
    assert len(kept_for(examples, "program", examples[0].app)) == 9


def test_the_commands_learn_and_evaluate(cli: Cli, dataset: Path) -> None:
    words = ("train", "--from", dataset, "--model", "composed")
    made = cli(*words, "-o", "c.json", "--json", "t.json")
    assert made.code == 0, made.text
    told = json.loads(Path("t.json").read_text())
    assert (told["cells"], len(told["programs"])) == (10, 10)
    assert "10 cells " in made.out
    found = cli("evaluate", "predict", "--from", dataset, "--model", "composed", "--json", "e.json")
    assert found.code == 0, found.text
    assert "covered" in found.out


def test_without_a_calibration_it_says_what_is_missing(cli: Cli, few: Path) -> None:
    for words in (("train", "-o", "c.json"), ("evaluate", "predict")):
        refused = cli(*words, "--from", few, "--model", "composed")
        assert refused.code == 2
        assert "[training.no_calibration]" in refused.err
        assert "calibration.json" in refused.err


def test_a_changed_calibration_is_refused(dataset: Path, tmp_path: Path) -> None:
    check_dataset(load(dataset))
    copy = tmp_path / "programs"
    copy.mkdir()
    for path in sorted(dataset.rglob("*")):
        place = copy / path.relative_to(dataset)
        place.mkdir(exist_ok=True) if path.is_dir() else place.write_bytes(path.read_bytes())
    path = copy / "calibration.json"
    path.write_text(path.read_text().replace('"launches": ', '"launches": 1'))
    with refused(UsageError, "dataset.edited"):
        check_dataset(load(copy))
    with refused(UsageError, "artifact.edited"):
        training_set([copy])
    path.write_text("{")
    with refused(UsageError, "dataset.calibration"):
        check_dataset(load(copy))
