"""The judge of skipped tests: what is not listed fails, also over the processes of pytest-xdist."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import skips

ROOT = Path(__file__).parents[1]
FILE = """
import pytest

def test_good():
    pass

@pytest.mark.skipif(True, reason={marked!r})
def test_marked():
    pass

def test_called():
    pytest.skip({called!r})
"""
LISTED = "no C compiler (cc) on PATH"


@pytest.fixture
def inner(tmp_path: Path) -> Path:
    """A directory of tests under the same judge, without plugins that none of them needs."""
    (tmp_path / "conftest.py").write_text("from tests.skips import pytest_sessionfinish\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "bin").mkdir()
    return tmp_path


def run(inner: Path, marked: str, called: str, *words: str) -> subprocess.CompletedProcess[str]:
    (inner / "test_it.py").write_text(FILE.format(marked=marked, called=called))
    environment = {
        **{n: v for n, v in os.environ.items() if not n.startswith("PYTEST")},
        "PYTHONPATH": str(ROOT),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PATH": str(inner / "bin"),
    }
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "xdist", *words],
        cwd=inner,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("words", [pytest.param((), marks=pytest.mark.slow), ("-n", "2")])
def test_a_reason_that_is_not_listed_fails_and_says_what_to_do(
    inner: Path, words: tuple[str, ...]
) -> None:
    done = run(inner, "the weather", LISTED, *words)
    assert done.returncode == 1, done.stdout
    assert "test_marked" in done.stdout
    assert "the weather" in done.stdout
    assert skips.LIST.name in done.stdout
    assert "1 failed, 1 passed, 1 skipped" in done.stdout.splitlines()[-1]


@pytest.mark.parametrize("words", [(), pytest.param(("-n", "2"), marks=pytest.mark.slow)])
def test_what_is_listed_and_missing_may_be_skipped(inner: Path, words: tuple[str, ...]) -> None:
    done = run(inner, LISTED, "no static C library", *words)
    assert done.returncode == 0, done.stdout
    assert "1 passed, 2 skipped" in done.stdout.splitlines()[-1]


def test_what_is_said_to_be_missing_and_is_there_fails(inner: Path) -> None:
    (inner / "bin" / "cc").write_text("#!/bin/sh\n")
    (inner / "bin" / "cc").chmod(0o755)
    done = run(inner, LISTED, "no static C library")
    assert done.returncode == 1, done.stdout
    assert f"skipped: {LISTED}" in done.stdout
    assert skips.LIST.name not in done.stdout
    assert "1 failed, 1 passed, 1 skipped" in done.stdout.splitlines()[-1]


def test_a_file_that_is_skipped_whole_is_judged(inner: Path) -> None:
    (inner / "test_whole.py").write_text("import pytest\npytest.importorskip('no_such_module')\n")
    done = run(inner, LISTED, "no static C library")
    assert done.returncode == 1, done.stdout
    assert "could not import 'no_such_module'" in done.stdout  # data


@pytest.mark.parametrize(
    ("reason", "there"),
    [
        ("strategy gp needs json, which is not installed", "the module json"),
        ("munged, sh not installed", "the program sh"),
        ("none of tcsh, sh is installed", "the program sh"),
        ("needs two CPUs", "2 CPUs"),
        ("Slurm's daemons need root here", "root"),
    ],
)
def test_what_a_reason_claims_is_looked_up(
    monkeypatch: pytest.MonkeyPatch, reason: str, there: str
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2})
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    # Slurm's daemons may be here; they are not what is asked about.
    monkeypatch.setattr(shutil, "which", lambda name, **_: "/bin/sh" if name == "sh" else None)
    told = skips.problem(reason, skips.load())
    assert told is not None
    assert there in told.partition(reason)[2]


def test_a_wrong_list_is_refused_with_its_entry(tmp_path: Path) -> None:
    file = tmp_path / "list.toml"
    file.write_text('[[allowed]]\nreason = "a"\nmachine = "b"\nget = "c"\nplace = "d"\n')
    with pytest.raises(ValueError, match=r"list\.toml.*\b1\b.*place"):
        skips.load(file)
    file.write_text('[[allowed]]\nreason = "a("\nmachine = "b"\nget = "c"\n')
    with pytest.raises(ValueError, match=r"list\.toml.*\b1\b"):
        skips.load(file)
