"""The cost of translation: Jacobi3D translated from the annotated program, and written by hand.

    python -m benchmarks.mate_translated [--size 128x128x128] [--blocks 12] [--json FILE]

Both have the same size, iterations, processes, workers, ranks and local grid. A block is one run of
each in random order. The ratio is the translated program's time over that of ``--variant mate`` in
the same block, with the exact interval of its median; the whole interval must lie below 1.05. The
residuals of all runs must be equal to the last digit. The hand-written program also records times
of its phases; the translated one has a barrier of all ranks in its time.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.api.target import find_target
from autotune.stats import comparison_words, estimate
from autotune.targets.request import TargetRequest
from autotune.targets.target import Target
from benchmarks.common import ROOT, conclude, run_benchmark, table
from benchmarks.jacobi_cases import CaseRunner, against_flat, measure, ratio, seconds
from runner.apps.common_grid import show_shape
from runner.apps.common_layout import make_layout
from runner.launch import Runner
from runner.lock import MachineLock
from runner.machine import describe_machine
from runner.mate.translate import translate
from runner.mpi.discover import adapter
from runner.types import RunRecord

SOURCE = ROOT / "runner" / "apps" / "jacobi3d" / "annotated.py"
BOUND = 1.05
MIN_BLOCKS = 6
"""Smallest number of blocks that gives a 95 % interval."""


@dataclass(frozen=True)
class Layout:
    """One of the two programs under one layout; ``ranks`` is the number of ranks per process."""

    translated: bool
    size: tuple[int, ...]
    processes: int
    workers: int
    ranks: int
    variant: str = "mate"
    tuned: bool = False
    before: str = ""

    @property
    def layout(self) -> str:
        return f"{self.processes} x {self.workers} x {self.ranks}"

    @property
    def name(self) -> str:
        return f"{'translated' if self.translated else 'hand-written'} {self.layout}"

    @property
    def words(self) -> tuple[str, ...]:
        """The program's options; the local grid is the one that both would choose."""
        found = make_layout(self.size, self.processes, None, self.ranks, None)
        words = ["--workers", str(self.workers), "--ranks-per-process", str(self.ranks)]
        return (*words, "--local-grid", show_shape(found.local))


class Both:
    """Runs each case by its own program."""

    def __init__(self, runner: Runner, hand: Target, translated: Target) -> None:
        self._benches = (CaseRunner(runner, hand), CaseRunner(runner, translated))

    @property
    def rejected(self) -> int:
        return sum(bench.rejected for bench in self._benches)

    def run(self, case: Layout) -> RunRecord:
        return self._benches[case.translated].run(case)


def target(program: Sequence[str], metric: str, cores: int) -> Target:
    """A program on all cores, under the cluster's own launch options."""
    words = TargetRequest(list(program), None, None, cores, "local", None, metric, None, 120)
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    found = find_target(words)
    around = found.surroundings
    return dataclasses.replace(
        found, surroundings=dataclasses.replace(around, env=around.env | {"PYTHONPATH": path})
    )


def row(hand: list[RunRecord], made: list[RunRecord], case: Layout) -> dict[str, Any]:
    value, low, high = ratio(against_flat(hand, made))
    return {
        "processes x workers x ranks": case.layout,
        "hand-written s": f"{estimate(seconds(hand)).median:.4f}",
        "translated s": f"{estimate(seconds(made)).median:.4f}",
        "ratio": f"{value:.3f}",
        "interval": f"{low:.3f}..{high:.3f}" if len(hand) >= MIN_BLOCKS else "-",
    }


def judge(hand: list[RunRecord], made: list[RunRecord], case: Layout) -> list[str]:
    """Faults of one layout, in words."""
    residuals = {float(record.extra["residual"]) for record in (*hand, *made)}
    problems = []
    if len(residuals) != 1:
        problems.append(f"{case.layout}: different residuals {sorted(residuals)}")
    high = ratio(against_flat(hand, made))[2]
    if len(hand) < MIN_BLOCKS:
        problems.append(f"{case.layout}: {len(hand)} blocks, too few for an interval")
    elif high > BOUND:
        problems.append(f"{case.layout}: not shown to be within the bound: up to {high:.3f}")
    return problems


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--size", default="128x128x128", help="cells")
    add("--iterations", type=int, default=800)
    add("--blocks", type=int, default=12, help=f"below {MIN_BLOCKS} there are no intervals")
    add("--cores", type=int, help="default: all of the machine")
    add("--factor", type=int, default=4, help="ranks per worker")
    add("--minutes", type=float, default=10.0, help="begin no block after that")
    add("--json", metavar="FILE", help="write the figures as JSON")
    add("--no-guard", dest="guard", action="store_false", help="for trying out, not for figures")
    return parser


def main() -> int:
    given = options().parse_args()
    size = tuple(int(n) for n in given.size.split("x"))
    problem = [given.size, str(given.iterations)]
    cores = given.cores or describe_machine().cores
    with tempfile.TemporaryDirectory() as place:
        made = Path(place) / "jacobi_mate.py"
        made.write_text(translate(SOURCE.read_text(encoding="utf-8"), SOURCE.name))
        by_hand = [sys.executable, "-m", "runner.apps.jacobi3d", "--variant", "mate"]
        by_hand += ["--size", problem[0], "--iterations", problem[1]]
        hand = target(by_hand, "json:solver_s", cores)
        translated = target([sys.executable, str(made), *problem], "json:seconds", cores)
        shapes = dict.fromkeys([(1, cores, given.factor * cores), (cores, 1, given.factor)])
        every = [Layout(kind, size, *shape) for shape in shapes for kind in (False, True)]
        with MachineLock("exclusive"), Runner(adapter(hand.library), guard=given.guard) as runner:
            both = Both(runner, hand, translated)
            found: Any = measure(both, every, given.blocks, given.minutes)  # type: ignore[arg-type]
    pairs = [(found[a], found[b], a) for a, b in zip(every[::2], every[1::2], strict=True)]
    table([row(*pair) for pair in pairs])
    print()
    figures = {
        "size": given.size,
        "iterations": given.iterations,
        "blocks": len(pairs[0][0]),
        "guard": given.guard,
        "rejected": both.rejected,
        **{case.layout: comparison_words(against_flat(a, b)) for a, b, case in pairs},
    }
    bound = f"translated / hand-written, upper end of the 95 % interval: {BOUND}"
    failures = [problem for pair in pairs for problem in judge(*pair)]
    return conclude("mate_translated", bound, failures, figures, given.json)


if __name__ == "__main__":
    run_benchmark(main)
