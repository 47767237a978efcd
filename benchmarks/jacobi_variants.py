"""Jacobi3D on one node: the six variants side by side, and the curve over the over-decomposition.

    python -m benchmarks.jacobi_variants [--input large] [--blocks 7] [--json FILE] [--figure FILE]

A block is one run of every case in random order, so that drifts meet all alike.  Every case uses
all cores: flat MPI, overlap and over with one process per core, threads, barrier and mate with
``--workers`` per process.  Ratios are times over those of flat MPI in the same block (below 1:
faster), with the exact interval of their median.  Foreign load rejects a run, which is then
repeated.  No new block is begun after ``--minutes``; the whole takes at most that and one block.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.cli.options import TargetWords
from autotune.space.setting import Setting
from autotune.stats import Comparison, compare, comparison_words, estimate
from autotune.study.resources import placement
from autotune.study.target import Target
from benchmarks.common import ROOT, report, table
from benchmarks.svg_curve import Point, curve
from runner.guard import wait_quiet
from runner.launch import Runner
from runner.lock import MachineLock
from runner.mpi.discover import adapter
from runner.types import LaunchSpec, RunRecord

FACTORS = (1, 2, 4, 8, 16)
CURVES = ("over", "barrier", "mate")
SIDE_BY_SIDE = 4
"""The over-decomposition factor (and the number of tiles) in the comparison of all variants."""
BREAKDOWN = ("compute_s", "mpi_s", "buffering_s", "waiting_s", "other_s", "end_s", "compute_cpu_s")
FIGURE = ROOT / "docs" / "figures" / "jacobi_odf.svg"
MIN_BLOCKS = 6
"""Fewest blocks that give a 95 % interval."""
QUIET_S = 60.0
GIVE_UP = 5
"""Rejections of one run in a row after which the machine is too busy."""


@dataclass(frozen=True)
class Case:
    """One layout on all cores; ``factor``: ranks per worker, or tiles."""

    variant: str
    processes: int
    workers: int
    factor: int

    @property
    def name(self) -> str:
        return (
            self.variant if self.variant in ("mpi", "threads") else f"{self.variant} {self.factor}"
        )

    @property
    def words(self) -> tuple[str, ...]:
        """The program's options."""
        words = ["--variant", self.variant]
        if self.variant == "threads":
            words += ["--workers", str(self.workers)]
        elif self.variant == "overlap":
            words += ["--ranks-per-process", str(self.factor)]
        elif self.variant != "mpi":
            ranks = str(self.workers * self.factor)
            words += ["--workers", str(self.workers), "--ranks-per-process", ranks]
        return tuple(words)


def cases(cores: int, workers: int, factors: Sequence[int]) -> list[Case]:
    """Flat MPI first; the side-by-side comparison's factor is always there."""
    processes = cores // workers
    found = [
        Case("mpi", cores, 1, 1),
        Case("overlap", cores, 1, SIDE_BY_SIDE),
        Case("threads", processes, workers, 1),
    ]
    for factor in sorted({*factors, SIDE_BY_SIDE}):
        found.append(Case("over", cores, 1, factor))
        found += [Case(variant, processes, workers, factor) for variant in ("barrier", "mate")]
    return found


def launch_of(case: Case, target: Target) -> LaunchSpec:
    """The case's run under the cluster's own launch options."""
    plain = target.spec(None, Setting())
    family = target.library.family
    where = placement(plain.placement, case.workers, family, plain.launch_options)
    return dataclasses.replace(
        plain, program=(*plain.program, *case.words), ranks=case.processes, placement=where
    )


class Bench:
    """Runs that count, and how many did not."""

    def __init__(self, runner: Runner, target: Target) -> None:
        self._runner, self._target = runner, target
        self.rejected = 0

    def run(self, case: Case) -> RunRecord:
        """One valid run; ends the program where there is none to be had."""
        spec = launch_of(case, self._target)
        for _ in range(GIVE_UP):
            record = self._runner.run(spec)
            if record.valid:
                return record
            if record.state != "foreign_load":
                sys.exit(f"{case.name}: {record.state}: {record.reason}\n{record.stderr_tail}")
            self.rejected += 1
            wait_quiet(QUIET_S)
        sys.exit(f"{case.name}: the machine is too busy: {record.reason}")


def measure(
    bench: Bench, every: list[Case], blocks: int, minutes: float
) -> dict[Case, list[RunRecord]]:
    """The runs of each case, one per block."""
    found: dict[Case, list[RunRecord]] = {case: [] for case in every}
    began = time.monotonic()
    order = random.Random(0)
    bench.run(every[0])  # the first run of all is an outlier
    for block in range(blocks):
        if block and time.monotonic() - began > 60 * minutes:
            print(f"stopped after {block} of {blocks} blocks: {minutes:g} minutes are over")
            break
        for case in order.sample(every, len(every)):
            found[case].append(bench.run(case))
    return found


def seconds(records: list[RunRecord]) -> list[float]:
    return [record.value_s for record in records]


def against_flat(flat: list[RunRecord], records: list[RunRecord]) -> Comparison:
    return compare(seconds(flat), seconds(records))


def ratio(comparison: Comparison) -> Point:
    """Time over that of flat MPI: median, low and high end."""
    return (
        1 / (1 + comparison.gain),
        1 / (1 + comparison.hi),
        1 / (1 + comparison.lo),
    )


def middle(records: list[RunRecord], key: str) -> float:
    """Median of a figure of the program's JSON line."""
    return statistics.median(float(record.extra[key]) for record in records)


def row(case: Case, flat: list[RunRecord], records: list[RunRecord]) -> dict[str, Any]:
    """A line of the tables; times in seconds, parts as means per core."""
    time_s = estimate(seconds(records))
    value, low, high = ratio(against_flat(flat, records))
    line: dict[str, Any] = {
        "case": case.name,
        "layout": f"{case.processes} x {case.workers}",
        "solver_s": f"{time_s.median:.4f}",
        "from..to": f"{time_s.lo:.4f}..{time_s.hi:.4f}",
        "time/mpi": f"{value:.3f}" if case.variant != "mpi" else "1",
        "interval": f"{low:.3f}..{high:.3f}" if case.variant != "mpi" else "-",
    }
    line |= {key.removesuffix("_s"): f"{middle(records, key):.3f}" for key in BREAKDOWN}
    line |= {"messages": f"{middle(records, 'messages'):.0f}"}
    line |= {"MB": f"{middle(records, 'bytes') / 1e6:.1f}"}
    return line


def draw(found: dict[Case, list[RunRecord]], flat: list[RunRecord], path: Path, title: str) -> None:
    """Write the figure of the curve over the factor."""
    lines = {
        variant: {
            case.factor: ratio(against_flat(flat, records))
            for case, records in found.items()
            if case.variant == variant
        }
        for variant in CURVES
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    text = curve(lines, title, "ranks per core", "time / time of flat MPI")
    path.write_text(text, encoding="utf-8")


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--input", default="large", help="input of Jacobi3D")
    add("--blocks", type=int, default=7, help=f"below {MIN_BLOCKS} there are no intervals")
    add("--cores", type=int, help="default: all of the machine")
    add("--workers", type=int, help="per process in threads, barrier, mate; default: the cores")
    add("--factors", type=int, nargs="+", default=FACTORS, help="ranks per core")
    add("--minutes", type=float, default=11.0, help="begin no block after that")
    add("--json", metavar="FILE", help="write the figures as JSON")
    add("--figure", type=Path, default=FIGURE, metavar="FILE", help="SVG")
    add("--no-guard", dest="guard", action="store_false", help="for trying out, not for figures")
    return parser


def main() -> int:
    given = options().parse_args()
    words = TargetWords(None, "jacobi3d", given.input, given.cores, "local", None, None, None, 120)
    target = words.resolve()
    cores = given.cores or target.cores
    target = dataclasses.replace(target, ranks=cores)
    workers = given.workers or cores
    if cores % workers:
        options().error(f"--workers {workers} does not divide {cores} cores")
    every = cases(cores, workers, given.factors)
    began = time.monotonic()
    with MachineLock("exclusive"), Runner(adapter(target.library), guard=given.guard) as runner:
        bench = Bench(runner, target)
        found = measure(bench, every, given.blocks, given.minutes)
    flat = found[every[0]]
    side = [c for c in every if c.variant not in CURVES or c.factor == SIDE_BY_SIDE]
    print("the six variants; parts of the solver's time are medians of the mean per core, seconds")
    table([row(case, flat, found[case]) for case in side])
    print("\nover the over-decomposition factor (the number after the variant)")
    table([row(case, flat, found[case]) for case in every if case.variant in (*CURVES, "mpi")])
    title = f"Jacobi3D, input {given.input}, {cores} cores, {len(flat)} blocks"
    draw(found, flat, given.figure, title)
    compared = {c.name: comparison_words(against_flat(flat, found[c])) for c in every[1:]}
    raw = {
        "rows": {c.name: row(c, flat, found[c]) for c in every},
        "runs": {c.name: seconds(found[c]) for c in every},
    }
    figures = {
        "input": given.input,
        "blocks": len(flat),
        "guard": given.guard,
        "rejected": bench.rejected,
        "wall_s": round(time.monotonic() - began),
        **compared,
    }
    print()
    report("jacobi variants", figures, given.json)
    if given.json:
        # Too long to print: the tables above show what is worth seeing.
        path = Path(given.json)
        path.write_text(json.dumps({**json.loads(path.read_text()), **raw}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
