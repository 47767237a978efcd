"""Speed of the results database: append, best of a study, listing, size on disk.

    python benchmarks/store_speed.py [--trials 5000] [--directory DIR] [--json FILE]

It writes a study of ``--trials`` trials into a new SQLite file in ``--directory`` (default: a
temporary one). Each trial has one run with ten read-back rows. As in a search, every run is durable
before the next.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autotune.store import AppInfo, MachineInfo, MpiInfo, Store, StudyKey
from benchmarks.common import run_benchmark
from runner.types import ReadBack, RunRecord

REPEATS = 5
GOALS = {"append_median_ms": 1.0, "best_s": 0.25}
"""The goals that are checked; the other figures are printed for comparison."""


def study_key() -> StudyKey:
    return StudyKey(
        app=AppInfo("bench", "bench", "0" * 64),
        machine=MachineInfo(2, "none", 2**33, "none"),
        mpi=MpiInfo("openmpi", "5.0"),
        ranks=2,
        cluster="local",
        space_name="bench",
        space_hash="0" * 64,
        strategy="random",
    )


def setting_of(number: int) -> dict[str, int | float | str]:
    """A setting of ten parameters; every trial has another setting."""
    return {f"parameter_{i}": (number >> i) % 8 if i else number for i in range(10)}


def record_of(number: int) -> RunRecord:
    """A run as the runner reports it: ten parameters read back, two kilobytes of output."""
    return RunRecord(
        state="ok",
        wall_s=1.0 + number % 97 / 100,
        exit_code=0,
        verified=True,
        started_at=1.7e9 + number,
        read_back={
            f"parameter_{i}": ReadBack("in force", str(number % 8), str(number % 8), "command")
            for i in range(10)
        },
        bindings=["0", "1"],
        host="node",
        command=["mpirun", "-np", "2"] + ["--mca", "parameter", "value"] * 10 + ["./program"],
        stdout_tail="x" * 2000,
    )


def timed(action: Callable[[], object]) -> float:
    """Median seconds of a few calls."""
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def measure(trials: int, path: Path) -> dict[str, Any]:
    appends, opened = [], []
    with Store.open(path) as store:
        study = store.study(study_key())
        for number in range(trials):
            setting = setting_of(number)
            key = ",".join(f"{name}={value}" for name, value in setting.items())
            began = time.perf_counter()
            trial = store.add_trial(study.id, setting, key, {"generation": number // 20})
            opened.append(time.perf_counter() - began)
            began = time.perf_counter()
            store.add_run(study.id, trial.id, "search", 0, 0, record_of(number))
            appends.append(time.perf_counter() - began)
            store.finish_trial(trial.id, "ok", 1.0)
        figures: dict[str, Any] = {
            "trials": trials,
            "append_median_ms": statistics.median(appends) * 1e3,
            "append_p95_ms": statistics.quantiles(appends, n=20)[-1] * 1e3,
            "add_trial_median_ms": statistics.median(opened) * 1e3,
            "best_s": timed(lambda: store.best(study.id)),
            "list_trials_s": timed(lambda: store.trials(study.id)),
            "list_runs_s": timed(lambda: store.runs(study.id)),
            "list_studies_s": timed(store.studies),
            "known_runs_ms": 1e3 * timed(lambda: store.known_runs(study.context, key)),
        }
    figures["reopen_s"] = timed(lambda: Store.open(path).close())
    figures["size_mb"] = path.stat().st_size / 1e6
    figures["sqlite"] = sqlite3.sqlite_version
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=5000)
    parser.add_argument("--directory", type=Path, help="where to write (default: a temporary one)")
    parser.add_argument("--json", metavar="FILE", help="write the figures as JSON; - for stdout")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        figures = measure(options.trials, Path(directory) / "results.db")
    missed = [name for name, goal in GOALS.items() if figures[name] > goal]
    if options.json:
        text = json.dumps({**figures, "goals": GOALS, "missed": missed}, indent=2)
        print(text) if options.json == "-" else Path(options.json).write_text(text + "\n")
    if options.json != "-":
        for name, value in figures.items():
            goal = f"  (goal {GOALS[name]:g})" if name in GOALS else ""
            print(
                f"{name:22} {value:.4g}{goal}" if isinstance(value, float) else f"{name:22} {value}"
            )
    return 1 if missed else 0


if __name__ == "__main__":
    run_benchmark(main)
