"""What former versions wrote is read by this one, and documents keep their keys.

docs/reference/formats.md has the promise; ``tests.formats.make`` made the files.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from autotune.anova.classwide_result import RESULTS
from autotune.calibration.response import CALIBRATIONS
from autotune.collectives.algorithm_tables import TABLES
from autotune.config.app import load_app
from autotune.config.cluster import load_cluster
from autotune.config.figures import known_programs
from autotune.datasets.dataset import load
from autotune.datasets.plan import load_plan
from autotune.prediction import load_model
from autotune.publish.formats import find
from autotune.publish.install import SIDE, load_text, side_of
from autotune.publish.published_text import edit
from autotune.publish.verify import published_header
from autotune.schemas import SCHEMAS, load_schema
from autotune.space import load_space
from autotune.space.named_space import load_space_file
from autotune.store import Store
from autotune.store.export import export_study, runs_frame
from runner.trace.document import load_features
from tests.case_table import case_table
from tests.cli.conftest import Cli
from tests.cli.conftest import cli as cli
from tests.documents import wrong
from tests.formats.keys import broken_promises, lost_keys
from tests.mpis import library_named

HERE = Path(__file__).parent
VERSIONS = sorted(folder for folder in HERE.iterdir() if folder.name[0].isdigit())
DOCUMENTS = [path for folder in VERSIONS for path in sorted((folder / "documents").glob("*.json"))]
PUBLISHED = [
    path
    for folder in VERSIONS
    for path in sorted((folder / "published").iterdir())
    if not path.name.endswith(SIDE)
]
READING = (
    ("studies", "studies"),
    ("show 1", "show"),
    ("status 1", "status"),
    ("report 1 -o page.html", "report"),
    ("importance study:1", "importance"),
    ("dataset describe programs", "dataset-describe"),
    ("predict features.json --model knn.json", "predict"),
    ("cluster show site", "cluster-show"),
    ("space show site", "space-show"),
    ("space check site --mpi openmpi-5", "space-check"),
    ("apps exchange", "apps"),
    ("explore programs --dry-run", "explore-dry-run"),
    ("publish --formats", "publish-formats"),
    ("publish --from study:7 --force --format tune --dry-run", "publish-dry-run"),
    ("show 999", "error"),
)
"""Commands that read the files, with their documents of that day."""


def schema_of(path: Path) -> str:
    """The schema of a document: ``run`` of ``run-failed.json``."""
    return path.stem.removesuffix("-failed")


@pytest.fixture(params=VERSIONS, ids=lambda folder: str(folder.name))
def version(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


@pytest.fixture
def site(version: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of that version as a user has them: in the working directory and the home."""
    place = tmp_path / "site"
    shutil.copytree(version, place)
    monkeypatch.chdir(place)
    home = place / "home"
    home.mkdir()
    (place / "data").rename(home / "autotune")
    monkeypatch.setenv("XDG_DATA_HOME", str(home))
    monkeypatch.setenv("AUTOTUNE_STORE", str(place / "results.sqlite"))
    return place


def read_json(path: Path) -> Any:
    return json.loads(path.read_text())


# documents


def test_each_schema_has_what_it_had(version: Path) -> None:
    former = read_json(version / "schemas.json")
    assert set(former) <= set(SCHEMAS)
    for name, schema in former.items():
        assert broken_promises(schema, load_schema(name)) == [], name


def test_each_document_is_one_of_today() -> None:
    """Schemas are closed, so a key that today's lacks would be one too many."""
    assert DOCUMENTS
    for path in DOCUMENTS:
        assert wrong(read_json(path), schema_of(path)) == [], path


def test_all_schemas_but_that_of_a_race_have_a_document(version: Path) -> None:
    documents = {schema_of(path) for path in (version / "documents").glob("*.json")}
    assert set(read_json(version / "schemas.json")) - documents == {"proving-elsewhere"}


@pytest.mark.parametrize(("line", "document"), READING, ids=lambda word: str(word))
def test_what_a_command_writes_has_the_former_keys(
    cli: Cli, site: Path, line: str, document: str
) -> None:
    outcome = cli(*line.split(), "--json", "anew.json")
    former = read_json(site / "documents" / f"{document}.json")
    assert (outcome.code, outcome.err) == (2 if document == "error" else 0, outcome.err)
    assert list(lost_keys(former, read_json(site / "anew.json"))) == []


# files


def test_the_database_is_read_exported_and_continued(site: Path) -> None:
    with Store.open(site / "results.sqlite") as store:
        listed = store.studies()
        assert store.damage.notes == []
        finished, unfinished = store.get_study(1), store.find_study(f"{len(listed)}")
        assert finished.result == read_json(site / "documents" / "search.json")
        states = {row.record.state for row in store.runs(finished.id)}
        assert {"ok", "failed"} <= states
        store.recover(unfinished.id, gone_hosts=["node1"])
        trial = store.add_trial(unfinished.id, {"btl_sm_eager_limit": 16384}, "anew")
        store.finish_trial(trial.id, "ok", 1.0)
        assert store.trials(unfinished.id)[-1].state == "ok"
        for ending in ("csv", "parquet"):
            export_study(store, 1, ending, site / f"anew.{ending}")


def test_the_columns_of_exports_stay(site: Path) -> None:
    with Store.open(site / "results.sqlite") as store:
        table = runs_frame(store, 1)
    for former in (pd.read_csv(site / "export.csv"), pd.read_parquet(site / "export.parquet")):
        assert set(former.columns) <= set(table.columns)


def test_datasets_and_models_are_read(site: Path) -> None:
    for name in ("programs", "exported"):
        dataset = load(site / name)
        assert all(len(dataset.runs(cell)) for cell in dataset.cells)
    former = read_json(site / "features.json")
    assert load_features(site / "features.json").to_json() == former
    for name in ("knn.json", "mlp.json"):
        assert load_model(site / name).to_json() == read_json(site / name)


def test_results_are_found_by_their_ids(site: Path) -> None:
    for store, document in (
        (CALIBRATIONS, "calibrate"), (TABLES, "collectives"), (RESULTS, "classwide"),
    ):  # fmt: skip
        (path,) = store.folder.glob("*.json")
        assert store.read(path).to_json() == read_json(site / "documents" / f"{document}.json")


def test_configuration_files_are_read(site: Path) -> None:
    app = load_app("exchange")
    assert set(app.inputs) == {"short", "long"}
    assert load_cluster("site").name == "site"
    assert load_plan("programs").cells
    assert load_space_file(site / "discovered.toml").parameters
    assert "Halo" in {known.program for known in known_programs()}
    assert len(load_space("site", library_named("openmpi-5")).parameters) == 3


@case_table("path", PUBLISHED)
def test_a_published_file_is_what_would_be_written_today(path: Path, tmp_path: Path) -> None:
    """So it is verified, renewed and removed, and a hand that changed it is seen."""
    for file in (path, side_of(path)):
        if file.is_file():
            shutil.copy(file, tmp_path)
    copy = tmp_path / path.name
    text = load_text(copy)
    assert text is not None
    header = published_header(copy)
    assert find(header.format).name in path.name
    assert edit(copy, text, header) is None
    changed = dataclasses.replace(text, main=text.main + "x\n")
    assert edit(copy, changed, header) is not None or find(header.format).merges
