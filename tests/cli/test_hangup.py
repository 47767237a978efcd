"""SIGHUP, as a lost connection sends it, ends a command as SIGTERM does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autotune.errors import UsageError
from autotune.store import Store
from tests.cli.conftest import SIZES

pytestmark = pytest.mark.mpi
LINE = ("search", "--ranks", "1", "--budget", "600s", "--no-guard", "--seed", "1", "--quiet")


def begin(mpi_shell: str, folder: Path, *before: str) -> subprocess.Popen[str]:
    """A search of a program that does nothing, in a session of its own."""
    scratch = folder / "tmp"
    scratch.mkdir()
    space = folder / "sizes.toml"
    space.write_text(SIZES)
    words = [*before, sys.executable, "-P", "-m", "autotune", *LINE, "--space", str(space)]
    return subprocess.Popen(
        [*words, "--store", str(folder / "r.db"), "--", mpi_shell, "sleep 0.2"],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )


def runs(folder: Path) -> int:
    try:
        with Store.open_read_only(folder / "r.db") as store:
            return sum(study.runs for study in store.studies())
    except UsageError:  # It is not made yet.
        return 0


def until(folder: Path, number: int) -> bool:
    """Wait for so many runs; looking more often would slow them down."""
    end = time.monotonic() + 120
    while runs(folder) < number:
        if time.monotonic() > end:
            return False
        time.sleep(0.5)
    return True


def test_nothing_is_lost_and_nothing_is_left(mpi_shell: str, tmp_path: Path) -> None:
    # The tests may run under nohup.
    search = begin(mpi_shell, tmp_path, "env", "--default-signal=HUP")
    assert until(tmp_path, 2), search.communicate()
    search.send_signal(signal.SIGHUP)
    _, said = search.communicate(timeout=60)
    assert search.returncode == 130
    # The command that continues it.
    assert "autotune search" in said  # data
    with Store.open_to_read(tmp_path / "r.db") as store:
        (study,) = store.studies()
        assert study.status == "interrupted"
        assert study.runs >= 2
    assert not list((tmp_path / "tmp").glob("autotune-*"))


def test_an_ignored_hangup_stays_ignored(mpi_shell: str, tmp_path: Path) -> None:
    search = begin(mpi_shell, tmp_path, "nohup")
    assert until(tmp_path, 2), search.communicate()
    before = runs(tmp_path)
    search.send_signal(signal.SIGHUP)
    assert until(tmp_path, before + 1)
    search.send_signal(signal.SIGTERM)
    search.communicate(timeout=60)
    assert search.returncode == 130
