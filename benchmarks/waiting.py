"""Where the ranks of a program wait, and how often they give the processor away.

    python -m benchmarks.waiting [--app nas-lu] [--input W] [--ranks 4] [--runs 3]
        [--settings default 'btl_sm_flags="send,put,get"' pml=ucx] [--json FILE]

A preloaded library counts the calls of MPI_Send, MPI_Recv, MPI_Wait(all) and MPI_Alltoall, those
in which the rank called sched_yield at least once, these yields, and the seconds. Settings run in
turn. The table has means over ranks and runs; ``seconds`` is the median of the program's own
figure. Counting costs some time itself, so compare gains with benchmarks.transports. Needs cc, and
a machine without other work.
"""

from __future__ import annotations

import dataclasses
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from autotune.api.target import find_target
from autotune.store import Store
from autotune.study.setting_syntax import read_settings
from autotune.targets.request import TargetRequest
from benchmarks.common import ROOT, options, report, run_benchmark, store_at, table
from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.types import RunRecord

SETTINGS = ("default", 'btl_sm_flags="send,put,get"', "pml=ucx")
_LINE = re.compile(r"^waiting (\d+) (\w+) (\d+) (\d+) (\d+) ([\d.]+)$", re.MULTILINE)


def build(place: Path) -> Path:
    """The preloaded library, compiled in ``place``."""
    library = place / "waiting.so"
    words = ["cc", "-O2", "-shared", "-fPIC", "-o", str(library)]
    subprocess.run([*words, str(ROOT / "benchmarks" / "waiting.c"), "-ldl"], check=True)
    return library


def rows_of(name: str, records: list[RunRecord]) -> list[dict[str, Any]]:
    """A line for each kind of call that occurred."""
    found: dict[str, list[tuple[float, ...]]] = {}
    for record in records:
        for _, kind, *figures in _LINE.findall(record.stderr_tail):
            found.setdefault(kind, []).append(tuple(float(one) for one in figures))
    seconds = statistics.median(record.value_s for record in records)
    rows = []
    for kind, lines in found.items():
        calls, waited, yields, inside = (
            statistics.mean(column) for column in zip(*lines, strict=True)
        )
        if calls:
            rows.append(
                {
                    "setting": name,
                    "seconds": f"{seconds:.3f}",
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
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--settings", nargs="+", default=SETTINGS)
    given = parser.parse_args()
    request = TargetRequest(None, given.app, given.input, given.ranks, timeout=120)
    target = find_target(request)
    runs: dict[str, list[RunRecord]] = {name: [] for name in given.settings}
    with (
        store_at(given.store) as place,
        Store.open(place) as store,
        tempfile.TemporaryDirectory() as work,
        Runner(adapter(target.library), guard=not given.guard) as runner,
    ):
        preload = {"LD_PRELOAD": str(build(Path(work)))}
        space, found = read_settings(list(given.settings), target.space(), target.library, store)
        for _ in range(given.runs):
            for name, setting in zip(given.settings, found, strict=True):
                spec = target.spec(space, setting)
                spec = dataclasses.replace(spec, variables=spec.variables | preload)
                record = runner.run(spec)
                if not record.valid:
                    sys.exit(f"{name}: {record.state}: {record.reason}")
                runs[name].append(record)
    rows = [row for name, records in runs.items() for row in rows_of(name, records)]
    table(rows)
    figures = {"app": given.app, "input": given.input, "ranks": given.ranks, "rows": rows}
    report("waiting", figures, given.json)
    return 0


if __name__ == "__main__":
    run_benchmark(main)
