"""The cost of the runtime: the command as it is typed, and what its figures mean."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.mate_cores import cores
from benchmarks.mate_cost import GOALS, PYTHON_CORE, summary
from benchmarks.mate_messages import share_of_core
from benchmarks.mate_regions import RegionCase, regions
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


@pytest.mark.mpi
def test_every_row_is_measured(library: Library, tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    done = typed("--json", str(out))
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    rows: dict[str, dict[str, Any]] = found["rows"]
    python_core = {
        "region, Python body, 1 w, 8 r",
        "message, Python region, between",
        "message, awaited, in process",
        "waiting for MPI",
        "start-up",
    }
    assert {name + PYTHON_CORE for name in python_core} <= rows.keys()
    if "native" in cores():
        assert GOALS.keys() <= rows.keys() | {"region, compiled body, 2 w, 8 r"}
    for row in rows.values():
        assert row["min"] <= row["q1"] <= row["median"] <= row["q3"]
    table = done.stdout[: done.stdout.index("benchmark ")]
    assert max(map(len, table.splitlines())) <= 80


@pytest.mark.mpi
def test_a_message_added_is_the_difference_to_c(library: Library, tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    if typed("--json", str(out)).returncode:
        pytest.fail("the benchmark failed")
    rows = json.loads(out.read_text())["rows"]
    if "message, C over MPI, between" not in rows:
        assert not any(name.startswith("added") for name in rows)
        return
    for to, in_c in (("between", "between"), ("itself", "itself"), ("in process", "itself")):
        own = rows[f"message, awaited, {to}{PYTHON_CORE}"]["median"]
        plain = rows[f"message, C over MPI, {in_c}"]["median"]
        assert rows[f"added: awaited, {to}{PYTHON_CORE}"]["median"] == pytest.approx(own - plain)


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


def test_a_region_counts_every_execution_once() -> None:
    """Ten times the regions take longer, but a region does not."""
    case = RegionCase("python", False, 1, 8)
    few, many = regions(case, 400)["cpu"], regions(case, 20_000)["cpu"]
    assert 0 < many < 20 * few


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
