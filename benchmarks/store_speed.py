"""Speed of the results database: append, best of a study, listing, size on disk.

    python -m benchmarks.store_speed [--trials 5000] [--directory DIR] [--store URL] [--json FILE]

It writes a study of ``--trials`` trials into a new SQLite file in ``--directory`` (default: a
temporary one), or into an empty PostgreSQL database. Each trial has one run with ten read-back
rows. As in a search, every run is durable before the next. With 100,000 trials it takes minutes.
"""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from autotune.report.study import study_section
from autotune.store import AppInfo, MachineInfo, MpiInfo, Store, StudyKey
from autotune.store.export import export_study
from benchmarks.common import conclude, options, run_benchmark
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


def measure(trials: int, place: str, scratch: Path) -> dict[str, Any]:
    appends, opened = [], []
    with Store.open(place) as store:
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
            "report_s": timed(lambda: study_section(store, study)),
        }
        for kind in ("parquet", "csv"):
            export = partial(export_study, store, study.id, kind, scratch / kind, force=True)
            figures[f"export_{kind}_s"] = timed(export)
    figures["reopen_s"] = timed(lambda: Store.open(place).close())
    if Path(place).is_file():
        figures["size_mb"] = Path(place).stat().st_size / 1e6
    figures["sqlite"] = sqlite3.sqlite_version
    return figures


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--trials", type=int, default=5000)
    parser.add_argument("--directory", type=Path, help="where to write (default: a temporary one)")
    parser.add_argument("--store", metavar="URL", help="an empty database, instead of a file")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.directory) as directory:
        place = given.store or f"{directory}/results.db"
        figures = measure(given.trials, place, Path(directory))
    missed = [
        f"{name}: {figures[name]:.4g}" for name, goal in GOALS.items() if figures[name] > goal
    ]
    return conclude("store speed", f"{GOALS}", missed, figures, given.json)


if __name__ == "__main__":
    run_benchmark(main)
