"""The commands as a user meets them: train, predict, evaluate predict."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autotune.anova.classwide import BEST_SINGLE
from autotune.prediction import find_model, warm_start_settings
from autotune.space import load_space
from autotune.store import Store
from autotune.store.keys import AppInfo
from runner.errors import RunnerError
from runner.mpi.discover import find_library
from runner.mpi.library import Library
from runner.trace import load_features
from tests.cli.conftest import Cli
from tests.contract.store_samples import key
from tests.mpis import built, library_named, put_on_path
from tests.prediction.conftest import Recorded
from tests.prediction.family import LIMIT, traced


@pytest.fixture
def openmpi() -> str:
    try:
        library = find_library("openmpi")
    except RunnerError as problem:
        pytest.skip(f"needs Open MPI: {problem}")
    return library.version


def predicted(cli: Cli, *words: str | Path, code: int = 0) -> dict:  # type: ignore[type-arg]
    outcome = cli("predict", *words, "--json", "-")
    assert outcome.code == code, outcome.text
    return json.loads(outcome.out)  # type: ignore[no-any-return]


@pytest.mark.mpi
def test_a_prediction_with_what_speaks_for_it(cli: Cli, recorded: Recorded, openmpi: str) -> None:
    found = predicted(cli, recorded.features, "--model", recorded.model)
    assert found["setting"][LIMIT] == 512
    low, high = found["gain_interval95"]
    assert low < found["expected_gain"] < high
    assert 0.25 < found["expected_gain"] < 0.45
    assert [n["cell"] for n in found["neighbours"]] == ["app01", "app02", "app00"]
    assert found["foreign"][0]["code"] == "model.other_machine"
    assert found["params_file"] is None


@pytest.mark.mpi
def test_a_far_program_is_called_far_in_words(cli: Cli, recorded: Recorded, openmpi: str) -> None:
    far = recorded.home.parent / "far.json"
    traced(1e9, ranks=4000).save(far)
    text = cli("predict", far, "--model", recorded.model).out
    assert predicted(cli, far, "--model", recorded.model)["setting"] == {}
    assert "note [model.far]: " in text
    assert max(len(line) for line in text.splitlines()) <= 80


@pytest.mark.mpi
def test_elsewhere_no_file_is_written_without_insisting(
    cli: Cli, recorded: Recorded, openmpi: str
) -> None:
    place = recorded.home.parent / "p.conf"
    words = ("predict", recorded.features, "--model", recorded.model, "--params-file", place)
    outcome = cli(*words)
    assert outcome.code == 1
    assert "--unproven" in outcome.err
    assert "--check" in outcome.err
    assert not place.exists()
    assert cli(*words, "--unproven").code == 0
    assert f"--mca {LIMIT} 512" in place.read_text().splitlines()
    assert "NOT PROVEN" in place.read_text()


@pytest.mark.mpi
def test_at_home_a_file_is_written(cli: Cli, native: Recorded, openmpi: str) -> None:
    native.model.write_text(native.model.read_text().replace("5.0.11", openmpi))
    native.features.write_text(native.features.read_text().replace("5.0.11", openmpi))
    place = native.home.parent / "p.conf"
    outcome = cli("predict", native.features, "--model", native.model, "--params-file", place)
    assert outcome.code == 0, outcome.text
    assert "note:" not in outcome.out
    assert "NOT PROVEN" in place.read_text()


@pytest.mark.mpi
@pytest.mark.parametrize("also_unguarded", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_check_that_is_too_short_proves_nothing_and_writes_nothing(
    cli: Cli,
    recorded: Recorded,
    open_mpi: Library,
    quiet: None,
    monkeypatch: pytest.MonkeyPatch,
    also_unguarded: bool,
) -> None:
    """Without the guard it proves nothing either, and its pairs are none of those."""
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    data = json.loads(recorded.features.read_text())
    place = recorded.home.parent
    data |= {"argv": [str(built(open_mpi, place))], "cwd": str(place)}
    recorded.features.write_text(json.dumps(data))
    place = recorded.home.parent / "p.conf"
    told = ["--check", "--run-recorded", "--runs", "3", "--params-file", place]
    told += ["--store", f"sqlite:///{recorded.home.parent / 'r.db'}"]
    found = predicted(cli, recorded.features, "--model", recorded.model, *told)
    assert found["check"]["outcome"] == "continue"
    assert found["check"]["runs"] == 2
    assert not place.exists()
    if also_unguarded:
        found = predicted(cli, recorded.features, "--model", recorded.model, *told, "--no-guard")
        assert (found["check"]["outcome"], found["check"]["guard"]) == ("unguarded", False)
        assert found["check"]["runs"] == 2
        assert not place.exists()


def test_training_writes_what_predict_finds(cli: Cli, recorded: Recorded) -> None:
    outcome = cli("train", recorded.dataset, "--model", "knn", "--json", "-")
    assert outcome.code == 0, outcome.text
    told = json.loads(outcome.out)
    assert told["kind"] == "knn"
    assert told["cost"]["knn"] < -0.2
    assert Path(told["model"]).parent.parent == recorded.home
    assert cli("predict", recorded.features, "--mpi", "none-such").code == 2
    assert "note [model.other_machine]: " in cli("predict", recorded.features).out


def test_evaluation_as_table_picture_and_json(cli: Cli, few: Path, work: Path) -> None:
    picture, data = work / "e.svg", work / "e.json"
    outcome = cli(
        *("evaluate", "predict", few, "--model", "knn-thesis"),
        *("--picture", picture, "--json", data),
    )
    assert outcome.code == 0, outcome.text
    methods = [row["method"] for row in json.loads(data.read_text())["rows"]]
    assert methods == ["default", "random", BEST_SINGLE, "class-wide", "knn-thesis"]
    assert all(name in outcome.out for name in methods)
    assert max(len(line) for line in outcome.out.splitlines()) <= 80
    assert picture.read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("train",), "training.missing", "--from"),
        (("train", "--from", "nowhere"), "dataset.unknown", "'nowhere'"),
        (("train", "--from", "x", "--model", "forest"), "training.unknown", "exposure"),
        (
            ("train", "--from", "x", "--model", "exposure", "--preset", "thesis"),
            "training.preset",
            "--model",
        ),
        (("train", "--from", "x", "--preset", "best"), "training.unknown", "thesis"),
        (("evaluate", "predict"), "evaluation.missing", "--from"),
        (
            ("evaluate", "predict", "--from", "x", "--leave-out", "y"),
            "evaluation.unknown",
            "machine",
        ),
        (("evaluate", "predict", "--from", "x", "--model", "y"), "evaluation.unknown", "exposure"),
        (("predict", "FEATURES", "--", "ls"), "prediction.options", "--check"),
        (("predict", "FEATURES", "--run-recorded"), "prediction.options", "--check"),
        (
            ("predict", "FEATURES", "--check", "--run-recorded", "--", "ls"),
            "prediction.options",
            "--run-recorded",
        ),
        (("predict", "FEATURES", "--params-file", "no/such/place"), "file.unwritable", "no/such"),
        (("predict", "none.json"), "features.unreadable", "none.json"),
    ],
)
def test_what_is_wrong_is_said_once(
    cli: Cli, recorded: Recorded, words: tuple[str, ...], code: str, told: str
) -> None:
    given = [recorded.features if w == "FEATURES" else w for w in words]
    if words[0] == "predict":
        given += ["--model", recorded.model] if "--" not in given else []
    if "--" in given:
        given[2:2] = ["--model", recorded.model]
    outcome = cli(*given)
    assert outcome.code == 2, outcome.text
    assert f"[{code}]" in outcome.err
    assert told in outcome.err


def test_without_a_model_it_says_how_to_get_one(
    cli: Cli, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autotune.prediction.model_file.SHIPPED_FILE", "none.json")
    outcome = cli("predict", recorded.features)
    assert outcome.code == 2
    assert "[model.missing]" in outcome.err
    assert " train " in outcome.err


@pytest.mark.parametrize(
    ("change", "code", "named"),
    [
        (
            lambda d: d | {"schema": "autotune-features-9"},
            "features.version",
            "autotune-features-9",
        ),
        (lambda d: d | {"more": 1}, "features.damaged", "more"),
        (lambda d: {k: v for k, v in d.items() if k != "mpi"}, "features.damaged", "mpi"),
        (lambda d: d | {"features": d["features"] | {"p2p_bytes": -1}}, "features.damaged", "-1"),
        (
            lambda d: d | {"features": d["features"] | {"p2p_bytes": float("nan")}},
            "features.damaged",
            "nan",
        ),
    ],
)
def test_a_wrong_features_file_is_wrong_input(
    cli: Cli, recorded: Recorded, change: Callable[[Any], Any], code: str, named: str
) -> None:
    data = json.loads(recorded.features.read_text())
    recorded.features.write_text(json.dumps(change(data)))
    outcome = cli("predict", recorded.features, "--model", recorded.model)
    assert outcome.code == 2
    assert f"[{code}]" in outcome.err
    assert named in outcome.err


@pytest.mark.mpi
def test_features_of_another_mpi_are_said_in_one_line(
    cli: Cli, recorded: Recorded, openmpi: str
) -> None:
    data = json.loads(recorded.features.read_text())
    recorded.features.write_text(json.dumps(data | {"mpi": {"name": "mpich", "version": "4.2"}}))
    found = predicted(cli, recorded.features, "--model", recorded.model)
    assert any(note["data"].get("traced") == "mpich 4.2" for note in found["foreign"])


@pytest.mark.mpi
def test_names_are_those_of_the_mpi_that_was_traced(
    cli: Cli, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """btl_sm_* of Open MPI 5 is btl_vader_* in 4.1, which is asked where it is installed."""
    library = library_named("openmpi-4.1")
    put_on_path(library, monkeypatch)
    data = json.loads(recorded.features.read_text())
    traced_with = {"mpi": {"name": library.family, "version": library.version}}
    recorded.features.write_text(json.dumps(data | traced_with))
    new = LIMIT.replace("_sm_", "_vader_")
    found = predicted(cli, recorded.features, "--model", recorded.model)
    assert found["setting"][new] == 512
    assert LIMIT not in found["setting"]
    assert set(found["best_scored"]) == set(found["setting"])
    five = library_named("openmpi-5").launcher
    found = predicted(cli, recorded.features, "--model", recorded.model, "--mpi", five)
    assert found["setting"][LIMIT] == 512
    # What a search tries first has the names of its space, and the same scores.
    features, model = load_features(recorded.features), find_model(str(recorded.model))
    space = load_space("openmpi", library=library, facts={"ranks": 4, "cores": 4, "nodes": 1})
    assert warm_start_settings(features, space, model, "openmpi")[0].get(new) == 512


def test_a_traced_command_line_is_found_among_the_studies(
    cli: Cli, recorded: Recorded, work: Path
) -> None:
    """A program without a name has the words of its command line, and the MPI of its trace."""
    app = AppInfo(name="solve", program="/opt/solve", program_hash="1", argv=("-n", "7"))
    study = dataclasses.replace(key(), app=app, ranks=4, space_name="gone")
    features = dataclasses.replace(
        traced(150.0), app=None, input=None, argv=("/opt/solve", "-n", "7"),
        mpi_name=study.mpi.family, mpi_version=study.mpi.version,
    )  # fmt: skip
    features.save(work / "f.json")
    with Store.open("r.db") as store:
        store.study(study)
    words = ("train", "--store", "r.db", "--features", "f.json", "-o", "m.json")
    found = cli(*words)
    assert found.code == 2
    # The study is found; it is its space that is not known any more.
    assert "[training.no_search]" in found.err
    assert "'gone'" in found.err
    dataclasses.replace(features, argv=("/opt/solve", "-n", "8")).save(work / "f.json")
    other = cli(*words)
    assert other.code == 2
    assert "[training.no_search]" in other.err
    assert "(/opt/solve -n 8 " in other.err
    assert "gone" not in other.err
