"""Many simulated workers on one study: throughput, conflicts, quality; and 100,000 stored runs.

    python -m benchmarks.workers_scale [--workers 64] [--trials 640] [--launch 2] [--store URL]

Workers are threads, each with its own connection to the store. The search phase and the store are
real. Only a launch is replaced by a draw from a landscape (65,536 settings, 8 parameters, 5 %
noise, another speed for each worker's place) after ``--launch`` seconds of sleep. The search does
not end by itself, so that all crews make the same number of trials.

Quality is the true time, over the default's, of the setting that is best by its estimate, beside
that of one worker with the same number of trials.

The stored runs are queried twice: in a hundred studies, as is usual, and in a single study, the
worst case. Without ``--store`` a PostgreSQL server is started if it is installed.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import insert

from autotune.report.study import study_section
from autotune.space import Parameter, Setting, Space
from autotune.store import Store, schema
from autotune.store.export import export_study
from autotune.store.runs import keep_read_back, to_columns
from autotune.store.trials import hash_of
from autotune.strategies import create
from autotune.strategies.options import OptionValue
from autotune.study.budget import SearchPlan
from autotune.study.evaluator import MachineEvaluator
from autotune.study.run_history import DEFAULT_KEY, DEFAULT_PHASE, SEARCH, HistoryEntry
from autotune.study.search import SearchPhase
from autotune.study.trial_store import OthersFaster, StoredTrials, Trial, history_of
from benchmarks.common import report, run_benchmark
from benchmarks.store_speed import record_of, setting_of, study_key
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
        self,
        spec: LaunchSpec,
        setting: Setting,
        phase: str,
        trial: int | None,
        block: int,
        position: int,
        given_up: bool = False,
    ) -> HistoryEntry:
        time.sleep(self.launch_s)
        seconds = self.speed * truth(setting) * float(self.rng.lognormal(0, NOISE))
        record = RunRecord("ok", wall_s=seconds, place=self.history.place or "")
        return self._keep(record, setting, phase, trial, block, position)


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

    def open(self, setting: Setting, attrs: dict[str, object], origin: str) -> Trial:
        try:
            return super().open(setting, attrs, origin)
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
        SearchPhase(evaluator, trial_store, strategy, SPACE, plan).run()


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


def fill(store: Store, study_id: int, runs: int) -> None:
    """Store runs of 5,000 settings as a study does, but many in one statement.

    One at a time, 100,000 runs take minutes; ``store_speed`` measures how long one run takes.
    """
    for start in range(0, runs, 2000):
        rows, outcomes = [], []
        for number in range(start, min(start + 2000, runs)):
            key = DEFAULT_KEY if number % 20 == 0 else Setting(setting_of(number % 5000)).key
            record = record_of(number)
            of_study = {"study_id": study_id, "number": number, "setting_key": key}
            phase = DEFAULT_PHASE if key == DEFAULT_KEY else SEARCH
            place = {"phase": phase, "block": 0, "position": 0, "setting_hash": hash_of(key)}
            rows.append({**of_study, **place, **to_columns(record)})
            outcomes.append(record.read_back)
        with store._database.write() as connection:
            for row, outcome in zip(rows, outcomes, strict=True):
                row["read_back_id"] = keep_read_back(connection, outcome)
            connection.execute(insert(schema.run), rows)
    with store._database.write() as connection:
        # A server does this by itself within a minute of such a load.
        connection.exec_driver_sql("ANALYZE")


def large(url: str, runs: int, studies: int) -> dict[str, float]:
    """Seconds of usual queries on a database with so many runs in so many studies."""
    with Store.open(url) as store:
        began = time.monotonic()
        for seed in range(studies):
            study = store.study(dataclasses.replace(study_key(), seed=seed))
            fill(store, study.id, runs // studies)
        runs //= studies
        figures = {"filling": time.monotonic() - began}
        questions: dict[str, Callable[[], object]] = {
            "list of studies": store.studies,
            "best settings": lambda: store.best(study.id),
            "one setting's runs": lambda: store.runs(study.id, setting_key="default"),
            "what predict asks of a setting": lambda: store.known_runs(
                study.context, Setting(setting_of(7)).key
            ),
            "report": lambda: study_section(store, study),
            "all runs": lambda: store.runs(study.id),
            "last hundred runs": lambda: store.runs(study.id, after=runs - 100),
        }
        for name, ask in questions.items():
            began = time.monotonic()
            ask()
            figures[name] = time.monotonic() - began
        with tempfile.TemporaryDirectory() as place:
            for kind in ("parquet", "csv"):
                began = time.monotonic()
                export_study(store, study.id, kind, Path(place) / f"runs.{kind}")
                figures[f"export to {kind}"] = time.monotonic() - began
    return {name: round(seconds, 3) for name, seconds in figures.items()}


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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--trials", type=int, default=640)
    parser.add_argument("--strategy", default="ga")
    parser.add_argument("--launch", type=float, default=0.0, help="seconds that a launch takes")
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--store", metavar="URL", help="a PostgreSQL database for this alone")
    parser.add_argument("--json", metavar="FILE")
    given = parser.parse_args()
    with database(given.store) as fresh:
        rows = [
            crew(fresh(), workers, given.trials, given)
            for workers in dict.fromkeys((1, 8, given.workers))
        ]
        spread = (100, 1) if given.runs else ()
        figures = {f"{n} studies": large(fresh(), given.runs, n) for n in spread}
    slow = [
        f"{name}, {case}"
        for case, seconds in figures.items()
        for name, s in seconds.items()
        if s > 2 and name != "filling"
    ]
    data = {"crews": rows, "seconds": figures, "above 2 s": slow or "none"}
    report("workers_scale", data, given.json)
    return 0


if __name__ == "__main__":
    run_benchmark(main)
