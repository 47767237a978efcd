"""Collectives with several objects on each node beside the library's own: PiP-MColl's goals.

    python -m benchmarks.mcoll_checks allgather --testbed mc4 --ranks 16
    python -m benchmarks.mcoll_checks allreduce --testbed mc4 --ranks 16 --config mcoll.json
    python -m benchmarks.mcoll_checks nbody --testbed mc2 mc4 mc8 --each 2

The library gets as many choices as it has: coll/han and every algorithm of coll/tuned, under both
mappings. All are looked at in blocks of random order; then the best of the library at each size and
the best of ours run again, on fresh blocks, and only these count. Ratios have 95 % intervals.
Needs testbeds of several nodes and a machine without other work.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autotune.errors import WorkError
from autotune.space import Setting
from autotune.targets.target import Target
from benchmarks.common import options, report, run_benchmark, table
from benchmarks.harness.bench import Bench, Busy, interleaved
from benchmarks.harness.figures import speedup
from benchmarks.harness.launches import Place, on_target
from runner.runtimes.intranode.mcoll.config import FORMS, LIBRARY
from runner.types import RunRecord

SIZES = {
    "allgather": (64,),
    "allreduce": (8, 512, 2048, 8192, 32768, 131072, 524288),
}
TIMES = 100
LEAVE = {"two_proc"}
"""Algorithms for two ranks."""
Key = tuple[int, str, int]
"""Bytes, form, objects."""
Cells = dict[Key, float]
"""Microseconds of a call."""


@dataclass(frozen=True)
class Start:
    """A start of a program: settings of the library, and the program's words."""

    name: str
    setting: tuple[tuple[str, str | int | float], ...]
    words: str


def by_both_mappings(name: str, words: str, *setting: tuple[str, str | int | float]) -> list[Start]:
    return [
        Start(name, setting, words),
        Start(f"{name}, by node", (*setting, ("map_by", "node")), words),
    ]


def starts_of_library(operation: str, target: Target, words: str) -> list[Start]:
    """coll/han and the algorithms of coll/tuned; the default is the first."""
    name = f"coll_tuned_{operation}_algorithm"
    space = target.space("openmpi+openmpi-tcp")
    levels = space[name].levels if name in space.names else ()
    words = f"{words} --forms library"
    return by_both_mappings("default", words) + [
        start
        for level in levels
        if str(level) not in LEAVE
        for start in by_both_mappings(
            f"tuned {level}", words, ("coll_han_priority", 0), (name, level)
        )
    ]


def own_starts(operation: str, words: str, config: str, ranks_of_node: int) -> list[Start]:
    """All forms with one object and with all, or as a configuration says."""
    objects = ",".join(map(str, sorted({1, ranks_of_node})))
    # A start for each form: only the end of what a program prints is kept.
    forms = [
        f"--mcoll-config none --forms {form} --compare-objects {objects}"
        for form in FORMS[operation]
        if form != LIBRARY
    ]
    forms = [f"--mcoll-config {config}"] if config else forms
    return [one for form in forms for one in by_both_mappings("mcoll", f"{words} {form}")]


def cells_of(record: RunRecord) -> Cells:
    """The median of each cell."""
    if "cells" not in record.extra:
        raise WorkError("the JSON line is longer than what is kept", code="benchmark.fails")
    cells = record.extra["cells"]
    return {(c["size"], c["form"], c["objects"]): statistics.median(c["runs_us"]) for c in cells}


class Testbed:
    """An application's starts on a testbed, run in blocks of random order."""

    def __init__(self, name: str, app: str, given: argparse.Namespace) -> None:
        self.nodes = Place.of(name).nodes
        self.ranks = self.nodes * given.each if app == "nbody" else given.ranks
        self.target = Place.of(name).target(
            program=(sys.executable, "-m", f"runner.programs.apps.{app}"), ranks=self.ranks,
            metric="json:seconds", verify="json:verified",
        )  # fmt: skip
        self._given = given

    def run(self, starts: Sequence[Start], blocks: int) -> list[list[RunRecord]]:
        """The runs of each start, by block; a start that fails has none."""
        space = self.target.space("openmpi+openmpi-tcp")
        dead: set[Start] = set()
        with self.target.locked_runner(guard=not self._given.guard) as runner:
            bench = Bench(runner)

            def run(start: Start, block: int) -> RunRecord | None:
                words = start.words.split()
                spec = on_target(
                    self.target, words, space=space, setting=Setting(dict(start.setting))
                )
                try:
                    return None if start in dead else bench.run(spec, start.name)
                except Busy:
                    raise
                except WorkError as problem:
                    print(f"{start.name}: {str(problem)[-200:]}", flush=True)
                    dead.add(start)
                    return None

            found = interleaved(starts, run, blocks, self._given.seed)
        return [[one for one in found[start] if one is not None] for start in starts]


def middle(runs: Sequence[RunRecord], size: int) -> Cells:
    """The median over the blocks of each cell of a size."""
    blocks = [cells_of(run) for run in runs]
    keys = [key for key in (blocks[0] if blocks else {}) if key[0] == size]
    return {key: statistics.median(block[key] for block in blocks) for key in keys}


def collective(operation: str, given: argparse.Namespace) -> dict[str, Any]:
    """Look at all starts, then compare the best ones of each size on fresh blocks."""
    testbed = Testbed(given.testbed[0], "mcoll", given)
    sizes = SIZES[operation]
    words = (
        f"--operation {operation} --sizes {','.join(map(str, sizes))} --times {TIMES} --rounds 3"
    )
    library = starts_of_library(operation, testbed.target, words)
    own = own_starts(operation, words, given.config, given.ranks // testbed.nodes)
    looked = dict(zip([*library, *own], testbed.run([*library, *own], given.looks), strict=True))
    rows = []
    best: dict[int, tuple[Start, Start, Key]] = {}
    for size in sizes:
        found = [(us, s.name, s) for s in library for us in middle(looked[s], size).values()]
        mine = [(us, key, s.name, s) for s in own for key, us in middle(looked[s], size).items()]
        (us, name, start), (own_us, key, own_name, own_start) = min(found), min(mine)
        best[size] = start, own_start, key
        rows.append({"bytes": size, "library": name, "us": f"{us:.0f}",
                     "mcoll": f"{key[1]}, {key[2]} objects{own_name[5:]}",
                     "us ": f"{own_us:.0f}"})  # fmt: skip
    print(f"{operation}: medians of {given.looks} blocks; the best is chosen here")
    table(rows)
    sys.stdout.flush()
    again = list(dict.fromkeys([library[0], *(s for one in best.values() for s in one[:2])]))
    fresh = dict(zip(again, testbed.run(again, given.blocks), strict=True))
    decided = [decide(size, fresh, library[0], *chosen) for size, chosen in best.items()]
    print(f"\nthe best ones again, {given.blocks} fresh blocks; above 1: mcoll is faster")
    table(decided)
    return {"looked": rows, "decided": decided}


def decide(
    size: int, runs: Mapping[Start, list[RunRecord]], default: Start, start: Start, own: Start,
    key: Key,
) -> dict[str, Any]:  # fmt: skip
    """A row of fresh figures."""
    mine = [cells_of(run)[key] for run in runs[own]]
    row: dict[str, Any] = {"bytes": size, "mcoll us": f"{statistics.median(mine):.0f}"}
    for name, theirs in (("best of the library", start), ("default", default)):
        us = [v for run in runs[theirs] for k, v in cells_of(run).items() if k[0] == size]
        row[f"{name}, us"] = f"{statistics.median(us):.0f}"
        row[f"over {name}"] = str(speedup(us, mine))
    return row


def nbody(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Seconds of the steps with the library's allgather and with ours, over nodes."""
    common = f"--bodies {given.bodies} --steps 20 --variant"
    starts = [
        Start("library", (), f"{common} mpi"),
        Start("mcoll", (), f"{common} mcoll --mcoll-config none"),
    ]
    rows = []
    for name in given.testbed:
        testbed = Testbed(name, "nbody", given)
        row: dict[str, Any] = {"nodes": testbed.nodes, "ranks": testbed.ranks}
        both = testbed.run(starts, given.blocks)
        for what in ("seconds", "allgather_s"):
            theirs, mine = ([float(run.extra[what]) for run in runs] for runs in both)
            row |= {f"library {what}": f"{statistics.median(theirs):.3f}",
                    f"mcoll {what}": f"{statistics.median(mine):.3f}",
                    f"over, {what}": str(speedup(theirs, mine))}  # fmt: skip
        rows.append(row)
    print(f"Barnes-Hut, {given.bodies} bodies, 20 steps, {given.blocks} blocks")
    table(rows)
    return rows


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("part", choices=["allgather", "allreduce", "nbody"])
    parser.add_argument("--testbed", nargs="+", required=True, metavar="NAME")
    parser.add_argument("--ranks", type=int, default=16)
    parser.add_argument("--each", type=int, default=2, help="nbody: ranks of a node")
    parser.add_argument("--bodies", type=int, default=2000)
    parser.add_argument("--config", default="", metavar="FILE", help="published settings")
    parser.add_argument("--looks", type=int, default=2)
    parser.add_argument("--blocks", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    figures: Any
    figures = nbody(given) if given.part == "nbody" else collective(given.part, given)
    report("mcoll_checks", {"part": given.part, "figures": figures}, given.json)
    return 0


if __name__ == "__main__":
    run_benchmark(main)
