"""Many simulated workers on one study: throughput, conflicts, quality.

    python -m benchmarks.workers_scale [--workers 64] [--trials 640] [--launch 2] [--store URL]

Workers are threads, each with its own connection to the store. The search phase and the store are
real. Only a launch is replaced by a draw from a landscape (65,536 settings, 8 parameters, 5 %
noise, another speed for each worker's place) after ``--launch`` seconds of sleep. The search does
not end by itself, so that all crews make the same number of trials.

Quality is the true time, over the default's, of the setting that is best by its estimate, beside
that of one worker with the same number of trials.

Without ``--store`` a PostgreSQL server is started if it is installed.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from autotune.measurement.budget import SearchPlan
from autotune.measurement.evaluator import MachineEvaluator, RunPlace
from autotune.measurement.run_history import HistoryEntry, history_of
from autotune.space import Parameter, Setting, Space
from autotune.store import Store
from autotune.strategies import create
from autotune.strategies.options import OptionValue
from autotune.study.loop import SearchLoop
from autotune.study.trial_store import OthersFaster, StoredTrials, Trial
from benchmarks.common import options, report, run_benchmark, table
from benchmarks.store_speed import study_key
from runner.types import LaunchSpec, RunRecord
from tests.servers import postgres, postgres_tool

SPACE = Space("simulated", tuple(Parameter(f"p{i}", (1, 2, 3, 4), target="mca") for i in range(8)))
NOISE = 0.05
ENDING = ("auto", "ga")
"""Strategies that end by themselves unless their patience is 0."""


def truth(setting: Setting) -> float:
    """T / T_default: four parameters matter, two of them interact."""
    good = {"p0": (2, 0.88), "p1": (3, 0.92), "p2": (1, 0.96), "p3": (4, 1.3)}
    ratio = 1.0
    for name, (level, factor) in good.items():
        if setting.get(name) == level:
            ratio *= factor
    return ratio * (0.93 if setting.get("p0") == 2 and setting.get("p4") == 4 else 1.0)


class ScaleEvaluator(MachineEvaluator):
    """Draws instead of launching; the place of each worker has its own speed."""

    speed = 1.0
    launch_s = 0.0
    rng: np.random.Generator

    def _launch(
        self, spec: LaunchSpec, place: RunPlace, given_up: bool = False, warms_up: bool = False
    ) -> HistoryEntry:
        time.sleep(self.launch_s)
        seconds = self.speed * truth(place.setting) * float(self.rng.lognormal(0, NOISE))
        record = RunRecord("ok", wall_s=seconds, place=self.history.place or "")
        return self._store_run(record, place)


class _Target:
    """The part of a target that an evaluator needs; nothing is launched."""

    def spec(self, space: Space, setting: Setting, timeout_s: float | None = None) -> None:
        return None


@dataclass
class Counts:
    """Counts over all workers."""

    conflicts: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class ScaleTrialStore(StoredTrials):
    """Counts the claims that another worker took first."""

    counts: Counts

    def open(self, setting: Setting, attrs: dict[str, object]) -> Trial:
        try:
            return super().open(setting, attrs)
        except OthersFaster:
            with self.counts.lock:
                self.counts.conflicts += 1
            raise


def work(
    url: str, number: int, trials: int, given: argparse.Namespace, counts: Counts, shared: bool
) -> None:
    """One worker's search phase."""
    with Store.open(url) as store:
        study = store.study(study_key())
        history = history_of(store, study.id, f"node{number}")
        evaluator = ScaleEvaluator(None, store, study.id, _Target(), SPACE, history, shared=shared)  # type: ignore[arg-type]
        evaluator.speed = 1.0 + number % 7 / 3
        evaluator.launch_s = given.launch
        evaluator.rng = np.random.default_rng(number)

        def pull() -> None:
            evaluator.pull()

        trial_store = ScaleTrialStore(
            store, study, SPACE, reuse=False, shared=shared, most=trials, on_refresh=pull
        )
        trial_store.counts = counts
        trial_store.refresh()
        evaluator.trial_ids = trial_store.ids
        plan = SearchPlan(trials=trials)
        options: dict[str, OptionValue] = {"patience": 0} if given.strategy in ENDING else {}
        strategy = create(given.strategy, SPACE, seed=1, options=options)
        SearchLoop(evaluator, trial_store, strategy, SPACE, plan).run()


def crew(url: str, workers: int, trials: int, given: argparse.Namespace) -> dict[str, Any]:
    """Run all workers on a new study; returns their counts and the quality."""
    counts = Counts()
    began = time.monotonic()
    with ThreadPoolExecutor(workers) as pool:
        for done in [
            pool.submit(work, url, n, trials, given, counts, workers > 1) for n in range(workers)
        ]:
            done.result()
    wall = time.monotonic() - began
    with Store.open(url) as store:
        study = store.study(study_key())
        found = [t for t in store.trials(study.id) if t.estimate is not None]
        runs = store.runs(study.id)
    best = min(found, key=lambda t: t.estimate or 1.0)
    keys = [t.key for t in found]
    return {
        "workers": workers,
        "trials": len(found),
        "same setting twice": len(keys) - len(set(keys)),
        "runs": len(runs),
        "wall_s": round(wall, 2),
        "trials_per_s": round(len(found) / wall, 1),
        "conflicts_per_trial": round(counts.conflicts / len(found), 2),
        "best_true_ratio": round(truth(Setting(best.setting)), 3),
        "optimum": round(truth(Setting({"p0": 2, "p1": 3, "p2": 1, "p4": 4})), 3),
    }


@contextlib.contextmanager
def database(given: str | None) -> Iterator[Callable[[], str]]:
    """The URL of a new, empty place for each call."""
    import uuid

    if given is None and postgres_tool("initdb") is None:
        with tempfile.TemporaryDirectory() as place:
            yield lambda: str(Path(place) / f"{uuid.uuid4().hex}.db")
        return
    with contextlib.ExitStack() as stack:
        url = given or stack.enter_context(postgres())

        def fresh() -> str:
            import psycopg

            schema = f"scale_{uuid.uuid4().hex}"
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(f"CREATE SCHEMA {schema}")
            sign = "&" if "?" in url else "?"
            return f"{url}{sign}options=-csearch_path%3D{schema}"

        yield fresh


def main() -> int:
    """Print the figures."""
    parser = options(__doc__)
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--trials", type=int, default=640)
    parser.add_argument("--strategy", default="ga")
    parser.add_argument("--launch", type=float, default=0.0, help="seconds that a launch takes")
    parser.add_argument("--store", metavar="URL", help="a PostgreSQL database for this alone")
    given = parser.parse_args()
    with database(given.store) as fresh:
        rows = [
            crew(fresh(), workers, given.trials, given)
            for workers in dict.fromkeys((1, 8, given.workers))
        ]
    table(rows)
    report("workers_scale", {"crews": rows}, given.json)
    return 0


if __name__ == "__main__":
    run_benchmark(main)
