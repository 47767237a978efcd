"""Copies of a directory for each run: complete, apart, and removed whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runner import fresh_copy
from runner.errors import RunnerError, RunnerUsageError
from runner.fresh_copy import PREFIX, FreshCopies
from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.types import LaunchSpec

WRITES = ("sh", "-c", "echo names *; cat ../data/mesh; touch checkpoint")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with a file, a link and a folder, and a file beside it."""
    place = tmp_path / "input"
    (place / "below").mkdir(parents=True)
    (place / "a.txt").write_text("a")
    (place / "link").symlink_to("../data/mesh")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mesh").write_text("m")
    return place


def copies_in(parent: Path) -> list[str]:
    return [p.name for p in parent.iterdir() if p.name.startswith(PREFIX)]


def test_a_copy_is_complete_and_changes_nothing(folder: Path) -> None:
    copies = FreshCopies(folder)
    paths = []
    for _ in range(2):
        with copies.copy() as place:
            paths.append(place)
            assert sorted(p.name for p in place.iterdir()) == ["a.txt", "below", "link"]
            assert (place / "link").readlink() == Path("../data/mesh")
            assert (place / "../data/mesh").read_text() == "m"
            (place / "a.txt").write_text("b")
            (place / "below" / "checkpoint").touch()
    assert paths[0] == paths[1]
    assert (folder / "a.txt").read_text() == "a"
    assert list((folder / "below").iterdir()) == []
    copies.close()
    assert copies_in(folder.parent) == []


def test_a_folder_that_nobody_may_write_is_removed_too(folder: Path) -> None:
    (folder / "below" / "file").touch()
    (folder / "below").chmod(0o500)
    copies = FreshCopies(folder)
    with copies.copy():
        pass
    copies.close()
    (folder / "below").chmod(0o700)
    assert copies_in(folder.parent) == []


@pytest.mark.parametrize("kind", ["missing", "root", "special", "large", "many"])
def test_what_cannot_be_copied_is_refused(
    folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = {"large": "too_large", "many": "too_large"}
    if kind == "special":
        os.mkfifo(folder / "fifo")
    if kind == "large":
        monkeypatch.setattr(fresh_copy, "MOST_BYTES", 0)
    if kind == "many":
        monkeypatch.setattr(fresh_copy, "MOST_ENTRIES", 2)
    places = {"missing": folder / "none", "root": Path("/")}
    with pytest.raises(RunnerUsageError) as raised:
        FreshCopies(places.get(kind, folder))
    assert raised.value.code == f"fresh_dir.{codes.get(kind, kind)}"
    assert copies_in(folder.parent) == []


def test_the_copy_of_a_killed_process_is_removed_and_no_other(folder: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from runner.fresh_copy import FreshCopies\n"
        "with FreshCopies(Path(sys.argv[1])).copy() as place:\n"
        "    print(place, flush=True); time.sleep(100)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    place = Path(holder.stdout.readline().strip())
    own = FreshCopies(folder)
    assert place.is_dir()  # Its owner lives.
    own.close()
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    assert place.is_dir()
    FreshCopies(folder).close()
    assert copies_in(folder.parent) == []


@pytest.mark.mpi
def test_every_run_begins_with_the_same_files(folder: Path, library: Library) -> None:
    spec = LaunchSpec(WRITES, 1, cwd=str(folder), fresh_copy=True, before=("touch", "made"))
    with Runner(adapter(library), guard=False) as runner:
        said = [runner.run(spec).stdout_tail for _ in range(2)]
    assert said == ["names a.txt below link made\nm"] * 2  # data
    assert not (folder / "made").exists()
    assert copies_in(folder.parent) == []


@pytest.mark.mpi
@pytest.mark.parametrize(
    "before", [("false",), ("/nowhere/command",), ("sh", "-c", "echo reason >&2; exit 3")]
)
def test_a_command_that_fails_keeps_the_program_from_running(
    folder: Path, library: Library, before: tuple[str, ...]
) -> None:
    with Runner(adapter(library), guard=False) as runner, pytest.raises(RunnerError) as raised:
        runner.run(LaunchSpec(WRITES, 1, cwd=str(folder), before=before))
    assert raised.value.code == "before.failed"
    assert ("reason" in str(raised.value)) == (before[0] == "sh")
    assert not (folder / "checkpoint").exists()


@pytest.mark.mpi
def test_a_command_that_does_not_end_is_ended(
    folder: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.launch.BEFORE_LIMIT_S", 0.3)
    spec = LaunchSpec(WRITES, 1, cwd=str(folder), before=("sleep", "100"))
    with Runner(adapter(library), guard=False) as runner, pytest.raises(RunnerError) as raised:
        runner.run(spec)
    assert raised.value.code == "before.failed"
