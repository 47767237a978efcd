"""Temporary folders go with their process, however it ends, and those of others stay."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runner.files.scratch import OWNER, PREFIX, Scratch, remove_leftovers

HOLD = """
import signal, sys
from runner.files.scratch import Scratch
for number in (signal.SIGHUP, signal.SIGQUIT):  # Whoever runs the tests under nohup ignores them.
    signal.signal(number, signal.SIG_DFL)
scratch = Scratch()
(scratch.path / "deep").mkdir()
(scratch.path / "deep" / "file").touch()
print(scratch.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def holder() -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_folder_ends_with_its_context() -> None:
    with Scratch("x") as place:
        assert place.name.startswith(f"{PREFIX}x-")
        assert place.stat().st_mode & 0o777 == 0o700
    assert not place.exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP, signal.SIGQUIT])
def test_the_next_one_removes_what_a_killed_process_left(number: signal.Signals) -> None:
    process, place = holder()
    living, other = holder()
    process.send_signal(number)
    process.wait()
    assert place.exists()
    with Scratch():
        assert not place.exists()
        assert other.exists()
    living.kill()
    living.wait()


def test_what_is_not_ours_is_never_touched(own_place: Path) -> None:
    folder = own_place / f"{PREFIX}results"
    folder.mkdir()
    (folder / "thesis.txt").touch()
    target = own_place / "elsewhere"
    target.mkdir()
    (target / OWNER).touch()
    (own_place / f"{PREFIX}link").symlink_to(target)
    (own_place / f"{PREFIX}file").touch()
    linked = own_place / f"{PREFIX}linked"
    linked.mkdir()
    (linked / OWNER).symlink_to(target / OWNER)
    before = sorted(own_place.rglob("*"))
    remove_leftovers(own_place)
    assert sorted(own_place.rglob("*")) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_those_of_another_user_stay(own_place: Path) -> None:
    folder = own_place / f"{PREFIX}abc"
    folder.mkdir()
    (folder / OWNER).touch()
    os.chown(folder, 65534, 65534)
    remove_leftovers(own_place)
    assert folder.exists()


def test_many_begin_and_end_at_once(own_place: Path) -> None:
    """Whoever lives keeps its folder; nothing is left of the others."""
    source = random.Random(7)
    held = [holder() for _ in range(6)]
    for _ in range(12):
        process, place = held.pop(source.randrange(len(held)))
        assert place.exists()
        process.kill()
        process.wait()
        held.append(holder())
    for _, place in held:
        assert (place / "deep" / "file").exists()
    for process, _ in held:
        process.kill()
        process.wait()
    remove_leftovers(own_place)
    assert list(own_place.iterdir()) == []
