"""Time from the start of a process to its end, for commands that only read.

Each command runs in a new process; one more before them reads the files from disk.  With
``--other`` the commands of another installation (an older version in an environment of its own) run
in turn with these.  The goal is 0.4 s for each on a quiet machine.  The database is a new one with
one study in it, unless ``--store`` names another.

Usage: python -m benchmarks.start_time [--starts 11] [--other PYTHON] [--store URL] [--json FILE]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.common import report, run_benchmark, table

COMMANDS = (
    "--version",
    "--help",
    "studies",
    "status",
    "show 1",
    "apps",
    "cluster list",
    "space list",
    "dataset list",
    "search --help",
)
GOAL_S = 0.4


def start(python: str, words: Sequence[str], store: str, folder: str) -> float:
    """Seconds of one process of the command; raises SystemExit if the command fails.

    It runs in ``folder``, so that each interpreter imports its own installation.
    """
    began = time.perf_counter()
    done = subprocess.run(
        [python, "-m", "autotune", *words],
        env=os.environ | {"AUTOTUNE_STORE": store},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    took = time.perf_counter() - began
    if done.returncode != 0:
        raise SystemExit(f"{python} -m autotune {' '.join(words)} failed: {done.stderr[-500:]}")
    return took


def measure(
    pythons: Sequence[str], words: Sequence[str], store: str, folder: str, starts: int
) -> list[list[float]]:
    """The seconds of ``starts`` processes of each interpreter, which take turns."""
    for python in pythons:
        start(python, words, store, folder)
    rounds = [[start(python, words, store, folder) for python in pythons] for _ in range(starts)]
    return [list(taken) for taken in zip(*rounds, strict=True)]


def sample(place: Path) -> str:
    """A new database with one study, for the commands that show one."""
    from autotune.store import AppInfo, MachineInfo, MpiInfo, Store, StudyKey

    key = StudyKey(
        app=AppInfo("program", "/program", "00" * 32),
        machine=MachineInfo(2, "CPU", 2**33, "6.1"),
        mpi=MpiInfo("openmpi", "5.0"),
        ranks=2,
        cluster="local",
        space_name="openmpi",
        space_hash="00" * 32,
        strategy="ga",
        seed=0,
    )
    with Store.open(str(place)) as store:
        store.study(key)
    return str(place)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=11)
    parser.add_argument("--other", help="interpreter of another installation")
    parser.add_argument("--store", help="results database that the commands read")
    parser.add_argument("--json", metavar="FILE")
    given = parser.parse_args()
    pythons = [sys.executable, *([given.other] if given.other else [])]
    rows, figures = [], {}
    with tempfile.TemporaryDirectory() as folder:
        store = given.store or sample(Path(folder) / "results.db")
        for command in COMMANDS:
            taken = measure(pythons, command.split(), store, folder, given.starts)
            row: dict[str, Any] = {"command": command}
            for name, seconds in zip(("", "other "), taken, strict=False):
                row[f"{name}median (s)"] = f"{statistics.median(seconds):.3f}"
                row[f"{name}min (s)"] = f"{min(seconds):.3f}"
            row[f"at most {GOAL_S} s"] = "yes" if statistics.median(taken[0]) <= GOAL_S else "no"
            rows.append(row)
            figures[command] = taken
    table(rows)
    report("start_time", {"interpreters": pythons, "seconds": figures}, given.json)


if __name__ == "__main__":
    run_benchmark(main)
