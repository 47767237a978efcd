"""The files beside a published file, in a folder that others may write: no link is followed.

Publishing and undoing must neither read a secret into a file of others nor write over a file that
a link leads to.
"""

from __future__ import annotations

import datetime
import os
import stat
from pathlib import Path

import pytest

from autotune.errors import AutotuneError, UsageError, WorkError
from autotune.publish.formats import find
from autotune.publish.install import (
    Text,
    backup_of,
    install,
    load_text,
    put,
    real_path,
    save_edits,
    side_of,
)
from autotune.publish.undo import remove
from tests.publish.test_install import OWN, files, publish
from tests.runner.others import GROUP, OTHER, as_other, needs_root, shared

__all__ = ["shared"]

ME, THIRD = 1234, 4000
"""Users whose files root makes, to be looked at as :data:`ME`."""
SECRET = "a private key\n"
SHELL = "alias ls='ls -l'\n"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file that only this user reads, outside of the folder with the published file."""
    path = tmp_path / "home" / "id_rsa"
    path.parent.mkdir()
    path.write_text(SECRET)
    path.chmod(0o600)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder that others may write."""
    place = tmp_path / "shared"
    place.mkdir()
    return place


def with_backup(path: Path, name: str = "openmpi-user") -> None:
    """A published file with a backup of what was there before."""
    path.write_text(OWN if name == "openmpi-user" else "--mca mine 1\n")
    publish(path, name, force=True)
    assert backup_of(path).is_file()


@pytest.mark.parametrize("name", ["openmpi-user", "tune"])
def test_undoing_reads_no_secret_through_a_link(folder: Path, secret: Path, name: str) -> None:
    path = folder / "site.conf"
    with_backup(path, name)
    if name == "openmpi-user":  # Nothing else is in the file: all of it is restored.
        path.write_text(path.read_text().replace(OWN, ""))
    backup_of(path).unlink()
    backup_of(path).symlink_to(secret)
    was = files(folder)
    with pytest.raises(WorkError) as refused:
        remove(path)
    assert refused.value.code == "published.undo_failed"
    assert files(folder) == was
    assert SECRET not in path.read_text()
    assert secret.read_text() == SECRET


def test_publishing_writes_over_nothing_through_a_link(folder: Path, secret: Path) -> None:
    path = folder / "site.conf"
    path.write_text(SHELL)
    backup_of(path).symlink_to(secret)
    with pytest.raises(WorkError) as refused:
        publish(path)
    assert refused.value.code == "published.unwritable"
    assert secret.read_text() == SECRET
    assert path.read_text() == SHELL


def test_a_header_that_is_a_link_is_neither_read_nor_replaced(folder: Path, secret: Path) -> None:
    path = folder / "table.json"
    publish(path, "rules-v3")
    side_of(path).unlink()
    side_of(path).symlink_to(secret)
    for attempt in (
        lambda: load_text(path),
        lambda: remove(path, force=True),
        lambda: publish(path, "rules-v3", force=True),
    ):
        with pytest.raises(UsageError) as refused:
            attempt()
        assert refused.value.code == "published.no_file"
    assert secret.read_text() == SECRET


def test_the_copy_of_an_edited_file_is_always_new(folder: Path, secret: Path) -> None:
    """Its name has the time, which everybody knows beforehand."""
    path = folder / "site.conf"
    path.write_text(OWN)
    now = datetime.datetime.now(datetime.UTC)
    for later in range(60):
        moment = now + datetime.timedelta(seconds=later)
        path.with_name(f"{path.name}.edited-{moment:%Y%m%d-%H%M%S}").symlink_to(secret)
    with pytest.raises(WorkError):
        save_edits(path)
    assert secret.read_text() == SECRET


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o755])
def test_a_restored_file_has_the_rights_of_its_backup(folder: Path, mode: int) -> None:
    path = folder / "site.conf"
    path.write_text(OWN)
    path.chmod(mode)
    publish(path)
    assert stat.S_IMODE(backup_of(path).stat().st_mode) == mode
    path.chmod(0o644)
    remove(path)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_text() == OWN


@needs_root
def test_a_backup_is_read_by_no_other_group(folder: Path) -> None:
    path = folder / "site.conf"
    path.write_text(OWN)
    os.chown(path, 0, GROUP)
    path.chmod(0o640)
    publish(path)
    for one in (path, backup_of(path)):
        found = one.stat()
        assert found.st_gid == GROUP or not found.st_mode & 0o070


@pytest.mark.parametrize("beside", [backup_of, side_of])
def test_a_companion_of_four_gigabytes_is_not_read(folder: Path, beside: object) -> None:
    path = folder / "site.conf"
    with_backup(path)
    assert callable(beside)
    with beside(path).open("wb") as file:
        file.truncate(1 << 32)
    with pytest.raises(AutotuneError):
        remove(path)


def test_an_earlier_backup_comes_back_if_the_new_file_is_not_obeyed(folder: Path) -> None:
    path = folder / "site.conf"
    path.write_text(OWN)
    backup_of(path).write_text("of an earlier time\n")
    was = files(folder)

    def disobeyed() -> None:
        assert backup_of(path).read_text() == OWN
        raise WorkError("not obeyed", code="test.error")

    with pytest.raises(WorkError):
        install(path, Text("new"), True, disobeyed)
    assert files(folder) == was


@needs_root
def test_a_file_of_this_user_is_no_backup_of_somebody_elses(
    folder: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hard link, where the system lets users make them to files of others."""
    path = folder / "site.tune"
    with_backup(path, "tune")
    backup_of(path).unlink()
    os.link(secret, backup_of(path))
    os.chown(path, OTHER, OTHER)
    os.chown(secret, ME, ME)
    monkeypatch.setattr(os, "geteuid", lambda: ME)
    with pytest.raises(UsageError) as refused:
        remove(path)
    assert refused.value.code == "published.owner"
    assert SECRET not in path.read_text()


@needs_root
def test_a_link_of_somebody_else_is_not_followed(
    folder: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link to the file, and one on the way to it; a site's own links are fine."""
    path = folder / "site.conf"
    path.symlink_to(secret)
    os.lchown(path, OTHER, OTHER)
    for name in ("getuid", "geteuid"):
        monkeypatch.setattr(os, name, lambda: ME)
    for attempt in (lambda: load_text(path), lambda: put(path, Text("x"))):
        with pytest.raises(UsageError) as refused:
            attempt()
        assert refused.value.code == "published.link"
    assert secret.read_text() == SECRET
    os.lchown(path, ME, ME)
    assert real_path(path) == secret
    # A link that the owner of a folder made in it, as current -> 4.1 of an installation.
    site = folder / "site"
    (site / "4.1").mkdir(parents=True)
    (site / "current").symlink_to("4.1")
    os.lchown(site / "current", THIRD, THIRD)
    os.chown(site, THIRD, THIRD)
    assert real_path(site / "current" / "new") == site / "4.1" / "new"
    site.chmod(0o777)
    with pytest.raises(UsageError):
        real_path(site / "current" / "new")


@needs_root
@pytest.mark.parametrize("what", ["folder", "file", "backup"])
def test_root_neither_reads_nor_writes_what_others_could_change(shared: Path, what: str) -> None:
    path = shared / "site.conf"
    with_backup(path)
    if what == "folder":
        shared.chmod(0o777)
    else:
        os.chown(path if what == "file" else backup_of(path), OTHER, OTHER)
    was = files(shared)
    attempts = [lambda: remove(path, force=True)]
    attempts += [lambda: publish(path, force=True)]
    for attempt in attempts:
        with pytest.raises(UsageError) as refused:
            attempt()
        assert refused.value.code == "publish.root"
    assert files(shared) == was


@needs_root
def test_a_new_file_in_a_sticky_folder_is_roots_own(shared: Path) -> None:
    shared.chmod(0o1777)
    publish(shared / "site.conf")
    assert not as_other(lambda: (shared / "site.conf").write_text("x"))
    remove(shared / "site.conf")
    assert not files(shared)


def test_formats_with_and_without_a_header_beside_them_are_tested() -> None:
    assert find("rules-v3").comment is None
    assert find("openmpi-user").merges
