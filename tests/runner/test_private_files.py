"""Caches and companions: private whatever the umask is, and no link is followed."""

from __future__ import annotations

import errno
import grp
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.errors import RunnerError
from runner.files.private_files import (
    drop_foreign,
    has_private,
    make_folder,
    open_private,
    private_folder,
    read_private,
    write_private,
)
from tests.refusals import failed
from tests.runner.others import GROUP, OTHER, as_other, needs_root, shared

__all__ = ["shared"]


@pytest.fixture(params=[0o000, 0o002, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(place: Path) -> set[int]:
    found = [place, *place.rglob("*")]
    return {stat.S_IMODE(one.lstat().st_mode) for one in found}


def test_whatever_the_umask_nobody_else_reads_or_writes(umask: int, tmp_path: Path) -> None:
    place = tmp_path / "cache" / "autotune" / "kernels"
    private_folder(place)
    write_private(place / "code", b"code")
    write_private(place / "deeper" / "text", "text")
    with open_private(place / "lock"):
        pass
    assert modes(tmp_path / "cache") == {0o700, 0o600}
    assert read_private(place / "code") == b"code"
    assert private_folder(place) == place


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o644, 0o620, 0o602, 0o660, 0o666])
def test_a_file_that_others_may_use_is_not_read(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "code"
    write_private(path, b"code")
    path.chmod(mode)
    assert not has_private(path)
    with pytest.raises(PermissionError):
        read_private(path)
    with pytest.raises(PermissionError):
        open_private(path)
    drop_foreign(path)
    assert not path.exists()
    drop_foreign(path)


def test_no_link_is_followed(tmp_path: Path) -> None:
    """Neither to read what somebody put there, nor to write over what the link leads to."""
    thesis, link = tmp_path / "thesis", tmp_path / "link"
    write_private(thesis, "long work")
    link.symlink_to(thesis)
    assert not has_private(link)
    with failed(errno.ELOOP):
        read_private(link)
    with failed(errno.ELOOP):
        open_private(link)
    write_private(link, "new")
    assert not link.is_symlink()
    link.unlink()
    link.symlink_to(thesis)
    drop_foreign(link)
    assert not os.path.lexists(link)
    assert read_private(thesis) == b"long work"


@pytest.mark.parametrize("kind", ["fifo", "folder"])
def test_what_is_no_file_is_not_read(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    os.mkfifo(path, 0o600) if kind == "fifo" else path.mkdir()
    with pytest.raises(OSError):
        read_private(path)
    with pytest.raises(OSError):
        open_private(path)


def test_a_lock_is_never_emptied(tmp_path: Path) -> None:
    write_private(tmp_path / "lock", "holder")
    with open_private(tmp_path / "lock") as file:
        assert file.read() == b"holder"
    assert read_private(tmp_path / "lock", 6) == b"holder"
    with pytest.raises(OSError, match="larger"):
        read_private(tmp_path / "lock", 5)


def test_a_file_in_the_way_is_said(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    for place in (tmp_path / "cache", tmp_path / "cache" / "deeper"):
        with pytest.raises(NotADirectoryError):
            make_folder(place)
        with pytest.raises(OSError):
            private_folder(place)


def test_a_folder_of_this_user_is_closed_to_a_projects_group(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a umask of 002 made it; the folders above it are not this user's to change."""
    project = grp.struct_group(("project", "x", os.getegid(), ["mallory"]))
    monkeypatch.setattr(grp, "getgrgid", lambda gid: project)
    place = shared / "cache"
    place.mkdir()
    place.chmod(0o2775)
    (place / "code").write_bytes(b"planted")
    (place / "code").chmod(0o664)
    private_folder(place)
    assert not stat.S_IMODE(place.stat().st_mode) & 0o022
    with pytest.raises(PermissionError):
        read_private(place / "code")
    shared.chmod(0o775)
    with pytest.raises(RunnerError) as refused:
        private_folder(place)
    assert refused.value.code == "file.writable_by_others"
    assert stat.S_IMODE(shared.stat().st_mode) == 0o775


@needs_root
def test_nothing_of_another_user_is_taken(shared: Path) -> None:
    """Not the file, not the folder, not a link to a folder of this user's."""
    place = shared / "cache"
    private_folder(place)
    write_private(place / "code", b"code")
    os.chown(place / "code", OTHER, OTHER)
    with pytest.raises(PermissionError):
        read_private(place / "code")
    mine = shared / "mine"
    mine.mkdir(mode=0o777)
    mine.chmod(0o777)
    (shared / "link").symlink_to(mine)
    os.lchown(shared / "link", OTHER, OTHER)
    os.chown(place, OTHER, OTHER)
    for weak in (place, shared / "link"):
        with pytest.raises(RunnerError):
            private_folder(weak)
    assert stat.S_IMODE(mine.stat().st_mode) == 0o777  # Not closed either: it was not asked for.


@needs_root
def test_a_member_of_the_projects_group_cannot_change_a_cache(shared: Path, umask: int) -> None:
    """With the group of a project on every folder, as setgid folders of clusters have it."""
    os.chown(shared, 0, GROUP)
    shared.chmod(0o2755)
    place = private_folder(shared / "cache" / "autotune")
    write_private(place / "code", b"code")
    assert (place / "code").stat().st_gid == GROUP
    for attack in (
        lambda: (place / "code").write_bytes(b"other"),
        lambda: (place / "code").rename(place / "old"),
        lambda: (place / "new").write_bytes(b"other"),
        lambda: (shared / "cache").rename(shared / "moved"),
        lambda: (place / "code").read_bytes(),
    ):
        assert not as_other(attack)
