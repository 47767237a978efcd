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
import json
import random
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autotune.space import Setting, Space
from autotune.stats import compare
from autotune.targets.target import Target
from benchmarks.checks import valid
from benchmarks.common import options, report, run_benchmark, table
from benchmarks.program_cells import Cell
from runner.intranode.mcoll.config import FORMS, LIBRARY
from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.types import LaunchSpec

SIZES = {
    "allgather": (64,),
    "allreduce": (8, 512, 2048, 8192, 32768, 131072, 524288),
}
TIMES = {"allgather": 100, "allreduce": 100}
LEAVE = {"two_proc"}
"""Algorithms for two ranks."""
Key = tuple[int, str, int]
"""Bytes, form, objects."""


@dataclass(frozen=True)
class Line:
    """A start: settings of the library, and the program's words."""

    name: str
    setting: tuple[tuple[str, str | int], ...]
    words: str


def target_of(testbed: str, ranks: int, app: str, words: str) -> Target:
    program = (sys.executable, "-m", f"runner.apps.{app}", *words.split())
    cell = Cell(app, ranks, "testbed", program, metric="json:seconds", verify="json:verified")
    return cell.target(testbed)


def library_lines(operation: str, space: Space, words: str) -> list[Line]:
    """coll/han and the algorithms of coll/tuned under both mappings."""
    name = f"coll_tuned_{operation}_algorithm"
    forms: list[tuple[str, tuple[tuple[str, str | int], ...]]] = [("default", ())]
    levels = space[name].levels if name in space.names else ()
    forms += [
        (f"tuned {level}", (("coll_han_priority", 0), (name, level)))
        for level in levels
        if str(level) not in LEAVE
    ]
    return [
        Line(f"{form}{told}", (*setting, *mapping), f"{words} --forms library")
        for form, setting in forms
        for told, mapping in (("", ()), (", by node", (("map_by", "node"),)))
    ]


def own_lines(operation: str, words: str, config: str, ranks_of_node: int) -> list[Line]:
    """All forms with one object and with all, or as a configuration says."""
    if config:
        forms = [f"--mcoll-config {config}"]
    else:
        objects = ",".join(map(str, sorted({1, ranks_of_node})))
        # A start for each form: only the end of what a program prints is kept.
        forms = [
            f"--mcoll-config none --forms {form} --compare-objects {objects}"
            for form in FORMS[operation]
            if form != LIBRARY
        ]
    return [
        Line(f"mcoll{told}", mapping, f"{words} {form}")
        for form in forms
        for told, mapping in (("", ()), (", by node", (("map_by", "node"),)))
    ]


def cells_of(record: Any) -> dict[Key, list[float]]:
    """The times of each cell, in us."""
    lines = [line for line in record.stdout_tail.splitlines() if line.startswith("{")]
    if not lines:
        sys.exit("no result: the JSON line is longer than what is kept of the output; fewer cells")
    said = json.loads(lines[-1])
    return {(c["size"], c["form"], c["objects"]): c["runs_us"] for c in said["cells"]}


class Starts:
    """Lines on a testbed, run in blocks of random order."""

    def __init__(self, testbed: str, ranks: int, guard: bool, seed: int) -> None:
        target = target_of(testbed, ranks, "mcoll", "")
        self.library, self.cluster = target.library, target.cluster
        self.space = target.space("openmpi+openmpi-tcp")
        self._testbed, self._ranks = testbed, ranks
        self._guard, self._order = guard, random.Random(seed)

    def spec(self, line: Line, app: str = "mcoll") -> LaunchSpec:
        target = target_of(self._testbed, self._ranks, app, line.words)
        space = target.space("openmpi+openmpi-tcp")
        return target.spec(space, Setting(dict(line.setting)))

    def run(self, lines: Sequence[Line], blocks: int) -> list[list[dict[Key, float]]]:
        """The median us of each cell, by line and block; a line that fails has none."""
        found: list[list[dict[Key, float]]] = [[] for _ in lines]
        specs = [self.spec(line) for line in lines]
        dead: set[int] = set()
        with Runner(adapter(self.library), guard=self._guard,
                    own_processes=self.cluster.own_processes) as runner:  # fmt: skip
            for _ in range(blocks):
                for n in self._order.sample(range(len(specs)), len(specs)):
                    if n in dead:
                        continue
                    try:
                        record = valid(runner, specs[n])
                    except SystemExit as problem:
                        if "busy" in str(problem):
                            raise
                        print(f"{lines[n].name}: {str(problem)[-200:]}", flush=True)
                        dead.add(n)
                        continue
                    cells = cells_of(record)
                    found[n].append({k: statistics.median(v) for k, v in cells.items()})
        return found


def middle(blocks: Sequence[Mapping[Key, float]]) -> dict[Key, float]:
    """The median over the blocks of each cell."""
    keys = blocks[0] if blocks else {}
    return {key: statistics.median(block[key] for block in blocks) for key in keys}


def collective(operation: str, given: argparse.Namespace) -> dict[str, Any]:
    """Look at all lines, then compare the best ones of each size on fresh blocks."""
    starts = Starts(given.testbed[0], given.ranks, not given.guard, given.seed)
    each = given.ranks // starts.cluster.nodes
    sizes = SIZES[operation]
    words = (
        f"--operation {operation} --sizes {','.join(map(str, sizes))} "
        f"--times {TIMES[operation]} --rounds 3"
    )
    library = library_lines(operation, starts.space, words)
    own = own_lines(operation, words, given.config, each)
    looked = starts.run([*library, *own], given.looks)
    theirs, ours = looked[: len(library)], looked[len(library) :]
    rows = []
    best: dict[int, tuple[int, int, Key]] = {}
    for size in sizes:
        found = [
            (us, n)
            for n, blocks in enumerate(theirs)
            for key, us in middle(blocks).items()
            if key[0] == size
        ]
        mine = [
            (us, n, key)
            for n, blocks in enumerate(ours)
            for key, us in middle(blocks).items()
            if key[0] == size
        ]
        han = next(us for us, n in found if n == 0)
        (us, line), (own_us, own_line, key) = min(found), min(mine)
        best[size] = line, own_line, key
        rows.append({"bytes": size, "default us": f"{han:.0f}",
                     "library": library[line].name, "us": f"{us:.0f}",
                     "mcoll": f"{key[1]}, {key[2]} objects{own[own_line].name[5:]}",
                     "us ": f"{own_us:.0f}"})  # fmt: skip
    print(f"{operation}: medians of {given.looks} blocks; the best is chosen here")
    table(rows)
    sys.stdout.flush()
    verdict = decide(starts, library, own, best, given.blocks)
    return {"looked": rows, "decided": verdict}


def decide(
    starts: Starts,
    library: Sequence[Line],
    own: Sequence[Line],
    best: Mapping[int, tuple[int, int, Key]],
    blocks: int,
) -> list[dict[str, Any]]:
    """Fresh blocks of the lines that are best somewhere."""
    first = sorted({0, *(line for line, _, _ in best.values())})
    second = sorted({line for _, line, _ in best.values()})
    lines = [*(library[n] for n in first), *(own[n] for n in second)]
    found = starts.run(lines, blocks)
    rows = []
    for size, (line, own_line, key) in best.items():
        mine = [block[key] for block in found[len(first) + second.index(own_line)]]
        row: dict[str, Any] = {"bytes": size, "mcoll us": f"{statistics.median(mine):.0f}"}
        for name, at in (("best of the library", first.index(line)), ("default", 0)):
            theirs = [us for block in found[at] for k, us in block.items() if k[0] == size]
            gain = compare(theirs, mine)
            row[f"{name}, us"] = f"{statistics.median(theirs):.0f}"
            row[f"over {name}"] = f"{1 + gain.gain:.2f} ({1 + gain.lo:.2f} .. {1 + gain.hi:.2f})"
        rows.append(row)
    print(f"\nthe best ones again, {blocks} fresh blocks; above 1: mcoll is faster")
    table(rows)
    return rows


def nbody(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Seconds of the steps with the library's allgather and with ours, over nodes."""
    rows = []
    for testbed in given.testbed:
        nodes = target_of(testbed, 1, "nbody", "").cluster.nodes
        starts = Starts(testbed, nodes * given.each, not given.guard, given.seed)
        common = f"--bodies {given.bodies} --steps 20 --variant"
        lines = [Line("library", (), f"{common} mpi"),
                 Line("mcoll", (), f"{common} mcoll --mcoll-config none")]  # fmt: skip
        specs = [starts.spec(line, "nbody") for line in lines]
        found: list[list[dict[str, Any]]] = [[], []]
        order = random.Random(given.seed)
        with Runner(adapter(starts.library), guard=not given.guard,
                    own_processes=starts.cluster.own_processes) as runner:  # fmt: skip
            for _ in range(given.blocks):
                for n in order.sample(range(2), 2):
                    tail = valid(runner, specs[n]).stdout_tail.splitlines()
                    found[n].append(json.loads([x for x in tail if x.startswith("{")][-1]))
        row: dict[str, Any] = {"nodes": nodes, "ranks": nodes * given.each}
        for what in ("seconds", "allgather_s"):
            theirs, mine = ([float(run[what]) for run in runs] for runs in found)
            gain = compare(theirs, mine)
            ratio = f"{1 + gain.gain:.2f} ({1 + gain.lo:.2f} .. {1 + gain.hi:.2f})"
            row |= {f"library {what}": f"{statistics.median(theirs):.3f}",
                    f"mcoll {what}": f"{statistics.median(mine):.3f}",
                    "over" + " " * (what != "seconds"): ratio}  # fmt: skip
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
    figures = nbody(given) if given.part == "nbody" else collective(given.part, given)
    report("mcoll_checks", {"part": given.part, "figures": figures}, given.json)
    return 0


if __name__ == "__main__":
    run_benchmark(main)
