"""Trials of searches that repeat the layout of an earlier one, and what it costs to avoid them.

Each search is the real loop with the default strategy in the library's usual space; only the runs
are simulated: a few parameters act, and each layout has a time of its own. The layouts are those
that the library's own launcher plans (``--do-not-launch``, ``HYDRA_TOPO_DEBUG``), on this machine,
or with ``--model`` on the nodes that hwloc makes up from a description. A trial repeats another one
if both differ in nothing but placements with equal layouts; the default counts as the first trial.
A trial is renamed if its layout has a simpler placement than the launched one. Printed are, for
the usual space and for the placement in it alone: the placements, their distinct layouts, the wall
and CPU seconds of asking for all of them, and the trials, repeated and renamed ones of searches
that are told nothing ("before") and of today's ("after"). The exit code is 1 if one of today's
searches repeats or renames a trial, or if no layout is known.

``--launch`` starts a shell under each placement on this machine instead, and counts the pairs of
placements that the plans call equal although the kernel's masks differ ("wrong"), and the reverse
("missed"). The exit code is 1 if there is a wrong one.

Usage: python -m benchmarks.equal_layouts [--mpi PLACE ...] [--ranks 2] [--trials 100] [--seeds 5]
           [--strategy auto] [--model "pack:2 core:8 pu:1" --cores 16] [--json FILE]
       python -m benchmarks.equal_layouts --launch [--mpi PLACE ...] [--ranks 2] [--json FILE]
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import math
import os
import re
import resource
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from autotune.config.app import app_from_command
from autotune.config.cluster import load_cluster
from autotune.measurement.budget import SearchPlan
from autotune.measurement.rank_layouts import PlacementWatch
from autotune.space import DEFAULT, Setting, Space
from autotune.space.commutativity import for_any_operation
from autotune.space.equal_layouts import KnownLayouts, placements
from autotune.strategies import create
from autotune.study.loop import SearchLoop
from autotune.study.simulation import MemoryTrialStore, SimulatedEvaluator
from autotune.study.trial_store import Trial
from autotune.targets.target import Target
from benchmarks.common import conclude, options, positive, run_benchmark, table
from runner.launch import Runner, rank_layout
from runner.mpi.discover import adapter, find_library
from runner.mpi.rank_layout import RankLayout, Topology
from runner.types import LaunchSpec

SHOW = "echo RANK ${OMPI_COMM_WORLD_RANK-$PMI_RANK} $(grep Cpus_allowed_list /proc/self/status)"
MASK = re.compile(r"^RANK (\d+) Cpus_allowed_list:\s*(\S+)$", re.MULTILINE)
EFFECT = 0.3
"""Largest logarithm of a value's effect on the simulated time; one value of five has one."""


@dataclass
class Planned:
    """The launcher of a target as it answers, with the seconds that its answers took.

    ``model``: hwloc's description of the nodes; "" for this machine.
    """

    target: Target
    model: str
    wall_s: float = 0.0
    cpu_s: float = 0.0
    answers: list[RankLayout | None] = field(default_factory=list)

    def __call__(self, specs: Sequence[LaunchSpec]) -> list[RankLayout | None]:
        library = adapter(self.target.library)
        started, cpu_before = time.perf_counter(), _cpu_of_children()
        if self.model:
            topology = Topology(self.target.cores)
            modelled = {"HWLOC_SYNTHETIC": self.model}
            specs = [dataclasses.replace(spec, env=modelled) for spec in specs]
            self.answers = [rank_layout(library, spec, topology) for spec in specs]
        else:
            self.answers = Runner(library).rank_layouts(specs)
        self.wall_s = time.perf_counter() - started
        self.cpu_s = _cpu_of_children() - cpu_before
        return self.answers


def simulated_s(setting: Setting, names: frozenset[str], rng: np.random.Generator) -> float:
    """Seconds of a run of a setting in its simplest form, with noise of 1 %.

    Its layout, which ``names`` decide, acts as a whole.
    """
    layout = setting.without(*(name for name in setting if name not in names))
    total = _effect(layout.key)
    for name, value in setting.items():
        if name not in names and _byte(f"acts {name}={value}") % 5 == 0:
            total += _effect(f"{name}={value}")
    return math.exp(total + 0.01 * rng.standard_normal())


def _effect(text: str) -> float:
    return 0.0 if text == DEFAULT.key else EFFECT * (_byte(text) / 127.5 - 1)


def _byte(text: str) -> int:
    return hashlib.sha256(text.encode()).digest()[0]


@dataclass(frozen=True)
class Contest:
    """The searches of one space, told of equal layouts or not."""

    target: Target
    space: Space
    planned: Planned
    strategy: str
    trials: int

    @property
    def names(self) -> frozenset[str]:
        """The parameters that decide where ranks run."""
        return self.watch().names

    def watch(self) -> PlacementWatch:
        """What the search asks, answered from the launcher's plans."""
        return PlacementWatch(self.space, self.target, lambda _: self.planned.answers)

    def search(self, known: KnownLayouts, seed: int, *, is_told: bool) -> list[Trial]:
        """The trials of one simulated search; ``known`` are all equal layouts."""
        names = self.names

        def seconds(setting: Setting, rng: np.random.Generator) -> float:
            return simulated_s(known.simplest(setting, self.space), names, rng)

        evaluator = SimulatedEvaluator(seconds, np.random.default_rng([77, seed]))
        trial_store, plan = MemoryTrialStore(), SearchPlan(trials=self.trials)
        strategy = create(self.strategy, self.space, seed=seed)
        watch = self.watch() if is_told else None
        loop = SearchLoop(evaluator, trial_store, strategy, self.space, plan, placements=watch)
        loop.run()
        return trial_store.trials


def repeated(trials: Sequence[Trial], known: KnownLayouts, space: Space) -> int:
    """Number of trials that differ from an earlier one, or the default, in equal layouts only."""
    tried, count = {DEFAULT}, 0
    for trial in trials:
        simplest = known.simplest(trial.effective, space)
        count += simplest in tried
        tried.add(simplest)
    return count


def renamed(trials: Sequence[Trial], known: KnownLayouts, space: Space) -> int:
    """Number of trials whose layout has a simpler placement than the one that was launched."""
    return sum(known.simplest(t.effective, space) != t.effective for t in trials)


def examine(contest: Contest, form: str, seeds: int) -> dict[str, Any]:
    """The row of one space; "after" is None if the launcher does not say where ranks run."""
    space, planned = contest.space, contest.planned
    known, answer = KnownLayouts(space), PlacementWatch(space, contest.target, planned).asked()
    if answer is not None:
        known.learn(answer)
    told = {"before": False, "after": True}
    searches = {
        key: [contest.search(known, seed, is_told=is_told) for seed in range(seeds)]
        for key, is_told in told.items()
    }
    library = contest.target.library
    row: dict[str, Any] = {
        "library": f"{library.family} {library.version}",
        "cores": contest.target.cores,
        "space": form,
        "placements": len(planned.answers),
        "layouts": len({one for one in planned.answers if one is not None}),
        "asked_s": round(planned.wall_s, 2),
        "cpu_s": round(planned.cpu_s, 2),
    }
    for key, each in searches.items():
        row[f"trials_{key}"] = sum(map(len, each))
        row[f"repeated_{key}"] = sum(repeated(trials, known, space) for trials in each)
        row[f"renamed_{key}"] = sum(renamed(trials, known, space) for trials in each)
    return row


def target_of(place: str | None, ranks: int, words: tuple[str, ...] = ("true",)) -> Target:
    """The command under a library on this machine."""
    app = app_from_command(words, None, None)
    return Target.of(app, None, ranks, load_cluster("local"), find_library(place))


def launched_masks(target: Target, spec: LaunchSpec) -> tuple[str, ...] | None:
    """The kernel's CPU list of each rank in a real launch; None if it was refused."""
    library = adapter(target.library)
    done = subprocess.run(
        library.command(dataclasses.replace(spec, read_back=False), Path()),
        env=library.environment(spec, dict(os.environ)),
        capture_output=True,
        text=True,
        check=False,
    )
    masks = dict(MASK.findall(done.stdout))
    return tuple(masks[key] for key in sorted(masks, key=int)) if len(masks) == spec.ranks else None


def launched_row(place: str | None, ranks: int) -> dict[str, Any]:
    """The plans of one library beside the masks of real launches."""
    target = target_of(place, ranks, ("sh", "-c", SHOW))
    space = for_any_operation(target.space())
    names = PlacementWatch(space, target, lambda _: []).names
    specs = [target.spec(space, one) for one in placements(space, names, DEFAULT)]
    plans = Runner(adapter(target.library)).rank_layouts(specs)
    masks = [launched_masks(target, spec) for spec in specs]
    known = [(p, m) for p, m in zip(plans, masks, strict=True) if p and m]
    pairs = list(itertools.combinations(known, 2))
    return {
        "library": f"{target.library.family} {target.library.version}",
        "ranks": ranks,
        "placements": len(specs),
        "compared": len(known),
        "wrong": sum(one[0] == other[0] and one[1] != other[1] for one, other in pairs),
        "missed": sum(one[0] != other[0] and one[1] == other[1] for one, other in pairs),
    }


def rows_of(place: str | None, args: Any) -> list[dict[str, Any]]:
    """The rows of one library: its usual space, and the placement in it alone."""
    target = target_of(place, args.ranks)
    if args.model:
        target = dataclasses.replace(target, cores=args.cores)
    rows = []
    usual = for_any_operation(target.space())
    for form in ("usual", "placement"):
        planned = Planned(target, args.model)
        names = PlacementWatch(usual, target, planned).names
        others = {} if form == "usual" else dict.fromkeys({*usual.names} - names, "left out")
        space = usual.without(others)
        contest = Contest(target, space, planned, args.strategy, args.trials)
        rows.append(examine(contest, form, args.seeds))
    return rows


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--mpi", nargs="+", default=[None], help="libraries, as of --mpi")
    parser.add_argument("--ranks", type=positive, default=2)
    parser.add_argument("--cores", type=positive, default=16, help="cores of the model")
    parser.add_argument("--model", default="", help="hwloc's description of a node")
    parser.add_argument("--strategy", default="auto")
    parser.add_argument("--trials", type=positive, default=100)
    parser.add_argument("--seeds", type=positive, default=5)
    parser.add_argument("--launch", action="store_true", help="compare plans with real launches")
    args = parser.parse_args()
    if args.launch:
        rows = [launched_row(place, args.ranks) for place in args.mpi]
        table(rows)
        wrong = [row["library"] for row in rows if row["wrong"] or not row["compared"]]
        bound = "placements with equal plans have equal masks"
        return conclude("equal_layouts", bound, wrong, {"rows": rows}, args.json)
    rows = [row for place in args.mpi for row in rows_of(place, args)]
    table(rows)
    failures = [
        f"{row['library']}, {row['space']}"
        for row in rows
        if row["repeated_after"] or row["renamed_after"] or not row["layouts"]
    ]
    bound = "no trial of today's searches repeats a layout under another name"
    topology = args.model or "this machine"
    figures = {"topology": topology, "rows": rows}
    return conclude("equal_layouts", bound, failures, figures, args.json)


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    run_benchmark(main)
