"""Jobs that are checked, in this process or under the real mpirun."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.runtimes import mate
from runner.runtimes.check import report, wanted
from tests.apps.conftest import launch

__all__ = ["launch"]

Check = Callable[..., dict[str, Any]]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Runs ranks in this process and gives what their check says."""

    def run(main: Any, ranks: int, seed: int | None = None) -> dict[str, Any]:
        file = tmp_path / "check.json"
        monkeypatch.setattr(report, "_results", report.Results())
        monkeypatch.setenv(wanted.FILE, str(file))
        monkeypatch.setenv(wanted.SEED, "" if seed is None else str(seed))
        mate.run(main, mate.Config(ranks_per_process=ranks, affinity="none"))
        answer: dict[str, Any] = json.loads(file.read_text())
        return answer

    return run
