"""Time from the start of a process to its end, for commands that only read.

Each command runs in a new process, once in every block of random order; one more before them reads
the files from disk. With ``--other`` the commands of another installation (another version in an
environment of its own) run in the same blocks. The goal is 0.4 s for each on a quiet machine. The
database is a new one with one study in it, unless ``--store`` names another.

Usage: python -m benchmarks.start_time [--starts 11] [--other PYTHON] [--store URL] [--json FILE]
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from autotune.errors import WorkError
from benchmarks.common import options, report, run_benchmark, table
from benchmarks.harness.bench import interleaved
from benchmarks.store_speed import study_key

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


def start(python: str, command: str, store: str, folder: str) -> float:
    """Seconds of one process of the command; raises WorkError if it fails.

    It runs in ``folder``, so that each interpreter imports its own installation.
    """
    began = time.perf_counter()
    done = subprocess.run(
        [python, "-m", "autotune", *command.split()],
        env=os.environ | {"AUTOTUNE_STORE": store},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    took = time.perf_counter() - began
    if done.returncode != 0:
        raise WorkError(
            f"{python} -m autotune {command} failed: {done.stderr[-500:]}", code="benchmark.fails"
        )
    return took


def sample(place: Path) -> str:
    """A new database with one study, for the commands that show one."""
    from autotune.store import Store

    with Store.open(str(place)) as store:
        store.study(study_key())
    return str(place)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--starts", type=int, default=11)
    parser.add_argument("--other", help="interpreter of another installation")
    parser.add_argument("--store", help="results database that the commands read")
    given = parser.parse_args()
    pythons = [sys.executable, *([given.other] if given.other else [])]
    every = [(command, python) for command in COMMANDS for python in pythons]
    with tempfile.TemporaryDirectory() as folder:
        store = given.store or sample(Path(folder) / "results.db")

        def run(key: tuple[str, str], block: int) -> float:
            return start(key[1], key[0], store, folder)

        interleaved(every, run, 1, 0)
        seconds = interleaved(every, run, given.starts, 1)
    rows = []
    for command in COMMANDS:
        row: dict[str, Any] = {"command": command}
        for name, python in zip(("", "other "), pythons, strict=False):
            row[f"{name}median (s)"] = f"{statistics.median(seconds[command, python]):.3f}"
            row[f"{name}min (s)"] = f"{min(seconds[command, python]):.3f}"
        own = statistics.median(seconds[command, pythons[0]])
        row[f"at most {GOAL_S} s"] = "yes" if own <= GOAL_S else "no"
        rows.append(row)
    table(rows)
    figures = {f"{command}, {python}": taken for (command, python), taken in seconds.items()}
    report("start_time", {"interpreters": pythons, "seconds": figures}, given.json)


if __name__ == "__main__":
    run_benchmark(main)
