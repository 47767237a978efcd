"""Progress that idle ranks make beside that of threads and of ranks set apart: the goals of Daps.

    python -m benchmarks.daps_checks product --testbed testbed --ranks 8
    python -m benchmarks.daps_checks product-dgemm capability stencil --testbed testbed --ranks 8

A start runs all modes in turn, in random order in each round. Every mode gets the same choices of
the other parameters; those are looked at in blocks of random order. Then each mode runs with its
best choice on fresh blocks, and only these count. Ratios are over the mode that is best of the
static ones (threads, any number of ranks set apart), with 95 % intervals. Needs a testbed and a
machine without other work.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from autotune.space import DEFAULT
from autotune.stats import compare
from benchmarks.checks import valid
from benchmarks.common import options, report, run_benchmark, table
from benchmarks.program_cells import Cell
from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.types import LaunchSpec

PRODUCT = "--program product --width 1024 --edge 12 --dgemms 130,50 --messages 512,8640"
PROGRAMS = {
    "product": f"{PRODUCT} --compute sleep",
    "product-dgemm": "--program product --width 256 --edge 12 --dgemms 130,50 --messages 512,2160",
    "capability": "--program capability --size 4194304 --strided-size 524288",
    "stencil": "--program stencil --cells 2048",
}
CHOICES = ("", "--poll-gap-us 50", "--poll-gap-us 500", "--spins 0")
MORE = (*CHOICES, "--poll-gap-us 10", "--poll-gap-us 50 --spins 0", "--poll-gap-us 200 --spins 5")
"""For a second look at few modes."""
Run = Mapping[str, float]


def modes(ranks_of_node: int, program: str) -> list[str]:
    """All modes; at least one rank of a node computes."""
    ghosts = [f"ghosts:{n}" for n in (1, 2, 4, 8) if n < ranks_of_node]
    return ["none", "thread", *(ghosts if program != "capability" else ghosts[:1]), "dynamic"]


class Starts:
    """Starts of one program on a testbed."""

    def __init__(self, program: str, given: argparse.Namespace) -> None:
        self._program, self._given = program, given
        self._target = self._cell("").target(given.testbed)
        self.each = given.ranks // self._target.cluster.nodes
        self.order = random.Random(given.seed)

    def _cell(self, words: str) -> Cell:
        line = (sys.executable, "-m", "runner.apps.daps", *PROGRAMS[self._program].split(),
                "--daps-config", "none", *words.split())  # fmt: skip
        return Cell("daps", self._given.ranks, "testbed", line, metric="json:seconds",
                    verify="json:verified")  # fmt: skip

    def spec(self, words: str) -> LaunchSpec:
        target = self._cell(words).target(self._given.testbed)
        return target.spec(target.space("openmpi"), DEFAULT)

    def run(self, starts: Sequence[str], blocks: int) -> list[list[dict[str, Run]]]:
        """The medians of each mode, by start and block."""
        specs = [self.spec(words) for words in starts]
        found: list[list[dict[str, Run]]] = [[] for _ in specs]
        with Runner(adapter(self._target.library), guard=not self._given.guard,
                    own_processes=self._target.cluster.own_processes) as runner:  # fmt: skip
            for _ in range(blocks):
                for n in self.order.sample(range(len(specs)), len(specs)):
                    tail = valid(runner, specs[n]).stdout_tail.splitlines()
                    said = json.loads([line for line in tail if line.startswith("{")][-1])
                    parts = list(said["cells"][0]["runs"][0])
                    found[n].append(
                        {c["mode"]: {part: c[part] for part in parts} for c in said["cells"]}
                    )
        return found


def check(program: str, given: argparse.Namespace) -> dict[str, Any]:
    """One program: look at all choices, then run each mode with its best."""
    starts = Starts(program, given)
    names = given.modes or modes(starts.each, program)
    choices = MORE if given.modes else CHOICES
    every = ",".join(names)
    looked = starts.run([f"--modes {every} --rounds 1 {choice}" for choice in choices], given.looks)
    best = {}
    for name in names:
        times = [statistics.median(block[name]["seconds"] for block in blocks) for blocks in looked]
        best[name] = times.index(min(times))
    groups = {n: [name for name in names if best[name] == n] for n in set(best.values())}
    numbers = sorted(groups)
    lines = [f"--modes {','.join(groups[n])} --rounds 1 {choices[n]}" for n in numbers]
    decided = starts.run(lines, given.blocks)
    runs = {name: [block[name] for block in decided[numbers.index(best[name])]] for name in names}
    seconds = {name: [run["seconds"] for run in runs[name]] for name in names}
    medians = {name: statistics.median(own) for name, own in seconds.items()}
    static = min((name for name in names if name not in ("none", "dynamic")), key=medians.get)  # type: ignore[arg-type]
    rows = []
    for name in names:
        row: dict[str, Any] = {"mode": name}
        for part in runs[name][0]:
            row[part] = f"{statistics.median(run[part] for run in runs[name]):.3f}"
        row["with"] = choices[best[name]] or "defaults"
        for other in dict.fromkeys(one for one in ("none", static) if one in seconds):
            gain = compare(seconds[other], seconds[name]) if name != other else None
            row[f"over {other}"] = (
                f"{1 + gain.gain:.2f} ({1 + gain.lo:.2f} .. {1 + gain.hi:.2f})" if gain else ""
            )
        rows.append(row)
    print(
        f"\n{program}: {given.ranks} ranks, {starts.each} on a node; {given.looks} looks at "
        f"{len(choices)} choices, then {given.blocks} fresh blocks; best static mode: {static}"
    )
    table(rows)
    sys.stdout.flush()
    return {"rows": rows, "static": static, "seconds": seconds}


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("programs", nargs="+", choices=list(PROGRAMS), metavar="PROGRAM",
                        help=f"of {', '.join(PROGRAMS)}")  # fmt: skip
    parser.add_argument("--testbed", default="testbed", metavar="NAME")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--modes", nargs="+", metavar="MODE", help="only these, with more choices")
    parser.add_argument("--looks", type=int, default=2)
    parser.add_argument("--blocks", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    found = {program: check(program, given) for program in given.programs}
    report("daps_checks", {"ranks": given.ranks, "checks": found}, given.json)
    return 0


if __name__ == "__main__":
    run_benchmark(main)
