"""Transports of Open MPI on one node or on the testbed: each against the default, in blocks.

    python -m benchmarks.transports nas-lu:W:4 nas-ft:A:4 [--cluster testbed] [--blocks 12]
        [--settings default pml=ucx 'btl_sm_flags="send,put,get"'] [--chosen FILE ...] [--json FILE]

A cell is PROGRAM:INPUT:RANKS. All settings of a cell run in blocks of random order. A gain is the
default's time over the setting's, less one, with a 95 % interval over the blocks.

--chosen names result files of ``autotune search --json`` for these cells, in any order. The setting
that a search recommended then runs in the same blocks ("search"). The verdict compares it with the
best of the settings: the best is chosen on the even blocks, and both are valued on the odd ones.
``share`` is the time of the best over that of the search's choice there. Needs a machine without
other work.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.api.target import find_target
from autotune.space import DEFAULT, Setting, Space
from autotune.stats import compare
from autotune.store import Store
from autotune.study.setting_syntax import read_settings
from autotune.targets.request import TargetRequest
from autotune.targets.target import Target
from benchmarks.common import options, report, run_benchmark, store_at, table
from benchmarks.jacobi_cases import GIVE_UP, QUIET_S
from runner.guard import wait_quiet
from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.types import RunRecord

SEARCH = "search"
NODE = (
    "default",
    "pml=ucx",
    'pml=ucx,UCX_TLS="self,posix,cma"',
    'pml=ucx,UCX_TLS="self,sysv"',
    'pml=ucx,UCX_TLS="self,posix"',
    'btl_sm_flags="send,put,get"',
    "smsc=^cma",
    'btl_sm_flags="send,put,get",smsc=^cma',
)
NODES = ("default", "mpi_event_tick_rate=1", "pml=ucx")


@dataclass
class Cell:
    """A program, input and number of ranks, with its settings by name and their runs."""

    name: str
    target: Target
    space: Space
    settings: dict[str, Setting]
    runs: dict[str, list[RunRecord]]
    rejected: int = 0

    def run(self, runner: Runner, name: str) -> RunRecord:
        """One valid run; ends the benchmark if there is none."""
        spec = self.target.spec(self.space, self.settings[name])
        for _ in range(GIVE_UP):
            record = runner.run(spec)
            if record.valid:
                return record
            if record.state != "foreign_load":
                sys.exit(f"{self.name} {name}: {record.state}: {record.reason}")
            self.rejected += 1
            wait_quiet(QUIET_S)
        sys.exit(f"{self.name} {name}: the machine is too busy: {record.reason}")

    def seconds(self, name: str, part: int | None = None) -> list[float]:
        """Times of a setting in all blocks, or in the even (0) or odd (1) ones."""
        return [r.value_s for i, r in enumerate(self.runs[name]) if part is None or i % 2 == part]


def cell_of(text: str, given: Any, store: Store) -> Cell:
    """The cell with its settings, and the search's choice if a file has it."""
    app, name, ranks = text.split(":")
    request = TargetRequest(None, app, name, int(ranks), given.cluster, given.mpi, timeout=120)
    target = find_target(request)
    words = given.settings or (NODE if target.cluster.nodes == 1 else NODES)
    chosen = searched(target, given.chosen)
    texts = [*words, *([chosen] if chosen else [])]
    space, found = read_settings(texts, target.space(), target.library, store)
    names = [*words, *([SEARCH] if chosen else [])]
    settings = dict(zip(names, found, strict=True))
    return Cell(text, target, space, settings, {name: [] for name in names})


def searched(target: Target, files: list[str]) -> str:
    """The setting that a search of this cell recommended ("default" if none); "" without one."""
    for path in files:
        data = json.loads(Path(path).read_text())
        same = (data["app"], data["ranks"]) == (target.app.name, target.ranks)
        if same and data.get("input") in (target.input, None):
            recommended = data["recommended"]
            return Setting(recommended["setting"]).key if recommended else DEFAULT.key
    return ""


def measure(cell: Cell, given: Any) -> None:
    """Run the blocks of a cell."""
    own = cell.target.cluster.own_processes
    order = random.Random(0)
    names = list(cell.settings)
    launcher = adapter(cell.target.library)
    with Runner(launcher, guard=not given.guard, own_processes=own) as runner:
        cell.run(runner, names[0])  # The very first run is an outlier.
        for _ in range(given.blocks):
            for name in order.sample(names, len(names)):
                cell.runs[name].append(cell.run(runner, name))


def rows_of(cell: Cell) -> list[dict[str, Any]]:
    """A line for each setting."""
    first, *others = cell.settings
    base = cell.seconds(first)
    rows = [
        {"setting": first, "median_s": f"{statistics.median(base):.4f}", "gain": "", "95 %": ""}
    ]
    for name in others:
        seconds = cell.seconds(name)
        found = compare(base, seconds)
        rows.append(
            {
                "setting": name if name != SEARCH else f"{SEARCH}: {cell.settings[name].key}",
                "median_s": f"{statistics.median(seconds):.4f}",
                "gain": f"{found.gain:+.1%}",
                "95 %": f"{found.lo:+.1%} .. {found.hi:+.1%}",
            }
        )
    return rows


def verdict(cell: Cell) -> dict[str, Any]:
    """The best of the settings, and the search's choice against it."""
    exhaustive = [name for name in cell.settings if name != SEARCH]
    best = min(exhaustive, key=lambda name: statistics.median(cell.seconds(name, 0)))
    first = next(iter(cell.settings))
    value = statistics.median(cell.seconds(best, 1))
    said = {"best": best, "best_gain": statistics.median(cell.seconds(first, 1)) / value - 1}
    if SEARCH in cell.settings:
        said["share"] = value / statistics.median(cell.seconds(SEARCH, 1))
    return said


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("cells", nargs="+", metavar="PROGRAM:INPUT:RANKS")
    parser.add_argument("--cluster", default="local")
    parser.add_argument("--mpi")
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--settings", nargs="+", help="the default first")
    parser.add_argument("--chosen", nargs="*", default=[], metavar="FILE")
    given = parser.parse_args()
    data = []
    with store_at(given.store) as place, Store.open(place) as store:
        for text in given.cells:
            cell = cell_of(text, given, store)
            measure(cell, given)
            rows, said = rows_of(cell), verdict(cell)
            print(f"\n{text} on {cell.target.cluster.name}; {cell.rejected} runs rejected")
            table(rows)
            print(", ".join(f"{k} {v:.3f}" if k != "best" else f"{k} {v}" for k, v in said.items()))
            sys.stdout.flush()
            seconds = {name: cell.seconds(name) for name in cell.settings}
            data.append({"cell": text, "rows": rows, **said, "seconds": seconds})
    figures = {"blocks": given.blocks, "cells": data}
    report("transports", figures, given.json)
    return 0


if __name__ == "__main__":
    run_benchmark(main)
