"""CPU time from the start of a process to its end, for commands that only read.

Each command runs in a new process, once in every block of random order; one more before them reads
the files from disk and compiles them. With ``--other`` the commands of another installation
(another version in an environment of its own) run in the same blocks. The goals are ratios to
``autotune --version`` in the same blocks: CPU time, because other programs change it less than wall
time. The database is a new one with one study without runs in it, unless ``--store`` names another.

Usage: python -m benchmarks.start_time [--starts 11] [--other PYTHON] [--store URL] [--json FILE]
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
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
UNIT = "--version"
GOALS = {"studies": 2.7, "status": 2.7, "show 1": 2.7, "search --help": 3.0}
"""Largest ratio of a command's CPU time to that of :data:`UNIT`."""


def start(python: str, command: str, store: str, folder: str) -> float:
    """CPU seconds of one process of the command; raises WorkError if it fails.

    It runs in ``folder``, so that each interpreter imports its own installation.
    """
    environment = os.environ | {"AUTOTUNE_STORE": store}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = _cpu_of_children()
    done = subprocess.run(
        [python, "-m", "autotune", *command.split()],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    took = _cpu_of_children() - before
    if done.returncode != 0:
        raise WorkError(
            f"{python} -m autotune {command} failed: {done.stderr[-500:]}", code="benchmark.fails"
        )
    return took


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


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
            median_s, least_s = (
                statistics.median(seconds[command, python]),
                min(seconds[command, python]),
            )
            row[f"{name}median (s)"] = f"{median_s:.3f}"
            row[f"{name}min (s)"] = f"{least_s:.3f}"
            row[f"{name}ratio"] = f"{median_s / statistics.median(seconds[UNIT, python]):.2f}"
        row["goal"] = GOALS.get(command, "")
        rows.append(row)
    table(rows)
    figures = {f"{command}, {python}": taken for (command, python), taken in seconds.items()}
    report("start_time", {"interpreters": pythons, "seconds": figures}, given.json)


if __name__ == "__main__":
    run_benchmark(main)
