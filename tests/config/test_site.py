"""The site: definitions and the results database that an administrator keeps for all users."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from autotune.config.cluster import cluster_file, load_cluster
from autotune.config.figures import known_programs
from autotune.config.find import find_config, list_configs
from autotune.config.site import site_directories, site_store
from autotune.errors import UsageError
from autotune.store.location import locate
from tests.refusals import refused

CLUSTER = 'name = "heap"\ndescription = "{}"\n'


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The site of this test; the user's own directories and the present one are empty."""
    for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    for variable in ("AUTOTUNE_STORE", "XDG_CONFIG_DIRS"):
        monkeypatch.delenv(variable, raising=False)
    directory = tmp_path / "site"
    (directory / "clusters").mkdir(parents=True)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("AUTOTUNE_SITE", str(directory))
    return directory


def write_cluster(directory: Path, description: str) -> Path:
    file = directory / "clusters" / "heap.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(CLUSTER.format(description))
    return file


def test_definitions_of_the_site_are_known_by_name(site: Path) -> None:
    file = write_cluster(site, "site")
    assert cluster_file("heap").path == str(file)
    assert load_cluster("heap").description == "site"
    assert "heap" in {config.name for config in list_configs("clusters")}


def test_the_users_own_come_first_and_the_sites_before_the_shipped(
    site: Path, tmp_path: Path
) -> None:
    write_cluster(site, "site")
    write_cluster(tmp_path / "XDG_CONFIG_HOME" / "autotune", "user")
    assert load_cluster("heap").description == "user"
    write_cluster(Path("configs"), "directory")
    assert load_cluster("heap").description == "directory"
    (site / "clusters" / "local.toml").write_text('name = "local"\ndescription = "site"\n')
    assert load_cluster("local").description == "site"


def test_every_kind_is_read_from_the_site(site: Path) -> None:
    for kind in ("spaces", "apps", "figures", "launchers"):
        (site / kind).mkdir()
        (site / kind / "ours.toml").write_text("")
        assert find_config(kind, "ours").path == str(site / kind / "ours.toml")


def test_figures_are_read_as_they_are_now(site: Path) -> None:
    file = site / "figures" / "ours.toml"
    file.parent.mkdir()
    text = 'program = "{}"\noutput = "^Ours"\n[[figure]]\nmetric = "t = (\\\\S+)"\n'
    before = known_programs()
    file.write_text(text.format("Ours"))
    assert {one.program for one in known_programs()} - {one.program for one in before} == {"Ours"}
    file.write_text(text.format("Mine"))
    assert {one.program for one in known_programs()} - {one.program for one in before} == {"Mine"}
    file.unlink()
    assert known_programs() == before


def test_directories_of_the_desktop_standard(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AUTOTUNE_SITE")
    listed = f"{tmp_path}/missing:relative:{tmp_path}/first:{tmp_path}/second"
    monkeypatch.setenv("XDG_CONFIG_DIRS", listed)
    assert site_directories() == []
    # A process that runs on sees what is made meanwhile.
    for name in ("first", "second"):
        write_cluster(tmp_path / name / "autotune", name)
    assert site_directories() == [tmp_path / name / "autotune" for name in ("first", "second")]
    assert load_cluster("heap").description == "first"


def test_the_store_of_the_site_is_used_unless_a_user_names_one(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (site / "site.toml").write_text('store = "postgresql://db.example/autotune"\n')
    assert locate(None).url.host == "db.example"
    assert locate("mine.db").path == Path("mine.db").absolute()
    monkeypatch.setenv("AUTOTUNE_STORE", "/elsewhere/results.db")
    assert locate(None).path == Path("/elsewhere/results.db")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('store = "postgresql://user:secret@db.example/autotune"', "site.password"),
        ('stores = "x"', "config.invalid"),
        ("store = ", "config.syntax"),
    ],
)
def test_a_wrong_site_file_is_refused(site: Path, text: str, code: str) -> None:
    (site / "site.toml").write_text(text)
    with refused(UsageError, code) as problem:
        site_store()
    assert str(site / "site.toml") in str(problem.value)
    assert "secret" not in str(problem.value)


@pytest.mark.parametrize("variable", ["relative", "/no/such/directory"])
def test_a_site_that_is_no_directory_is_refused(
    site: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv("AUTOTUNE_SITE", variable)
    with refused(UsageError, "site.missing"):
        list_configs("clusters")


def test_a_site_that_others_can_write_is_refused(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.chmod(0o777)
    with refused(UsageError, "site.untrusted"):
        find_config("clusters", "local")
    monkeypatch.delenv("AUTOTUNE_SITE")
    shared = tmp_path / "xdg" / "autotune"
    shared.mkdir(parents=True)
    shared.chmod(0o777)
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(shared.parent))
    with refused(UsageError, "site.untrusted"):
        find_config("clusters", "local")


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to give a directory away")
def test_the_owner_of_the_variables_directory_may_be_anybody(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_cluster(site, "site")
    os.chown(site, 65534, 65534)
    assert load_cluster("heap").description == "site"
    monkeypatch.delenv("AUTOTUNE_SITE")
    write_cluster(tmp_path / "xdg" / "autotune", "site")
    os.chown(tmp_path / "xdg" / "autotune", 65534, 65534)
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "xdg"))
    with refused(UsageError, "site.untrusted"):
        load_cluster("heap")
