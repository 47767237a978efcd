"""Files come into place whole, and go away without a trace."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autotune.errors import UsageError, WorkError
from autotune.publish.formats import find
from autotune.publish.header import seal
from autotune.publish.install import Text, install, load_text, put
from autotune.publish.plan import plan_files
from autotune.publish.publication import diff
from autotune.publish.source import PublicationSource
from autotune.publish.undo import remove
from autotune.testing.format import CLUSTER, content_of, edited, evidence, library_of
from tests.refusals import refused

OWN = "# the site's own\nbtl_tcp_links = 2\n"


def files(place: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in place.iterdir()}


def publish(path: Path, name: str = "openmpi-user", force: bool = False) -> None:
    fmt = find(name)
    library = library_of(fmt)
    proposal = PublicationSource(content_of(fmt), evidence(), (), True)
    one = plan_files(proposal, [fmt], CLUSTER, library, path, force=force, unproven=True)[0]
    install(path, one.text(one.content, library, "seen"), one.backup, lambda: None)


@pytest.mark.parametrize("before", [None, OWN, "no newline", "b\xe9\r\n\udcff"])
def test_publishing_and_undoing_leaves_what_was_there(tmp_path: Path, before: str | None) -> None:
    path = tmp_path / "mca-params.conf"
    if before is not None:
        put(path, Text(before))
        path.chmod(0o640)
    was = files(tmp_path)
    publish(path)
    text = load_text(path)
    assert text is not None
    assert not edited(path, text)
    assert text.main.startswith(before or "# >>>")
    assert path.stat().st_mode & 0o777 == (0o640 if before is not None else 0o644)
    remove(path)
    assert files(tmp_path) == was


def test_a_folder_that_publishing_made_goes_with_its_last_file(tmp_path: Path) -> None:
    made, others = tmp_path / "made" / "mca-params.conf", tmp_path / "others" / "mca-params.conf"
    others.parent.mkdir()
    for path in (made, others):
        publish(path)
        publish(path)
    (own := made.with_name("own.conf")).write_text(OWN)
    remove(made)
    assert own.read_text() == OWN
    own.unlink()
    publish(made)
    remove(made)
    remove(others)
    assert made.parent.is_dir()  # Somebody else's file was in it when it was published again.
    made.parent.rmdir()
    publish(made)
    remove(made)
    assert not made.parent.exists()
    assert others.parent.is_dir()


def test_publishing_twice_keeps_the_first_backup(tmp_path: Path) -> None:
    path = tmp_path / "mca-params.conf"
    path.write_text(OWN)
    publish(path)
    publish(path)
    assert path.read_text().count(">>> published") == 1
    remove(path)
    assert files(tmp_path) == {"mca-params.conf": OWN.encode()}


@pytest.mark.parametrize("before", [None, OWN])
def test_what_is_not_obeyed_in_place_is_rolled_back(tmp_path: Path, before: str | None) -> None:
    path = tmp_path / "mca-params.conf"
    if before:
        path.write_text(before)
    was = files(tmp_path)

    def disobeyed() -> None:
        assert path.read_text() == "new"
        raise WorkError("not obeyed", code="test.error")

    with refused(WorkError, "test.error"):
        install(path, Text("new", "side"), True, disobeyed)
    assert files(tmp_path) == was


def test_the_folder_of_what_is_not_obeyed_goes_as_well(tmp_path: Path) -> None:
    def disobeyed() -> None:
        raise WorkError("not obeyed", code="test.error")

    with refused(WorkError, "test.error"):
        install(tmp_path / "made" / "f", Text("new"), True, disobeyed)
    assert files(tmp_path) == {}


def test_an_edited_file_is_neither_replaced_nor_removed_unless_told(tmp_path: Path) -> None:
    path = tmp_path / "f.tune"
    publish(path, "tune")
    path.write_text(path.read_text() + "--mca mine 1\n")
    with refused(UsageError, "published.edited"):
        publish(path, "tune")
    with refused(UsageError, "published.edited"):
        remove(path)
    assert "--mca mine 1" in path.read_text()
    remove(path, force=True)
    (kept,) = tmp_path.iterdir()
    assert "--mca mine 1" in kept.read_text()


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "f.tune"
    path.write_text("--mca mine 1\n")
    with refused(UsageError, "publish.one_file"):
        publish(path, "tune")
    with refused(UsageError, "published.foreign"):
        remove(path, force=True)
    publish(path, "tune", force=True)
    remove(path)
    assert path.read_text() == "--mca mine 1\n"


def test_a_lost_backup_is_said_and_nothing_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "f.tune"
    path.write_text("--mca mine 1\n")
    publish(path, "tune", force=True)
    (tmp_path / "f.tune.before-autotune").unlink()
    with refused(WorkError, "published.backup_missing"):
        remove(path)
    assert path.exists()


@pytest.mark.parametrize("before", [None, OWN, "no newline"])
@pytest.mark.parametrize(
    ("above", "below"), [("", "mine = 2"), ("# mine\r\n", ""), ("a = 1\n", "b\xe9 = \udcff\n")]
)
def test_lines_around_the_block_stay_byte_for_byte(
    tmp_path: Path, before: str | None, above: str, below: str
) -> None:
    path = tmp_path / "mca-params.conf"
    if before is not None:
        path.write_text(before)
    publish(path)
    text = load_text(path)
    assert text is not None
    put(path, Text(above + text.main + below))
    longer = load_text(path)
    assert longer is not None
    assert not edited(path, longer)
    done = remove(path)
    left = load_text(path)
    assert left is not None
    old = before or ""
    ended = old + "\n" if old == "no newline" else old
    assert left.main == above + ended + below
    assert str(path) in done
    assert ("mca-params.conf.before-autotune" in done) == (before is not None)


def test_publishing_again_keeps_lines_written_around_the_block(tmp_path: Path) -> None:
    path = tmp_path / "mca-params.conf"
    publish(path)
    path.write_text(path.read_text() + "mine = 2\n")
    publish(path)
    assert path.read_text().startswith("mine = 2\n# >>>")
    remove(path)
    assert files(tmp_path) == {"mca-params.conf": b"mine = 2\n"}


def test_a_block_that_was_changed_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mca-params.conf"
    path.write_text(OWN)
    publish(path)
    good = path.read_text()
    bad = good.replace("btl_sm_eager_limit = 8192", "btl_sm_eager_limit = 4096")
    number = 1 + good[: good.index("btl_sm_eager_limit = 8192")].count("\n")
    path.write_text(bad + "mine = 2\n")
    with refused(UsageError, "published.edited") as refusal:
        remove(path)
    said = str(refusal.value)
    assert f"line {number} " in said
    assert "'btl_sm_eager_limit = 4096'" in said
    assert "'btl_sm_eager_limit = 8192'" in said
    assert "--force" in said
    assert path.read_text() == bad + "mine = 2\n"
    done = remove(path, force=True)
    (kept,) = tmp_path.glob("*.edited-*")
    assert str(kept) in done
    assert kept.read_text() == bad + "mine = 2\n"
    assert path.read_text() == OWN + "mine = 2\n"


@pytest.mark.parametrize("lost", [">>> published", "<<< end of what"])  # data
def test_a_block_without_both_its_marks_is_not_guessed_at(tmp_path: Path, lost: str) -> None:
    path = tmp_path / "mca-params.conf"
    path.write_text(OWN)
    publish(path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if lost not in line) + "mine = 2\n")
    was = files(tmp_path)
    with refused(UsageError, "published.edited", "published.foreign"):
        remove(path)
    assert files(tmp_path) == was


def test_a_header_of_its_own_goes_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    publish(path, "rules-v3")
    assert len(files(tmp_path)) == 2
    remove(path)
    assert not files(tmp_path)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real.conf", tmp_path / "link.conf"
    real.write_text(OWN)
    link.symlink_to(real)
    publish(link)
    assert link.is_symlink()
    assert real.read_text().startswith(OWN)
    remove(link)
    assert link.is_symlink()
    assert real.read_text() == OWN


def test_the_difference_shows_added_lines_only(tmp_path: Path) -> None:
    path = tmp_path / "mca-params.conf"
    path.write_text(OWN)
    fmt = find("openmpi-user")
    proposal = PublicationSource(content_of(fmt), evidence(), (), True)
    one = plan_files(proposal, [fmt], CLUSTER, library_of(fmt), path, unproven=True)[0]
    lines = diff(one, library_of(fmt)).splitlines()[2:]
    assert "+btl_sm_eager_limit = 8192" in lines
    assert not [line for line in lines if line.startswith("-")]
    assert path.read_text() == OWN


def test_undoing_takes_no_other_file_for_the_backup(tmp_path: Path) -> None:
    """The header is data: whoever writes it may seal it, too."""
    path = tmp_path / "mca-params.conf"
    path.write_text(OWN)
    publish(path)
    (tmp_path / "passwd").write_text("secret")
    sealed = path.read_text()
    blank = re.sub(r"sha256:[0-9a-f]{64}", f"sha256:{'0' * 64}", sealed)
    assert seal(blank) == sealed
    path.write_text(seal(blank.replace("mca-params.conf.before-autotune", "passwd")))
    was = files(tmp_path)
    with refused(WorkError, "published.backup"):
        remove(path)
    assert files(tmp_path) == was
