"""A results database on a disk that cannot be written is read all the same."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autotune.cli import main
from autotune.errors import UsageError
from autotune.store import Store
from tests.contract.store_samples import key, ok
from tests.refusals import refused

Capture = pytest.CaptureFixture[str]
Lock = Callable[[], None]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[tuple[Path, Lock]]:
    """A directory, and what makes it read-only, for root too."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.geteuid() != 0:
        pytest.skip("a small file system is mounted by root only")
    words = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)]
    mounted = subprocess.run(words, capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"cannot mount: {mounted.stderr.decode()}")
    try:
        yield place, lambda: _remount(place)
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


def _remount(place: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)


def _filled(path: Path) -> str:
    """The hash of a study with one run."""
    with Store.open(path) as store:
        study = store.study(key())
        store.add_run(study.id, None, "default", 0, 0, ok(3.0))
    return study.hash


def test_what_only_reads_needs_no_right_to_write(
    disk: tuple[Path, Lock], work: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, lock = disk
    monkeypatch.setenv("TMPDIR", str(work))
    monkeypatch.setattr(tempfile, "tempdir", None)
    study = _filled(place / "results.db")
    lock()
    given = ["--store", str(place / "results.db")]
    for words in (
        ["studies"],
        ["show", study],
        ["status", study],
        ["export", study, "--to", "csv"],
    ):
        assert main([*words, *given]) == 0, capfd.readouterr().err
    said = capfd.readouterr().out
    assert study[:8] in said
    assert "1 run " in said
    assert not list(work.glob("autotune-store-*")), "the copies are removed"
    with refused(UsageError, "store.unwritable") as refusal:
        Store.open(place / "results.db")
    assert os.strerror(errno.EROFS) in str(refusal.value)
    assert main(["status", "--live", study, *given]) == 2


def test_what_was_committed_last_is_in_the_copy(disk: tuple[Path, Lock], work: Path) -> None:
    """It may be in the log alone, where the writer was killed."""
    place, lock = disk
    own = work / "results.db"
    with Store.open(own) as store:
        study = store.study(key())
        store.add_run(study.id, None, "default", 0, 0, ok(3.0))
        for file in (own, own.with_name("results.db-wal")):
            shutil.copy(file, place / file.name)
    assert (place / "results.db-wal").stat().st_size > 0
    lock()
    with Store.open_to_read(place / "results.db") as store:
        assert [found.runs for found in store.studies()] == [1]
        assert store.label == str(place / "results.db")
