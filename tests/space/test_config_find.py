"""Finding configurations: the user's own before the shipped ones, and what is told otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.config.find import find_config, list_configs
from autotune.errors import UsageError
from runner import files
from runner.runtimes.intranode.config import CAB
from runner.testbed import state
from tests.refusals import refused


def _put(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The folder of the current directory and the one of the user."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    return tmp_path / "configs" / "spaces", tmp_path / "xdg" / "autotune" / "spaces"


def test_the_nearest_place_wins(places: tuple[Path, Path]) -> None:
    here, user = places
    assert find_config("spaces", "openmpi").text.startswith("description")
    _put(user, "openmpi.toml", "user")
    assert find_config("spaces", "openmpi").text == "user"
    _put(here, "openmpi.toml", "here")
    assert find_config("spaces", "openmpi").text == "here"
    assert find_config("spaces", "openmpi").name == "openmpi"


def test_listing_has_every_name_once_with_the_file_that_counts(places: tuple[Path, Path]) -> None:
    here, user = places
    _put(user, "mine.toml", "user")
    _put(here, "mine.toml", "here")
    _put(here, "notes.txt", "no configuration")
    found = {file.name: file for file in list_configs("spaces")}
    assert {"mine", "openmpi", "null"} <= set(found)
    assert "notes" not in found
    assert found["mine"].text == "here"
    assert list(found) == sorted(found)


def test_a_path_is_a_path(tmp_path: Path) -> None:
    _put(tmp_path, "x.toml", "text")
    file = find_config("spaces", str(tmp_path / "x.toml"))
    assert (file.name, file.text) == ("x", "text")


def test_without_xdg_the_home_directory_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    _put(tmp_path / "home" / ".config" / "autotune" / "apps", "a.toml", "text")
    assert find_config("apps", "a").text == "text"


def test_what_is_not_there_is_told_with_near_names_and_places(places: tuple[Path, Path]) -> None:
    with refused(UsageError, "config.missing") as told:
        find_config("spaces", "opnmpi")
    assert str(places[1]) in str(told.value)
    assert "openmpi" in str(told.value)
    assert "null" not in str(told.value)
    with refused(UsageError, "config.missing") as told:
        find_config("spaces", "qqq")
    assert all(file.name in str(told.value) for file in list_configs("spaces"))
    with refused(UsageError, "config.missing"):
        find_config("spaces", "")
    with refused(UsageError, "config.unreadable") as told:
        find_config("spaces", "./none.toml")
    assert "none.toml" in str(told.value)
    with refused(UsageError, "config.missing") as told:
        find_config("widgets", "x")
    assert "widget" in str(told.value)


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe\x00")
    with refused(UsageError, "config.unreadable"):
        find_config("spaces", str(tmp_path / "x.toml"))


def test_a_relative_place_of_the_user_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The specification says so; else the current directory would decide whom workers trust."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    _put(tmp_path / "mine" / "autotune" / "spaces", "openmpi.toml", "not this one")
    (tmp_path / "mine" / "autotune-testbed").mkdir()
    for variable in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(variable, "mine")
    assert find_config("spaces", "openmpi").text.startswith("description")
    places = [files.config(), files.cache(), files.data(), state.root(), CAB.usual_place()]
    assert all(place.is_relative_to(tmp_path / "home") for place in places)
