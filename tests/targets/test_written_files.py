"""Files that a run wrote: found below the directory and among arguments, within bounds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from autotune.targets import written_files
from autotune.targets.written_files import WrittenFiles, compare_looks, look


def difference(
    cwd: Path, words: tuple[str, ...], change: dict[str, str], remove: tuple[str, ...] = ()
) -> WrittenFiles:
    """What two looks show of files that were written between them."""
    before = look(str(cwd), words)
    for name, text in change.items():
        path = cwd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name in remove:
        (cwd / name).unlink()
    return compare_looks(str(cwd), before, look(str(cwd), words))


def test_created_and_changed_files_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("1")
    (tmp_path / "kept").write_text("1")
    found = difference(tmp_path, (), {"in": "12", "new": "1", "made/below/x": "1"})
    assert found.created == ("made/below/x", "new")
    assert found.changed == ("in",)
    assert not found.cut


def test_a_file_of_the_same_size_that_was_replaced_counts(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("1")
    os.utime(tmp_path / "state", ns=(0, 0))
    found = difference(tmp_path, (), {"state": "2"})
    assert found.changed == ("state",)


def test_nothing_written_and_removed_files_are_no_sign(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("1")
    assert not difference(tmp_path, (), {}, remove=("old",))


@pytest.mark.parametrize("form", ["{}", "--out={}"])
def test_files_among_the_arguments_count_wherever_they_lie(tmp_path: Path, form: str) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "away").mkdir()
    out = tmp_path / "away" / "state.cpt"
    found = difference(tmp_path / "here", (form.format(out), "100"), {"../away/state.cpt": "1"})
    assert found.created == (str(out),)
    folder = difference(tmp_path / "here", (form.format(out.parent),), {"../away/second": "1"})
    assert folder.created == (str(out.parent / "second"),)


def test_own_files_compiled_code_and_hidden_folders_do_not_count(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as log:  # As `autotune ... > log` has it open.
        before = look(str(tmp_path))
        log.write("progress")
        log.flush()
        for name in ("__pycache__/a.pyc", "b.pyc", ".git/index"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).touch()
        assert not compare_looks(str(tmp_path), before, look(str(tmp_path)))


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "away").mkdir()
    (tmp_path / "here" / "link").symlink_to("../away")
    assert not difference(tmp_path / "here", (), {"../away/x": "1"})


def test_a_look_is_bounded_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        (tmp_path / "many" / str(number)).mkdir(parents=True)
    monkeypatch.setattr(written_files, "MOST_ENTRIES", 10)
    found = difference(tmp_path, (), {"top": "1", "many/0/x": "1"})
    assert found.created == ("top",)
    assert found.cut


@pytest.mark.parametrize("word", ["x" * 300, f"{'x' * 300}/y", "a\n" * 400, f"--text={'z' * 999}"])
def test_a_text_that_cannot_be_a_path_names_no_file(tmp_path: Path, word: str) -> None:
    before = look(str(tmp_path), [word])
    assert not compare_looks(str(tmp_path), before, look(str(tmp_path), [word]))
