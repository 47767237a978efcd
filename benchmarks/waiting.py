"""Where the ranks of a program wait, and how often they give the processor away.

    python -m benchmarks.waiting [--app nas-lu] [--input W] [--ranks 4] [--blocks 3]
        [--settings default 'btl_sm_flags="send,put,get"' pml=ucx] [--json FILE]

A preloaded library counts the calls of MPI_Send, MPI_Recv, MPI_Wait(all) and MPI_Alltoall, those
in which the rank called sched_yield at least once, these yields, and the seconds. Settings run in
blocks of random order. The table has means over ranks and runs; ``seconds`` is the median of the
program's own figure. Counting costs some time itself, so gains are compared without it. Needs cc,
and a machine without other work.
"""

from __future__ import annotations

import dataclasses
import re
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autotune.targets.setting_syntax import read_settings
from benchmarks.common import ROOT, options, report, run_benchmark, table
from benchmarks.compiled import compiled_library
from benchmarks.harness.bench import Bench, interleaved
from benchmarks.harness.figures import seconds
from benchmarks.harness.launches import Place
from runner.types import RunRecord

SETTINGS = ("default", 'btl_sm_flags="send,put,get"', "pml=ucx")
_LINE = re.compile(r"^waiting (\d+) (\w+) (\d+) (\d+) (\d+) ([\d.]+)$", re.MULTILINE)


def rows_of(name: str, records: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """A line for each kind of call that occurred."""
    found: dict[str, list[tuple[float, ...]]] = {}
    for record in records:
        for _, kind, *figures in _LINE.findall(record.stderr_tail):
            found.setdefault(kind, []).append(tuple(float(one) for one in figures))
    rows = []
    for kind, lines in found.items():
        calls, waited, yields, inside = (statistics.mean(own) for own in zip(*lines, strict=True))
        if calls:
            rows.append(
                {
                    "setting": name,
                    "seconds": f"{statistics.median(seconds(records)):.3f}",
                    "call": kind,
                    "calls": f"{calls:.0f}",
                    "waited": f"{waited / calls:.0%}",
                    "yields a call": f"{yields / calls:.2f}",
                    "s inside": f"{inside:.3f}",
                }
            )
    return rows


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--app", default="nas-lu")
    parser.add_argument("--input", default="W")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("--settings", nargs="+", default=SETTINGS)
    given = parser.parse_args()
    target = Place.of().target(given.app, given.input, given.ranks)
    names = list(given.settings)
    with (
        tempfile.TemporaryDirectory() as scratch,
        target.locked_runner(guard=not given.guard) as runner,
    ):
        source = ROOT / "benchmarks" / "waiting.c"
        preload = {"LD_PRELOAD": str(compiled_library(source, Path(scratch), "-ldl"))}
        space, settings = read_settings(names, target.space(), target.library)
        specs = [target.spec(space, setting) for setting in settings]
        specs = [dataclasses.replace(s, variables=s.variables | preload) for s in specs]
        bench = Bench(runner)
        runs = interleaved(
            range(len(specs)), lambda n, block: bench.run(specs[n], names[n]), given.blocks, 0
        )
    rows = [row for n, records in runs.items() for row in rows_of(names[n], records)]
    table(rows)
    figures = {"app": given.app, "input": given.input, "ranks": given.ranks, "rows": rows}
    report("waiting", figures, given.json)
    return 0


if __name__ == "__main__":
    run_benchmark(main)
