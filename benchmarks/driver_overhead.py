"""Time per trial that autotune itself uses, with the database on, and the parts of this time.

It is the time between launches without waiting. Goals: at most 5 ms per trial (median); the last 50
of 200 trials take at most 1.2 times the first 50. The terminal's line is drawn on a terminal that
nobody sees; its time is a part of its own, which the figures per trial do not contain.

The table has each part's wall time outside launches and CPU time per trial, each as median and mean
over the trials. Strategies, database and others are parts of the tuner's process. ``supervisor`` is
the CPU time of the supervision process; a part of it falls into the launches.

Usage: python -m benchmarks.driver_overhead [--trials 200] [--strategy ga] [--json FILE]
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from autotune.measurement.events import Event, RunEnded, TrialEnded
from autotune.measurement.run_history import RunHistory
from autotune.store import Store
from autotune.strategies import Strategy, find
from autotune.study.search_study import SearchStudy
from autotune.study.study_request import SearchRequest
from autotune.targets.request import TargetRequest
from autotune.targets.target import Target
from autotune.terminal.progress import Progress
from benchmarks.common import options, report, run_benchmark, table
from benchmarks.harness.launches import Place
from benchmarks.part_clock import PartClock, Spent, cpu_of
from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.supervise import Supervisor

PROGRAM = [sys.executable, "-c", "from mpi4py import MPI; MPI.COMM_WORLD.Barrier()"]
STUDY, DRAWING, SUPERVISOR = "study", "drawing", "supervisor"
STRATEGY = ("ask", "tell", "restore", "add_running", "favourite")
DATABASE = ("add_run", "add_trial", "finish_trial", "known_runs", "runs", "trials")


class Clock:
    """Seconds spent outside launches, per trial: in all, and by parts.

    ``drawing`` is the watcher that draws the events.
    """

    def __init__(self, parts: PartClock, drawing: Progress) -> None:
        self.trial_s: list[float] = []
        self.by_part: list[dict[str, Spent]] = []
        self.runner: Runner | None = None
        self._parts = parts
        self._drawing = drawing
        self._open = 0.0
        self._launched = 0.0
        self.start()

    def start(self) -> None:
        """Begin the first trial now."""
        self.last = time.perf_counter()
        self._began = Spent(self.last, time.process_time())
        self._before = self._parts.reading()
        self._supervisor_s = self._supervisor()

    def __call__(self, event: Event) -> None:
        now = time.perf_counter()
        if isinstance(event, RunEnded):
            self._open += now - self.last - event.entry.record.wall_s
            self._launched += event.entry.record.wall_s
        elif isinstance(event, TrialEnded):
            self._open += now - self.last
            self.trial_s.append(self._open)
            self._open = 0.0
        else:
            self._open += now - self.last
        with self._parts.part(DRAWING):
            self._drawing(event)
        if isinstance(event, TrialEnded):
            self._end_trial()
        self.last = time.perf_counter()

    def _end_trial(self) -> None:
        """The parts of the trial; what is in no part is the study's own."""
        now = Spent(time.perf_counter(), time.process_time())
        reading, supervisor_s = self._parts.reading(), self._supervisor()
        found = {n: s.minus(self._before.get(n, Spent())) for n, s in reading.items()}
        rest = now.minus(self._began)
        for spent in found.values():
            rest = rest.minus(spent)
        rest.wall_s -= self._launched
        found |= {STUDY: rest, SUPERVISOR: Spent(0.0, supervisor_s - self._supervisor_s)}
        self.by_part.append(found)
        self._began, self._before, self._supervisor_s = now, reading, supervisor_s
        self._launched = 0.0

    def _supervisor(self) -> float:
        pid = self.runner._supervisor.pid if self.runner else None
        return cpu_of(pid) if pid else 0.0


@contextmanager
def parted(parts: PartClock, target: Target, strategy: type[Strategy]) -> Iterator[None]:
    """Count the calls of the study for the parts."""
    adapter_type = type(adapter(target.library))
    with ExitStack() as stack:
        for name, owner, words in (
            ("proposal", strategy, STRATEGY),
            ("database", Store, DATABASE),
            ("launch preparation", Target, ("spec",)),
            ("launch preparation", Runner, ("_request",)),
            ("read-back", adapter_type, ("probe",)),
            ("record", Runner, ("_record",)),
            ("run history", RunHistory, ("ratio", "default_scatter", "add")),
        ):
            stack.enter_context(parts.methods(name, owner, words))
        stack.enter_context(_supervision(parts))
        yield


@contextmanager
def _supervision(parts: PartClock) -> Iterator[None]:
    """Count the start of a program and the way of its result, without the program itself."""
    run = Supervisor.run

    def timed(*args: Any) -> Any:
        with parts.part("supervision"):
            result = run(*args)
        parts.add("supervision", Spent(-result.wall_s))
        return result

    with patch.object(Supervisor, "run", timed):
        yield


@contextmanager
def unseen_terminal() -> Iterator[None]:
    """Standard error is a terminal whose text nobody reads."""
    main, terminal = os.openpty()
    kept = os.dup(2)
    os.dup2(terminal, 2)
    os.close(terminal)
    reader = threading.Thread(target=_drain, args=(main,), daemon=True)
    reader.start()
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
        reader.join(1.0)
        os.close(main)


def _drain(fd: int) -> None:
    try:
        while os.read(fd, 1 << 16):
            pass
    except OSError:
        return  # The terminal was closed.


def split(trials: list[dict[str, Spent]]) -> list[dict[str, Any]]:
    """A row for each part: its wall and CPU time per trial in milliseconds."""
    rows = []
    for name in sorted({name for trial in trials for name in trial}):
        every = [trial.get(name, Spent()) for trial in trials]
        wall, cpu = [s.wall_s * 1e3 for s in every], [s.cpu_s * 1e3 for s in every]
        rows.append(
            {
                "part": name,
                "wall_median_ms": round(statistics.median(wall), 2),
                "wall_mean_ms": round(statistics.mean(wall), 2),
                "cpu_median_ms": round(statistics.median(cpu), 2),
                "cpu_mean_ms": round(statistics.mean(cpu), 2),
            }
        )
    return sorted(rows, key=lambda row: -row["cpu_mean_ms"])


def main() -> None:
    arguments = options(__doc__)
    arguments.add_argument("--trials", type=int, default=200)
    arguments.add_argument("--strategy", default="ga")
    given = arguments.parse_args()
    target = Place.of().target(program=PROGRAM, ranks=2)
    strategy = find(given.strategy)
    request = SearchRequest(target=TargetRequest(), trials=given.trials, guard=False)
    parts = PartClock()
    with (
        tempfile.TemporaryDirectory() as place,
        Store.open(str(Path(place) / "results.db")) as store,
        unseen_terminal(),
        Progress(given.trials, None) as drawing,
        parted(parts, target, strategy),
    ):
        clock = Clock(parts, drawing)
        space = target.space()
        with SearchStudy(store, request, target, space, strategy, {}, watch=clock) as study:
            clock.runner = study.runner
            clock.start()
            result = study.measure()
    trials = clock.trial_s
    first, last = trials[:50], trials[-50:]
    rows = split(clock.by_part)
    table(rows)
    report(
        "driver overhead",
        {
            "trials": len(trials),
            "median_ms_per_trial": round(statistics.median(trials) * 1e3, 2),
            "mean_ms_per_trial": round(statistics.mean(trials) * 1e3, 2),
            "first_50_median_ms": round(statistics.median(first) * 1e3, 2),
            "last_50_median_ms": round(statistics.median(last) * 1e3, 2),
            "last_to_first": round(statistics.median(last) / statistics.median(first), 3),
            "cpu_mean_ms_per_trial": round(sum(row["cpu_mean_ms"] for row in rows), 2),
            "overhead_s_of_study": result.to_json()["overhead_s"],
            "runs": result.search_runs + result.confirmation_runs,
            "parts": rows,
        },
        given.json,
    )


if __name__ == "__main__":
    run_benchmark(main)
