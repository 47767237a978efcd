"""Strategies on real programs: the settings they would name, measured together.

    python -m benchmarks.search.live [--runs 25] [--seeds 3] [--blocks 10] [--json FILE]
    python -m benchmarks.search.live --cluster testbed --programs jacobi3d:face:2 nas-is:W:4

Every strategy searches each program on this machine, with each seed in turn, with the search phase
and race of a study. The settings that they would name after so many search runs are then run
interleaved with the default, in blocks of random order, on fresh data. This measurement scores a
strategy, not the runs of its search. Needs a quiet machine.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autotune.errors import WorkError
from autotune.measurement.budget import SearchPlan
from autotune.measurement.events import TrialEnded
from autotune.measurement.measured_study import MeasuredStudy
from autotune.measurement.study_key import study_key
from autotune.space import DEFAULT, Setting, Space
from autotune.store import Store
from autotune.study.limited import Limited
from autotune.study.loop import SearchLoop
from autotune.study.race import Race, race_evidence
from autotune.study.trial_store import StoredTrials
from autotune.targets.target import Target
from benchmarks.common import options, report, run_benchmark, table
from benchmarks.harness.bench import Bench, Busy, interleaved
from benchmarks.harness.figures import speedup
from benchmarks.harness.launches import Place
from benchmarks.search.contestants import maker
from benchmarks.search.naming import named_setting
from benchmarks.search.peers import peer_names

PROGRAMS = ("micro:pingpong-4k:2", "nas-is:W:4", "jacobi3d:halo:2")
STRATEGIES = ("auto", "ga", "ga:thesis", "random")
MARKS = (10, 15, 25, 45, 100)


@dataclass
class Course:
    """The settings a strategy would have named: (search runs, machine seconds, setting)."""

    named: list[tuple[int, float, Setting]] = field(default_factory=list)

    def at(self, runs: int) -> Setting:
        before = [setting for spent, _, setting in self.named if spent <= runs]
        return before[-1] if before else DEFAULT


def search(
    store: Store, target: Target, space: Space, name: str, seed: int, given: argparse.Namespace
) -> Course:
    """Search one program with one strategy."""
    how = (name, {"live": given.runs}, seed, not given.guard)
    key = study_key(target, space, *how)
    course = Course()
    plan = SearchPlan(trials=None)
    with MeasuredStudy(store, key, target, space) as session:
        trial_store = StoredTrials(store, session.study, space, reuse=False)
        session.evaluator.trial_ids = trial_store.ids
        history = session.evaluator.history

        def note(event: Any = None) -> None:
            if event is None or isinstance(event, TrialEnded):
                known = race_evidence(history.entries, trial_store.trials)
                named = named_setting(strategy, known, running.favourite, plan.min_gain)
                course.named.append((history.search_runs, history.launched_s, named))

        strategy = maker(name)(space, seed, (), given.runs)
        limited = Limited(strategy, given.runs, lambda: history.search_runs)
        running = SearchLoop(session.evaluator, trial_store, limited, space, plan, note)  # type: ignore[arg-type]
        running.run()
        if history.search_runs < given.runs:
            Race(running.bench, trial_store.trials).run()
            note()
    return course


def measure(
    target: Target, space: Space, settings: list[Setting], given: argparse.Namespace
) -> dict[Setting, list[float]]:
    """Seconds of each setting, one run per block; infinite if it failed."""
    with target.locked_runner(guard=not given.guard) as runner:
        bench = Bench(runner)

        def seconds(setting: Setting, block: int = 0) -> float:
            try:
                return bench.run(target.spec(space, setting, 120.0)).value_s
            except Busy:
                raise
            except WorkError:
                return math.inf

        seconds(DEFAULT)
        return interleaved(settings, seconds, given.blocks, given.seed)


def on(program: str, store: Store, given: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows of one program."""
    app, name, ranks = program.split(":")
    target = Place.of(given.cluster, given.mpi).target(app, name, int(ranks))
    space = target.space(given.space)
    courses = {}
    for seed in range(given.seed, given.seed + given.seeds):
        for strategy in given.strategies:
            print(f"{program}: {strategy}, seed {seed}", file=sys.stderr, flush=True)
            courses[strategy, seed] = search(store, target, space, strategy, seed, given)
    marks = [*(mark for mark in MARKS if mark < given.runs), given.runs]
    named = {key: {mark: c.at(mark) for mark in marks} for key, c in courses.items()}
    every = list(dict.fromkeys([DEFAULT, *(s for at in named.values() for s in at.values())]))
    print(f"{program}: {len(every)} settings held out", file=sys.stderr, flush=True)
    seen = measure(target, space, every, given)
    medians = {setting: statistics.median(values) for setting, values in seen.items()}
    best = min(medians.values())
    rows = []
    for (strategy, seed), at in named.items():
        row: dict[str, Any] = {"program": program, "strategy": strategy, "seed": seed}
        for mark, setting in at.items():
            row[f"at {mark}"] = round(best / medians[setting], 3)
        last = at[marks[-1]]
        row["names"] = str(last)
        if last != DEFAULT and all(map(math.isfinite, seen[last])):
            row["speed-up"] = str(speedup(seen[DEFAULT], seen[last]))
        rows.append(row)
    shown = {"program": program, "strategy": "default", "seed": "", "names": "default"}
    rows.append(shown | {f"at {m}": round(best / medians[DEFAULT], 3) for m in marks})
    return rows


def over_seeds(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Median of each program and strategy over its seeds; the lower one of two."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["program"], row["strategy"]), []).append(row)
    return [
        {"program": program, "strategy": strategy}
        | {
            mark: statistics.median_low(row[mark] for row in found)
            for mark in found[0]
            if mark.startswith("at ")
        }
        for (program, strategy), found in groups.items()
    ]


def main() -> int:
    """Print the table."""
    parser = options(__doc__)
    add = parser.add_argument
    add("--programs", nargs="+", default=list(PROGRAMS), metavar="APP:INPUT:RANKS")
    add("--strategies", nargs="+", default=list(STRATEGIES), metavar="NAME[:PRESET]")
    add("--peers", action="store_true", help="the peers that are installed, too")
    add("--space", help="default: the cluster's usual one")
    add("--cluster", default="local", help="testbed: it must be up")
    add("--runs", type=int, default=25, help="search runs of each")
    add("--blocks", type=int, default=10, help="of the held-out measurement")
    add("--seed", type=int, default=0, help="the first seed")
    add("--seeds", type=int, default=1, help="searches of each strategy on each program")
    add("--mpi")
    add("--store", help="results database; default: a new one, removed at the end")
    given = parser.parse_args()
    if given.peers:
        given.strategies += peer_names()
    rows = []
    with tempfile.TemporaryDirectory() as place:
        with Store.open(given.store or Path(place) / "live.db") as store:
            for program in given.programs:
                rows += on(program, store, given)
        short = [{k: v for k, v in row.items() if k != "names"} for row in rows]
        table([{k: row.get(k, "") for k in {**short[0], "speed-up": ""}} for row in short])
        if given.seeds > 1:
            table(over_seeds(rows))
    report("search.live", {"rows": rows, "medians": over_seeds(rows)}, given.json)
    return 0


if __name__ == "__main__":
    run_benchmark(main)
