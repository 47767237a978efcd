"""Worker processes on one study: trials a second, conflicts, CPU seconds a trial, and their bounds.

    python -m benchmarks.workers_scale [--workers 1 8 64] [--strategy random ga auto]
        [--database sqlite postgres] [--trials 640] [--launch 0] [--json FILE]

Each worker is a process with its own connection. The search phase, the strategy and the store are
real. Only a launch is replaced by a draw from a landscape (65,536 settings, 8 parameters, 5 %
noise, another speed for each worker's place) after ``--launch`` seconds of sleep. The search does
not end by itself, so that all crews make the same number of trials. The clock runs from the moment
at which all workers have made a few trials of a study of their own until the last one has ended.

The rate is compared with its bound: the workers over the length of a launch, or the cores over the
CPU seconds of a trial (of the workers and of the server), whichever is less. ``fsync_per_s`` is how
often the disk of the database confirms a write; PostgreSQL waits for it at each commit.

PostgreSQL is started if it is installed, with the durability of a real server.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autotune.errors import WorkError
from autotune.space import Setting
from autotune.store import Store, StudyRecord
from autotune.study.loop import SearchLoop
from autotune.study.trial_store import OthersFaster, StoredTrials, Trial
from benchmarks.common import options, positive, report, run_benchmark, table
from benchmarks.crew import SPACE, Landscape, study_key, worker_loop
from tests.servers import postgres, postgres_folder, postgres_tool, postmaster

DATABASES = ("sqlite", "postgres")
WARM_UP = 3
"""Trials of a study of its own with which each worker begins; what it loads is not counted."""
POLL_S = 0.005
SYNCS = 100
"""Writes of which the median time to the disk is taken."""
LANDSCAPE = Landscape.known()
SEED = 1


@dataclass
class CountedTrials(StoredTrials):
    """Counts the claims that another worker took first."""

    conflicts: int = 0

    def open(self, *words: Any) -> Trial:
        try:
            return super().open(*words)
        except OthersFaster:
            # The last trial is also refused, to all who come too late; that is no conflict.
            self.conflicts += len(self.store.trials(self.study.id)) < (self.most or 0)
            raise


def work(
    url: str, number: int, strategy: str, given: argparse.Namespace, shared: bool, start: Any,
    counts: Any,
) -> None:  # fmt: skip
    """One worker's search phase; puts its conflicts and its CPU seconds into ``counts``."""

    def launch() -> None:
        time.sleep(given.launch)

    with Store.open(url) as store:

        def search(study: StudyRecord, most: int) -> tuple[SearchLoop, CountedTrials]:
            store.enroll(study.id)
            trials = CountedTrials(store, study, SPACE, reuse=False)
            seed = store.own_seed(study.id, SEED) if shared else SEED
            loop = worker_loop(
                trials, strategy, LANDSCAPE, number, most, shared, lambda _: launch(), seed
            )
            return loop, trials

        own = replace(study_key(), seed=number + 2)
        search(store.study(own), WARM_UP)[0].run()
        loop, trials = search(store.study(study_key()), given.trials)
        start.wait()
        cpu_s = time.process_time()
        loop.run()
        counts.put((trials.conflicts, time.process_time() - cpu_s))


def crew(
    url: str,
    workers: int,
    strategy: str,
    given: argparse.Namespace,
    server_cpu: Callable[[], float],
) -> dict[str, Any]:
    """Run all workers on a new study; returns what they took, and the bound of their rate."""
    context = multiprocessing.get_context("fork")
    start, counts = context.Barrier(workers + 1), context.Queue()
    with Store.open(url) as store:
        store.study(study_key())
    processes = [
        context.Process(
            target=work, args=(url, number, strategy, given, workers > 1, start, counts)
        )
        for number in range(workers)
    ]
    for process in processes:
        process.start()
    start.wait()
    began, before = time.monotonic(), server_cpu()
    results = list(_results(counts, processes))
    wall = time.monotonic() - began
    for process in processes:
        process.join()
    cpu_s = sum(cpu for _, cpu in results)
    server_s = server_cpu() - before
    with Store.open(url) as store:
        study = store.study(study_key())
        ended = [t for t in store.trials(study.id) if t.estimate is not None]
        runs = sum(store.run_counts(study.id, "state").values())
    best = min(ended, key=lambda t: t.estimate or 1.0)
    of_launches = workers * len(ended) / runs / given.launch if given.launch else float("inf")
    of_cores = (os.cpu_count() or 1) * len(ended) / (cpu_s + server_s)
    rate = len(ended) / wall
    return {
        "strategy": strategy,
        "workers": workers,
        "trials": len(ended),
        "twice": len(ended) - len({t.key for t in ended}),
        "runs": runs,
        "wall_s": round(wall, 2),
        "trials_per_s": round(rate, 1),
        "conflicts_per_trial": round(sum(c for c, _ in results) / len(ended), 3),
        "cpu_ms_per_trial": round(cpu_s / len(ended) * 1e3, 2),
        "server_ms_per_trial": round(server_s / len(ended) * 1e3, 2),
        "bound_per_s": round(min(of_launches, of_cores), 1),
        "of_bound": round(rate / min(of_launches, of_cores), 2),
        "true_ratio": round(LANDSCAPE.ratio(Setting(best.setting)), 3),
    }


def _results(counts: Any, processes: list[Any]) -> Iterator[tuple[int, float]]:
    """What each worker has counted; raises WorkError if one fails."""
    for _ in processes:
        while counts.empty():
            if any(process.exitcode for process in processes):
                for process in processes:
                    process.kill()
                raise WorkError("a worker has failed", code="worker.failed")
            time.sleep(POLL_S)
        yield counts.get()


@contextlib.contextmanager
def database(kind: str) -> Iterator[tuple[Callable[[], str], Callable[[], float], Path]]:
    """What gives the URL of a new, empty place; the CPU seconds of its server; its folder."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield lambda: str(Path(folder) / f"{uuid.uuid4().hex}.db"), lambda: 0.0, Path(folder)
        return
    with postgres(durable=True) as url:
        import psycopg

        def fresh() -> str:
            schema = f"scale_{uuid.uuid4().hex}"
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(f"CREATE SCHEMA {schema}")
            return f"{url}&options=-csearch_path%3D{schema}"

        yield fresh, lambda: _family_cpu(postmaster(url)), postgres_folder(url)


def _family_cpu(leader: int) -> float:
    """CPU seconds of a process, of its living children and of those that have ended."""
    ticks = 0
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(entry.name) == leader:
                    ticks += sum(map(int, fields[11:15]))
                elif int(fields[1]) == leader:
                    ticks += sum(map(int, fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def syncs_per_s(folder: Path) -> float:
    """How often a second the disk of a folder confirms a small write."""
    seconds = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(SYNCS):
            file.write(bytes(8192))
            file.flush()
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            seconds.append(time.perf_counter() - began)
    return 1 / statistics.median(seconds)


def main() -> int:
    """Print the figures."""
    parser = options(__doc__)
    parser.add_argument("--workers", type=positive, nargs="+", default=[1, 8, 64])
    parser.add_argument("--strategy", nargs="+", default=["random", "ga", "auto"])
    parser.add_argument("--database", nargs="+", choices=DATABASES, default=list(DATABASES))
    parser.add_argument("--trials", type=positive, default=640)
    parser.add_argument("--launch", type=float, default=0.0, help="seconds that a launch takes")
    given = parser.parse_args()
    rows = []
    syncs = {}
    for kind in given.database:
        if kind == "postgres" and postgres_tool("initdb") is None:
            print("PostgreSQL is not installed: left out")
            continue
        with database(kind) as (fresh, server_cpu, folder):
            syncs[kind] = round(syncs_per_s(folder))
            for strategy in given.strategy:
                for workers in given.workers:
                    row = crew(fresh(), workers, strategy, given, server_cpu)
                    rows.append({"database": kind, **row})
                    print(rows[-1], file=sys.stderr, flush=True)
    table(rows)
    report(
        "workers_scale",
        {"launch_s": given.launch, "cores": os.cpu_count(), "fsync_per_s": syncs, "crews": rows},
        given.json,
    )
    return 0


if __name__ == "__main__":
    run_benchmark(main)
