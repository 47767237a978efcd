"""Who could change what a path leads to, compared with what another user can really do."""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.errors import RunnerError
from runner.files.trusted_path import own_group, refuse_others, steps, weakness
from tests.refusals import failed
from tests.runner.others import (
    GROUP,
    OTHER,
    as_other,
    attempts_of_other,
    entered_by_all,
    needs_root,
    shared,
)

__all__ = ["shared"]

ME = pwd.getpwuid(os.geteuid()).pw_name


def test_each_folder_and_link_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "end").touch()
    (tmp_path / "one").symlink_to("a/../a")
    (tmp_path / "two").symlink_to(tmp_path / "one" / "b")
    seen = [step.place for step in steps(tmp_path / "two" / "end")]
    real = tmp_path.resolve()
    for place in (real / "two", real / "one", real / "a", real / "a" / "b"):
        assert place in seen
    assert seen[-1] == real / "a" / "b" / "end"
    (tmp_path / "round").symlink_to("round")
    with failed(errno.ELOOP):
        list(steps(tmp_path / "round"))
    with pytest.raises(FileNotFoundError):
        list(steps(tmp_path / "none"))


def group(name: str, members: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The group of all files has this name and these members."""
    found = grp.struct_group((name, "x", os.getegid(), members))
    monkeypatch.setattr(grp, "getgrgid", lambda gid: found)


@pytest.mark.parametrize(
    ("name", "members", "own"),
    [
        (ME, [], True),
        (ME, [ME], True),
        (ME, ["mallory"], False),
        (ME, [ME, "mallory"], False),
        ("project", [], False),
        ("project", [ME], False),
    ],
)
def test_a_group_counts_as_others_unless_it_is_the_users_own(
    shared: Path, monkeypatch: pytest.MonkeyPatch, name: str, members: list[str], own: bool
) -> None:
    """As with a umask of 002, which some distributions set for groups of one user each."""
    group(name, members, monkeypatch)
    place = shared / "cache"
    place.mkdir()
    for path, mode in ((shared, 0o775), (place, 0o775), (place / "code", 0o664)):
        path.touch()
        path.chmod(mode)
    assert own_group(os.getegid()) is own
    for path in (place, place / "code"):
        assert (weakness(path) is None) is own
    monkeypatch.setattr(grp, "getgrgid", dict[int, object]().__getitem__)  # A group without name.
    assert weakness(place) is not None


@pytest.mark.parametrize(
    ("parent", "place", "good"),
    [
        (0o755, 0o755, True),
        (0o777, 0o755, False),
        (0o1777, 0o755, True),
        (0o1777, 0o777, False),
        (0o755, 0o1777, False),
        (0o755, 0o757, False),
    ],
)
def test_the_folders_on_the_way_count(shared: Path, parent: int, place: int, good: bool) -> None:
    end = shared / "parent" / "place"
    end.mkdir(parents=True)
    end.chmod(place)
    end.parent.chmod(parent)
    assert (weakness(end) is None) is good
    if good:
        refuse_others(end, shared / "none")
        return
    with pytest.raises(RunnerError) as refused:
        refuse_others(shared / "none", end)
    assert refused.value.code == "file.writable_by_others"


def test_what_nobody_else_can_enter_is_nobody_elses(shared: Path) -> None:
    """Such as what is in a home of mode 0700; a link that leads out of it is not."""
    home, outside = shared / "home", shared / "outside"
    for place in (home / "cache" / "own", outside / "own"):
        place.mkdir(parents=True)
    (home / "cache").chmod(0o777)
    outside.chmod(0o777)
    home.chmod(0o700)
    assert weakness(home / "cache" / "own") is None
    (home / "link").symlink_to(outside)
    found = weakness(home / "link" / "own")
    assert found is not None
    assert found.step.place == outside
    home.chmod(0o711)
    assert weakness(home / "cache" / "own") is not None


@needs_root
def test_places_of_another_user_are_refused(shared: Path) -> None:
    place = shared / "folder" / "own"
    place.mkdir(parents=True)
    (shared / "link").symlink_to(place)
    assert weakness(shared / "link") is None
    os.lchown(shared / "link", OTHER, OTHER)
    found = weakness(shared / "link")
    assert found is not None
    assert found.step.place == shared / "link"
    os.chown(place.parent, OTHER, OTHER)
    assert weakness(place) is not None


MODES = st.sampled_from(
    [0o700, 0o711, 0o750, 0o755, 0o770, 0o775, 0o757, 0o777, 0o1777, 0o1775, 0o1770, 0o2775]
)
OWNERS = st.sampled_from([0, 0, 0, OTHER])
GROUPS = st.sampled_from([0, GROUP, OTHER])


@pytest.fixture(scope="module")
def changes() -> Iterator[Callable[[Path], bool]]:
    """Whether the other user can put something else in a place."""
    with attempts_of_other(_change) as attempt:
        yield attempt


@needs_root
@settings(max_examples=120)
@given(
    levels=st.lists(st.tuples(MODES, OWNERS, GROUPS), min_size=3, max_size=3), linked=st.booleans()
)
def test_what_another_user_can_change_is_refused(
    changes: Callable[[Path], bool], levels: list[tuple[int, int, int]], linked: bool
) -> None:
    """The other user tries it: to put something else in place of each part of the way."""
    with entered_by_all() as base:
        places = [base / "a", base / "a" / "b", base / "a" / "b" / "c"]
        for place in places:
            place.mkdir()
        end = places[-1]
        if linked:
            (base / "link").symlink_to(end)
        for place, (mode, owner, gid) in zip(places, levels, strict=True):
            os.chown(place, owner, gid)
            place.chmod(mode)
        way = base / "link" if linked else end
        changed = [part for part in (*places, end / "new") if changes(part)]
        if changed:
            assert weakness(way) is not None, (changed, levels)


def _change(place: Path) -> None:
    """Put another folder in its place, or a file where nothing is to be."""
    if place.name == "new":
        place.touch()
        return
    place.rename(place.with_name("moved"))
    place.with_name("moved").rename(place)


@needs_root
def test_an_access_list_that_names_others_counts(shared: Path) -> None:
    """The bits of the group are then the most that the list gives."""
    place = shared / "place"
    place.mkdir(mode=0o775)
    place.chmod(0o775)
    assert weakness(place) is None  # The group is root's own.
    entries = [(0x01, 7, -1), (0x02, 7, OTHER), (0x04, 7, -1), (0x10, 7, -1), (0x20, 5, -1)]
    packed = (2).to_bytes(4, "little") + b"".join(
        tag.to_bytes(2, "little")
        + rights.to_bytes(2, "little")
        + (who & 0xFFFFFFFF).to_bytes(4, "little")
        for tag, rights, who in entries
    )
    try:
        os.setxattr(place, "system.posix_acl_access", packed)
    except OSError:
        assert stat.S_IMODE(place.stat().st_mode) == 0o775  # This file system has no such lists.
        return
    assert as_other((place / "new").touch)
    assert weakness(place) is not None


@needs_root
def test_in_a_container_without_root_folders_on_the_way_may_be_unknown(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The root of the system then has the number of all unknown users."""
    place = shared / "folder" / "own"
    place.mkdir(parents=True)
    os.chown(place.parent, OTHER, OTHER)
    assert weakness(place) is not None
    monkeypatch.setattr("runner.files.trusted_path._has_root", lambda: False)
    monkeypatch.setattr("runner.files.trusted_path._number", lambda name: OTHER)
    assert weakness(place) is None
    assert weakness(place.parent) is not None
    place.parent.chmod(0o777)
    assert weakness(place) is not None
