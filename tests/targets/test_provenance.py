"""Where a program was measured from: what is kept of it, and what is said when it is gone."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from autotune.errors import UsageError
from autotune.targets.provenance import Provenance, provenance_of
from tests.refusals import refused


@pytest.fixture
def origin(work: Path, monkeypatch: pytest.MonkeyPatch) -> Provenance:
    (work / "run.py").write_text("pass")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("OMP_LICENSE_KEY", "secret")
    monkeypatch.setenv("HOME_TOKEN", "secret")
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    return provenance_of((sys.executable, "run.py", "missing.txt", "--fast", ""), str(work))


def test_paths_are_absolute_and_no_secret_is_kept(origin: Provenance, work: Path) -> None:
    assert origin.cwd == str(work)
    assert set(origin.files) == {sys.executable, str(work / "run.py")}
    assert origin.env["OMP_NUM_THREADS"] == "3"
    assert origin.env["PATH"] == os.environ["PATH"]
    assert "secret" not in str(origin.to_json())
    assert "HOME" not in origin.env
    assert Provenance.from_json(origin.to_json(), "here") == origin


def test_a_program_on_the_path_is_found_there(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = work / "bin" / "tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    assert set(provenance_of(("tool",), "/").files) == {str(tool)}


def test_what_changed_is_named(origin: Provenance, work: Path, snapshot: SnapshotAssertion) -> None:
    assert origin.changes() == []
    (work / "run.py").write_text("other")
    [edited] = origin.changes()
    (work / "run.py").unlink()
    work.rmdir()
    words = [line.replace(str(work), "/home/user") for line in (edited, *origin.changes())]
    assert words == snapshot


def test_the_environment_is_that_of_then_and_comes_back(
    origin: Provenance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/now")
    monkeypatch.setenv("OTHER", "stays")
    with origin.environment():
        assert os.environ["OMP_NUM_THREADS"] == "3"
        assert "LD_LIBRARY_PATH" not in os.environ
        assert os.environ["OTHER"] == "stays"
    assert os.environ["OMP_NUM_THREADS"] == "1"
    assert os.environ["LD_LIBRARY_PATH"] == "/now"


@pytest.mark.parametrize(
    "change",
    [
        {"cwd": "here"},
        {"cwd": 1},
        {"env": {"BASH_ENV": "/evil"}},
        {"env": {"OMP_NUM_THREADS": 1}},
        {"env": {"OMP_X": "\0"}},
        {"env": ["PATH"]},
        {"files": {"run.py": "x"}},
        {"files": None},
        {"env": {f"OMP_{n}": "1" for n in range(900)}},
    ],
)
def test_what_is_no_origin_is_refused(origin: Provenance, change: dict[str, Any]) -> None:
    with refused(UsageError, "published.program_unknown"):
        Provenance.from_json(origin.to_json() | change, "f.tune")
