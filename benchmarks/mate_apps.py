"""MATE's other applications against flat MPI: Cannon, the hydrodynamics step, uneven multigrid.

    python -m benchmarks.mate_apps [--where node testbed] [--apps cannon:small] [--blocks 7]
        [--tuned cannon=btl_tcp_eager_limit=262144,mpi_event_tick_rate=1] [--before DIR]
        [--json FILE]

Each application's layouts run in blocks of random order on the same cores. On one node these are
two processes of one worker and one process of two workers; on the testbed, two processes on two
nodes. The testbed must be up; --where selects the place. A layout is named by processes x workers x
ranks per process.

Speed-up is flat MPI's time over the layout's, with a 95 % interval. Author-style is factor 4 with
workers = cores. For Cannon there is also the curve over the size of the matrix, for the multigrid
the cost of uneven work with each balancer.

--layouts names some of these layouts, or others with words of the program: those that a recorded
grid found best, for example. So the runs that chose a layout are not those that measure it.

--tuned names the setting that a search found for the flat program (space openmpi on the node,
openmpi-tcp on the testbed). The flat program and MATE's layouts then run under it too ("tuned"),
and the other rows under the part of it that says how often TCP is polled. --before names the
directory of an earlier version of autotune, whose layouts then run in the same blocks.

The verdict names the best layout of MATE by its median, its speed-up over flat MPI, and the part of
the possible gain that it reaches: flat MPI could be T / (T - waiting) times as fast. It also has
the best layout of two workers in a process over the best of two processes. Needs a machine without
other work.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.api.target import find_target
from autotune.space import DEFAULT, Setting
from autotune.targets.request import TargetRequest
from autotune.targets.target import Target
from benchmarks.common import report, run_benchmark, table
from benchmarks.jacobi_cases import CaseRunner, Tuned, against_flat, measure, middle, ratio, seconds
from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.types import RunRecord

STEAL = "--steal"
"""With ``node``: regions of other processes, too. Earlier versions do not know it."""


@dataclass(frozen=True)
class Layout:
    """One layout of an application on two cores; ``label`` is its name in the table."""

    label: str
    processes: int
    workers: int
    words: tuple[str, ...]
    variant: str = "mate"
    tuned: bool = False
    before: str = ""

    @property
    def name(self) -> str:
        return self.label + " before" * bool(self.before)


def flat() -> Layout:
    return Layout("mpi", 2, 1, ("--variant", "mpi"), "mpi")


def on_mate(processes: int, ranks: int, *words: str) -> Layout:
    """The layouts on two cores: two processes of one worker, or one process of two workers."""
    workers = 2 // processes
    kind = ["steal" if words[:1] == (STEAL,) else word for word in words[1:]]
    label = " ".join([f"mate {processes}x{workers}x{ranks}", *kind])
    said = ("--variant", "mate", "--workers", str(workers), "--ranks-per-process", str(ranks))
    return Layout(label, processes, workers, (*said, *words))


def layouts(app: str, where: str) -> list[Layout]:
    """The layouts: flat MPI first, then the author's style, then others."""
    counts = {"cannon": (2, 8, 18, 32), "cloverleaf3d": (4, 2, 8), "flowcart": (2, 3, 4, 8, 16)}[
        app
    ]
    shapes = [2] if where == "testbed" else [2, 1]
    found = [flat()]
    if app == "cannon":
        found.append(Layout("overlap", 2, 1, ("--variant", "overlap"), "mpi"))
    for processes in shapes:
        for count in counts:
            ranks = count if processes == 2 else {8: 16, 18: 36, 32: 64}.get(count, 2 * count)
            if app != "flowcart":
                found.append(on_mate(processes, ranks))
                continue
            found.append(on_mate(processes, ranks, "--balance", "none"))
            if processes == 2:
                kinds = ("shuffle",) if where == "node" else ("consecutive", "shuffle")
                found += [on_mate(processes, ranks, "--balance", kind) for kind in kinds]
            if processes == 2 and where == "node":
                found.append(on_mate(processes, ranks, STEAL, "node"))
    return found


def chosen(others: list[Layout], asked: list[str] | None) -> list[Layout]:
    """The layouts of ``--layouts``, in this order: named as in the tables, or written out."""
    if not asked:
        return others
    known = {layout.name: layout for layout in others}
    return [known.get(text) or written_out(text) for text in asked]


def written_out(text: str) -> Layout:
    """A layout as ``mate PROCESSESxWORKERSxRANKS WORDS``, with the program's own words."""
    found = re.fullmatch(r"mate (\d+)x(\d+)x(\d+)((?: \S+)*)", text)
    if found is None:
        raise SystemExit(
            f"--layouts: {text!r} is neither in the tables nor like 'mate 2x1x4 --split 2'"
        )
    processes, workers, ranks, words = found.groups()
    said = ("--variant", "mate", "--workers", workers, "--ranks-per-process", ranks)
    return Layout(text, int(processes), int(workers), (*said, *words.split()))


def tuned_of(app: str, target: Target, given: Any) -> Tuned:
    """The setting that ``--tuned`` gives for an application."""
    found = dict(text.split("=", 1) for text in given.tuned)
    if app not in found:
        return Tuned()
    space = target.space("openmpi-tcp" if target.cluster.name == "testbed" else "openmpi")
    return Tuned(space, space.canonical(Setting.parse(found[app])))


def run(app: str, name: str, where: str, given: Any) -> list[dict[str, Any]]:
    """The table of one application and input."""
    cluster = "testbed" if where == "testbed" else "local"
    target = find_target(TargetRequest(None, app, name, 2, cluster, given.mpi, None, None, 120))
    own = target.cluster.own_processes
    tuned = tuned_of(app, target, given)
    flat_mpi, *others = layouts(app, where)
    every = [flat_mpi, *chosen(others, given.layouts)]
    best_flat = every[0]
    if tuned.setting != DEFAULT:
        best_flat = dataclasses.replace(every[0], label="mpi, tuned", tuned=True)
        also = [
            dataclasses.replace(o, label=f"{o.label}, tuned", tuned=True)
            for o in every
            if o.variant == "mate"
        ]
        every = [every[0], best_flat, *every[1:], *also]
    if given.before:
        older = str(Path(given.before).resolve())
        known = [o for o in every if o.variant == "mate" and not o.tuned and STEAL not in o.words]
        every += [dataclasses.replace(o, before=older) for o in known]
    with Runner(adapter(target.library), guard=given.guard, own_processes=own) as runner:
        bench = CaseRunner(runner, target, tuned)
        found = measure(bench, every, given.blocks, given.minutes)
    rows = []
    for layout in every:
        value, low, high = ratio(against_flat(found[every[0]], found[layout]))
        runs = found[layout]
        row = {
            "app": app,
            "input": name,
            "where": where,
            "layout": layout.name,
            "solver_s": f"{statistics.median(seconds(runs)):.4f}",
            "speed-up": f"{1 / value:.2f}",
            "95 %": f"{1 / high:.2f}..{1 / low:.2f}",
            **({} if best_flat is every[0] else over(found[best_flat], runs)),
            "waiting": f"{middle(runs, 'waiting_s'):.3f}",
            "CPU": f"{middle(runs, 'compute_cpu_s'):.3f}",
        }
        if app == "flowcart":
            row["uneven"] = f"{middle(runs, 'core_imbalance'):.1%}"
        rows.append(row)
    print(f"\n{app} {name}, {where}; {bench.rejected} runs rejected")
    table([{k: v for k, v in row.items() if k not in ("app", "input", "where")} for row in rows])
    said = {"app": app, "input": name, "where": where, **verdict(found, every[0], best_flat)}
    print()
    for key, text in list(said.items())[3:]:
        print(f"{key}: {text}")
    return [*rows, said]


def verdict(
    found: dict[Layout, list[RunRecord]], flat_mpi: Layout, tuned: Layout
) -> dict[str, Any]:
    """The best layout of MATE over flat MPI, and of its two shapes over each other."""

    def best(processes: int | None = None) -> Layout | None:
        able = [
            o
            for o in found
            if o.variant == "mate" and not o.before and processes in (None, o.processes)
        ]
        return min(able, key=lambda o: statistics.median(seconds(found[o])), default=None)

    def times(layout: Layout, other: Layout) -> str:
        value, low, high = ratio(against_flat(found[other], found[layout]))
        return f"{1 / value:.3f} ({1 / high:.3f}..{1 / low:.3f})"

    first = best()
    if first is None:
        return {}
    waits = [float(r.extra["waiting_s"]) / float(r.extra["solver_s"]) for r in found[tuned]]
    limit = 1 / (1 - statistics.median(waits))
    value, _, _ = ratio(against_flat(found[tuned], found[first]))
    said = {
        "best": first.name,
        "over flat MPI": times(first, flat_mpi),
        "over tuned": times(first, tuned),
        "limit": f"{limit:.3f}",
        "part of its gain": f"{(1 / value - 1) / (limit - 1):.0%}",
    }
    one, two = best(1), best(2)
    if one is not None and two is not None:
        said["1 process x 2 workers over 2 x 1"] = f"{one.name} {times(one, two)}"
    return said


def over(tuned: list[RunRecord], runs: list[RunRecord]) -> dict[str, str]:
    """Speed-up over tuned flat MPI, and its interval."""
    value, low, high = ratio(against_flat(tuned, runs))
    return {"over tuned": f"{1 / value:.2f}", "its 95 %": f"{1 / high:.2f}..{1 / low:.2f}"}


def sizes(where: str, given: Any) -> list[dict[str, Any]]:
    """Cannon over the size of the matrix: the best layout of the table against flat MPI."""
    rows = []
    cluster = "testbed" if where == "testbed" else "local"
    asked = TargetRequest(None, "cannon", "tiny", 2, cluster, given.mpi, None, None, 120)
    target = find_target(asked)
    own = target.cluster.own_processes
    with Runner(adapter(target.library), guard=given.guard, own_processes=own) as runner:
        for size, times in ((96, 400), (192, 200), (384, 64), (768, 8), (1152, 4)):
            words = ("--size", str(size), "--iterations", str(times))
            # The input's words come first: another size needs an app without an input.
            app = target.app.model_copy(
                update={
                    "command": (*target.app.command[:3], *words),
                    "inputs": {},
                    "default_input": "",
                }
            )
            here = dataclasses.replace(target, app=app, input=None)
            bench = CaseRunner(runner, here)
            every = [flat(), on_mate(2, 8)]
            found = measure(bench, every, given.blocks, given.minutes / 5)
            value, low, high = ratio(against_flat(found[every[0]], found[every[1]]))
            rows.append(
                {
                    "size": size,
                    "mpi_s": f"{statistics.median(seconds(found[every[0]])):.4f}",
                    "speed-up": f"{1 / value:.2f}",
                    "95 %": f"{1 / high:.2f}..{1 / low:.2f}",
                }
            )
    print(f"\ncannon over its size, {where}: mate 2x1x8 over flat MPI")
    table(rows)
    return rows


INPUTS = {"cannon": "small", "cloverleaf3d": "default", "flowcart": "default"}


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--where", nargs="+", choices=["node", "testbed"], default=["node"])
    apps = [f"{app}:{name}" for app, name in INPUTS.items()]
    add("--apps", nargs="+", metavar="APP[:INPUT]", default=apps, help=" ".join(apps))
    add(
        "--layouts",
        nargs="+",
        metavar="NAME",
        help="only these: as in the tables, or like 'mate 1x2x4 --local-grid 1x4x1'",
    )
    add("--tuned", nargs="+", metavar="APP=SETTING", default=[], help="flat MPI's, as found before")
    add("--blocks", type=int, default=7)
    add("--minutes", type=float, default=5.0, help="for each table: begin no block after that")
    add("--no-sizes", dest="sizes", action="store_false", help="not the curve of Cannon")
    add(
        "--before",
        metavar="DIR",
        help="an earlier version of autotune: its layouts run too",
    )
    add("--mpi")
    add("--json", metavar="FILE")
    add("--no-guard", dest="guard", action="store_false", help="for trying out, not for figures")
    given = parser.parse_args()
    began = time.monotonic()
    rows: list[dict[str, Any]] = []
    curves = {}
    for where in given.where:
        for app, _, name in (text.partition(":") for text in given.apps):
            rows += run(app, name or INPUTS[app], where, given)
        if any(text.startswith("cannon") for text in given.apps) and given.sizes:
            curves[where] = sizes(where, given)
    print(f"\n{time.monotonic() - began:.0f} s in all", file=sys.stderr)
    report("mate_apps", {"rows": rows, "sizes": curves}, given.json)
    return 0


if __name__ == "__main__":
    run_benchmark(main)
