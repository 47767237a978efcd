"""Graphs of tasks against the plain MPI forms of the same programs, each tuned with equal budgets.

    python -m benchmarks.tarragon_goals --store URL [--places node testbed] [--only nw]

Every form of a program (blocking messages, asynchronous ones, tasks) gets as many settings: its
usual one, those that its space begins with, and drawn ones. Each runs once, the fastest quarter
three times more, and the fastest by its median is the form's tuned setting. Between nodes every
second one has a larger eager limit of TCP: a form with long messages must not lose by the library's
default alone. Then all forms, as they come and tuned, run in interleaved blocks, guard on. The
table has the gain of the tasks over each other form with its interval. The same command with the
same store continues. Needs a testbed that is up for the place testbed.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from autotune.space import DEFAULT, Setting, Space
from autotune.stats import compare
from autotune.store import Store
from autotune.study.budget import Budget
from autotune.study.comparison import hang_limit
from autotune.study.confirmation import Blocks
from autotune.study.run_history import CONFIRM, WARMUP
from autotune.study.session import Session
from autotune.study.study_key import study_key
from benchmarks.common import options, report, run_benchmark, store_at, table
from benchmarks.program_cells import PLACES, Cell

PART = 0.7
"""Part of limit - 1 that the tasks shall reach; limit = T / (T - waiting) of the tuned form."""
KEPT = 4
"""One in so many settings of a form runs three times more."""
GRAPH = "tasks"
EAGER = Setting({"btl_tcp_eager_limit": 262144})


@dataclass(frozen=True)
class Contest:
    """One program at one place: and the variants of each of its forms."""

    key: str
    app: str
    input: str
    forms: Mapping[str, tuple[str, ...]]
    goals: Mapping[str, float]
    """The smallest speed-up of the tasks over a form; without one it is :data:`PART` of what the
    form's waiting allows."""


NW = {"blocking": ("mpi",), "asynchronous": ("async",), GRAPH: ("block", "panel")}
LU = {"step by step": ("mpi",), GRAPH: ("tarragon",)}
JACOBI = {"all then all": ("mpi",), "split phase": ("overlap",), GRAPH: ("tarragon",)}
CONTESTS = (
    Contest("nw", "needleman-wunsch", "default", NW, {"blocking": 1.10, "asynchronous": 1.05}),
    Contest("lu", "sparse-lu", "poisson", LU, {"step by step": 1.05}),
    Contest("lu-band", "sparse-lu", "band", LU, {"step by step": 1.05}),
    Contest("jacobi", "jacobi3d", "face", JACOBI, {}),
    Contest("jacobi-4", "jacobi3d", "face4", JACOBI, {}),
    Contest("jacobi-16", "jacobi3d", "face16", JACOBI, {}),
)


def drawn(
    space: Space, variants: Sequence[str], count: int, seed: int, also: Setting
) -> list[Setting]:
    """The usual setting of each variant, those that the space begins with, then drawn ones, half as
    many as ``count`` and each with ``also`` too, if that is not the default."""
    count = count if also == DEFAULT else max(count // 2, 1)
    rng = np.random.default_rng(seed)
    usual = [Setting({"variant": name}) for name in variants]
    begun = [start for start in space.starts if start.get("variant") in variants]
    found = {space.canonical(one): None for one in (*usual, *begun)}
    for _ in range(200 * count):
        if len(found) >= count:
            break
        one = space.sample(rng).updated(Setting({"variant": variants[len(found) % len(variants)]}))
        one = space.canonical(one)
        if one != DEFAULT and space.is_valid(one):
            found[one] = None
    every = list(found)
    return every if also == DEFAULT else [s for one in every for s in (one, one.updated(also))]


def fastest(
    settings: Iterable[Setting], times: Mapping[Setting, list[float]], count: int = 1
) -> list[Setting]:
    """Those with the smallest medians."""

    def middle(setting: Setting) -> float:
        return statistics.median(times[setting]) if times.get(setting) else math.inf

    return sorted(settings, key=lambda s: (middle(s), s.key))[:count]


class Measured:
    """Blocks of settings in one session, and the times of each."""

    def __init__(self, on: Session, seed: int) -> None:
        self._on, self._seed = on, seed
        self._on.evaluator.budget = Budget(self._on.evaluator.history)
        warm = self._on.evaluator.run(DEFAULT, WARMUP)
        self._limit_s = hang_limit(warm.record.wall_s, self._on.evaluator.budget)

    def records(self, phase: str, setting: Setting) -> list[Any]:
        """The valid runs of a setting in a phase."""
        known = self._on.evaluator.history.blocks(f"{CONFIRM}:{phase}")
        own = [block[setting.key].record for block in known.values() if setting.key in block]
        return [record for record in own if record.valid]

    def blocks(self, phase: str, settings: Sequence[Setting], count: int) -> list[dict[str, float]]:
        """Seconds of every setting that was valid, in each block, by its key."""
        name = f"{CONFIRM}:{phase}"
        others = [s for s in settings if s != DEFAULT]
        Blocks(self._on.evaluator, name, others, self._seed, self._limit_s).ensure(count)
        known = self._on.evaluator.history.blocks(name)
        return [
            {key: e.record.value_s for key, e in known[n].items() if e.record.valid}
            for n in range(count)
        ]


def limit_of(records: Sequence[Any]) -> float | None:
    """T / (T - waiting), a median over runs; None for a program that does not print its waiting."""
    found = []
    for record in records:
        lines = [line for line in record.stdout_tail.splitlines() if line.startswith("{")]
        said = json.loads(lines[-1]) if lines else {}
        if "waiting_s" in said:
            found.append(said["solver_s"] / (said["solver_s"] - said["waiting_s"]))
    return statistics.median(found) if found else None


def relative(blocks: Sequence[Mapping[str, float]], settings: Iterable[Setting]) -> Any:
    """T / T_default of each setting in each block."""
    return {
        s: [block[s.key] / block[DEFAULT.key] for block in blocks if s.key in block]
        for s in settings
    }


def held(contest: Contest, place: str, given: Any, store: Store) -> list[dict[str, Any]]:
    """Tune every form and compare them; one row for each other form."""
    ranks = 2
    target = Cell(contest.key, ranks, place, app=contest.app, input=contest.input).target(  # type: ignore[arg-type]
        given.testbed
    )
    also = EAGER if place == "testbed" else DEFAULT
    own_space = target.space("tarragon")
    space = target.space("openmpi+openmpi-tcp+tarragon") if also != DEFAULT else own_space
    settings = {
        form: drawn(own_space, variants, given.tries, given.seed, also)
        for form, variants in contest.forms.items()
    }
    every = list(dict.fromkeys(s for own in settings.values() for s in own))
    how = {"settings": [s.key for s in every]}
    key = study_key(target, space, Session.adapter(target), "tarragon", how, given.seed)
    with Session(store, key, target, space) as on:
        measured = Measured(on, given.seed)
        once = relative(measured.blocks("once", every, 1), every)
        kept = [
            s for own in settings.values() for s in fastest(own, once, max(1, -(-len(own) // KEPT)))
        ]
        again = relative(measured.blocks("again", kept, 3), kept)
        times = {s: once.get(s, []) + again.get(s, []) for s in kept}
        tuned = {form: fastest([s for s in own if s in kept], times)[0]
                 for form, own in settings.items()}  # fmt: skip
        usual = {form: own[0] for form, own in settings.items()}
        finalists = list(dict.fromkeys([*tuned.values(), *usual.values()]))
        final = measured.blocks("final", finalists, given.blocks)
        limits = {form: limit_of(measured.records("final", s)) for form, s in tuned.items()}
    rows = []
    for form in contest.forms:
        if form == GRAPH:
            continue
        row: dict[str, Any] = {"program": contest.key, "place": place, "over": form}
        for name, mine, other in (
            ("tuned", tuned[GRAPH], tuned[form]),
            ("as they come", usual[GRAPH], usual[form]),
        ):
            both = [b for b in final if mine.key in b and other.key in b]
            found = compare([b[other.key] for b in both], [b[mine.key] for b in both])
            row[name] = f"{1 + found.gain:.3f} ({1 + found.lo:.3f} .. {1 + found.hi:.3f})"
        limit = limits[form]
        goal = contest.goals.get(form, 1 + PART * (limit - 1) if limit else None)
        row["goal"] = f"{goal:.2f}" if goal else "-"
        row["limit"] = f"{limit:.2f}" if limit else "-"
        row["tasks"], row["other"] = tuned[GRAPH].key, tuned[form].key
        other_s = [block[tuned[form].key] for block in final if tuned[form].key in block]
        row["seconds"] = f"{statistics.median(other_s):.3f}"
        rows.append(row)
    return rows


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--places", nargs="+", choices=PLACES, default=list(PLACES))
    parser.add_argument("--only", metavar="WORD", default="", help="programs with this key")
    parser.add_argument("--tries", type=int, default=12, help="settings of each form")
    parser.add_argument("--blocks", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--testbed", default="testbed", metavar="NAME")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with store_at(given.store) as place_of_store, Store.open(place_of_store) as store:
        for contest in CONTESTS:
            for place in given.places:
                if not given.only or given.only == contest.key:
                    rows += held(contest, place, given, store)
                    table([{k: v for k, v in r.items() if k not in ("tasks", "other")}
                           for r in rows])  # fmt: skip
                    print(f"  tasks: {rows[-1]['tasks']}\n  other: {rows[-1]['other']}", flush=True)
    report("tarragon_goals", {"rows": rows}, given.json)
    return 0


if __name__ == "__main__":
    run_benchmark(main)
