"""The cost of the runtime: the command as it is typed, and what its figures mean."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks import mate_regions
from benchmarks.mate_cost import GOALS, PYTHON_CORE, summary
from benchmarks.mate_messages import share_of_core
from runner.mpi.library import Library

ROOT = Path(__file__).parents[2]


def typed(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The benchmark as it is typed."""
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.mate_cost", "--quick", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, **variables},
        timeout=300,
    )


@dataclass
class Measured:
    """One quick run: what it printed, and its rows."""

    printed: str
    rows: dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def measured(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    out = tmp_path_factory.mktemp("cost") / "figures.json"
    done = typed("--json", str(out))
    assert done.returncode == 0, done.stderr
    return Measured(done.stdout, json.loads(out.read_text())["rows"])


@pytest.mark.slow
@pytest.mark.mpi
def test_every_row_is_measured(measured: Measured) -> None:
    python_core = {
        "region, Python body, 1 w, 8 r",
        "message, Python region, between",
        "message, awaited, in process",
        "waiting for MPI",
        "start-up",
    }
    assert {name + PYTHON_CORE for name in python_core} <= measured.rows.keys()
    if "native" in mate_regions.cores():
        two = {name for name in GOALS if "2 w" in name or "2 workers" in name}
        one_cpu = len(os.sched_getaffinity(0)) == 1
        missing = GOALS.keys() - measured.rows.keys()
        assert missing <= (two | {"waiting for nothing"} if one_cpu else set())
    for row in measured.rows.values():
        assert row["min"] <= row["q1"] <= row["median"] <= row["q3"]
    table = measured.printed[: measured.printed.index("benchmark ")]
    assert max(map(len, table.splitlines())) <= 80


@pytest.mark.slow
@pytest.mark.mpi
def test_a_message_added_is_the_difference_to_c(measured: Measured) -> None:
    rows = measured.rows
    if "message, C over MPI, between" not in rows:
        assert not any(name.startswith("added") for name in rows)
        return
    for to, in_c in (("between", "between"), ("itself", "itself"), ("in process", "itself")):
        own = rows[f"message, awaited, {to}{PYTHON_CORE}"]["median"]
        plain = rows[f"message, C over MPI, {in_c}"]["median"]
        assert rows[f"added: awaited, {to}{PYTHON_CORE}"]["median"] == pytest.approx(own - plain)


@pytest.mark.slow
@pytest.mark.mpi
def test_without_a_compiler_the_messages_in_c_are_missing(library: Library, tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    done = typed("--json", str(out), PATH=f"{tmp_path}")
    assert done.returncode == 0, done.stderr
    assert "messages in C: not measured: no compiler" in done.stdout
    assert not any(name.startswith("added") for name in json.loads(out.read_text())["rows"])


def test_goals_are_judged_by_the_median() -> None:
    name = "region, compiled body, 1 w, 1 r"
    assert summary(name, [0.01, 0.02, 0.5])["met"]
    assert not summary(name, [0.01, 0.2, 0.5])["met"]
    assert summary("efficiency of 2 workers", [90.0, 96.0, 97.0])["met"]
    assert not summary("efficiency of 2 workers", [90.0, 91.0, 97.0])["met"]


def test_a_region_is_counted_for_every_execution(monkeypatch: pytest.MonkeyPatch) -> None:
    executed: list[int] = []
    monkeypatch.setattr(mate_regions, "empty", lambda state, i: executed.append(i))
    case = mate_regions.RegionCase("python", False, 1, 8)
    found = mate_regions.regions(case, 4000)
    warm = 10 * 8 * len(mate_regions.STENCIL)
    assert len(executed) == 4000 + warm
    assert min(found.values()) > 0


def test_share_of_a_core_counts_other_threads() -> None:
    over = threading.Event()

    def busy() -> None:
        while not over.is_set():
            pass

    idle = share_of_core(os.getpid(), 0.1)
    thread = threading.Thread(target=busy)
    thread.start()
    try:
        time.sleep(0.01)
        spinning = share_of_core(os.getpid(), 0.3)
    finally:
        over.set()
        thread.join()
    assert idle < spinning
    assert spinning > 0.1
