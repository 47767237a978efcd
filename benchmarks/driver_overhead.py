"""Time per trial that autotune itself uses, with the database on.

It is the time between launches without waiting. Goals: at most 10 ms per trial; the last 50 of 200
trials take at most 1.2 times the first 50.

Usage: python -m benchmarks.driver_overhead [--trials 200] [--strategy ga] [--json FILE]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from autotune.store import Store
from autotune.study.events import Event, RunEnded, TrialEnded
from autotune.study.pipeline import StudyContext
from benchmarks.common import report, request, run_benchmark

PROGRAM = [sys.executable, "-c", "from mpi4py import MPI; MPI.COMM_WORLD.Barrier()"]


class Clock:
    """Seconds spent outside launches, per trial."""

    def __init__(self) -> None:
        self.last = time.perf_counter()
        self.trial_s: list[float] = []
        self._open = 0.0
        self.by_phase: dict[str, list[float]] = defaultdict(list)

    def __call__(self, event: Event) -> None:
        now = time.perf_counter()
        if isinstance(event, RunEnded):
            outside = now - self.last - event.entry.record.wall_s
            self._open += outside
            self.by_phase[event.entry.kind].append(outside)
            self.last = now
        elif isinstance(event, TrialEnded):
            self._open += now - self.last
            self.trial_s.append(self._open)
            self._open, self.last = 0.0, now


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--trials", type=int, default=200)
    arguments.add_argument("--strategy", default="ga")
    arguments.add_argument("--json")
    given = arguments.parse_args()
    clock = Clock()
    wanted = request(
        program=PROGRAM, ranks=2, strategy=given.strategy, trials=given.trials, guard=False
    )
    wanted.watch = clock
    with (
        tempfile.TemporaryDirectory() as place,
        Store.open(str(Path(place) / "results.db")) as store,
        StudyContext(wanted, store) as study_run,
    ):
        clock.last = time.perf_counter()
        result = study_run.run()
    trials = clock.trial_s
    first, last = trials[:50], trials[-50:]
    report(
        "driver overhead",
        {
            "trials": len(trials),
            "median_ms_per_trial": round(statistics.median(trials) * 1e3, 2),
            "mean_ms_per_trial": round(statistics.mean(trials) * 1e3, 2),
            "first_50_median_ms": round(statistics.median(first) * 1e3, 2),
            "last_50_median_ms": round(statistics.median(last) * 1e3, 2),
            "last_to_first": round(statistics.median(last) / statistics.median(first), 3),
            "overhead_s_of_study": result.to_json()["overhead_s"],
            "runs": result.search_runs + result.confirmation_runs,
        },
        given.json,
    )


if __name__ == "__main__":
    run_benchmark(main)
