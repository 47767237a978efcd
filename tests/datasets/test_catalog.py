"""Datasets are found like configurations: here, the user's own, the shipped ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autotune.cli import main
from autotune.datasets import load
from autotune.datasets.catalog import is_shipped, own_folder
from autotune.errors import UsageError
from tests.datasets.conftest import make, planted


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current directory."""
    place = tmp_path / "elsewhere"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def test_shipped_ones_from_anywhere(elsewhere: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset", "list"]) == 0
    said = capfd.readouterr().out
    (line,) = [line for line in said.splitlines() if line.startswith("grid-node ")]
    assert "/" not in line, "it is in no folder of the user"
    assert main(["dataset", "list", "--json", "-"]) == 0
    (entry,) = (e for e in json.loads(capfd.readouterr().out) if e["name"] == "grid-node")
    assert (entry["kind"], entry["cells"], entry["shipped"]) == ("grid", 10, True)
    assert main(["importance", "grid-node", "--cell", "is-A"]) == 0
    # What other cells of the dataset vary is not listed.
    varied = load("grid-node").space("is-A").names
    listed = [line.split()[0].rstrip("*") for line in capfd.readouterr().out.splitlines() if line]
    assert set(varied) & set(listed) == set(varied)
    assert not {"workers", "odf", "variant"} & set(listed)
    assert main(["dataset", "describe", "grid-nod"]) == 2
    said = capfd.readouterr().err
    assert "[dataset.unknown]" in said
    assert "grid-node" in said
    assert "explore-testbed" not in said, "only what is alike"
    assert str(own_folder()) in said


def test_the_nearest_is_taken(elsewhere: Path, tmp_path: Path) -> None:
    shipped = load("grid-node").folder
    for place in (own_folder(), Path("datasets")):
        make(place / "grid-node", {"a": planted})
        assert load("grid-node").folder == place / "grid-node" != shipped
    assert load(shipped).folder == shipped
    assert not is_shipped(Path("datasets/grid-node"))


def test_imported_for_oneself_it_is_found_everywhere(
    elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "theirs", {"a": planted})
    assert main(["dataset", "import", str(tmp_path / "theirs"), "--name", "mine", "--user"]) == 0
    assert not list(elsewhere.iterdir())
    monkeypatch.chdir("/")
    assert load("mine").folder == own_folder() / "mine"


def test_a_shipped_one_is_not_changed(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert is_shipped(load("grid-node").folder)
    assert main(["dataset", "trace", "grid-node", "--force"]) == 2
    assert "[dataset.shipped]" in capfd.readouterr().err


def test_a_name_of_none(elsewhere: Path) -> None:
    for name in ("", ".", "nowhere", "/nowhere"):
        with pytest.raises(UsageError):
            load(name)
