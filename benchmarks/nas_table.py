"""What tuning gains for every NAS-style kernel, on one node and on nodes of a testbed.

    python -m benchmarks.nas_table --keep DIR [--places 1x2 2x2 4x4] [--strategies ga auto]
                                   [--kernels cg mg] [--runs 60] [--list] [--json FILE]

A place is NODESxRANKS: 1x2 is this machine with 2 ranks, 2x2 and 4x4 are testbeds of 2 and 4 nodes
with ``--latency-ms`` (1) each way and 1 Gbit/s. BT and SP need a square number of ranks: they take
the next one. Each cell, a kernel at a place, is searched by each strategy: some runs of the
default, then ``autotune search --runs 60``, in which every launch counts, rejected ones too. The
answer is a gain with its 95 % interval, or that the default stands, with the interval of the best
finalist of the proof. The classes are those that take about a second on two cores.

Each finished search is stored in DIR as JSON and not run again. The searches store their runs in
DIR/STRATEGY.db, so that an interrupted one (Ctrl-C, a kill) continues with the same command, and
none knows the runs of the other strategy.
``--list`` shows what is open and how long it takes, and runs nothing. A testbed needs root.
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common import (
    autotune,
    options,
    positive,
    report,
    run_benchmark,
    table,
)
from benchmarks.harness.bed import Bed
from benchmarks.harness.bench import Bench, Busy
from benchmarks.harness.cells import START_S, Cell, Cells, Row
from benchmarks.harness.launches import Place
from benchmarks.harness.searches import answer, is_decided, outcome

CLASSES = {
    "is": "B", "ep": "W", "cg": "A", "mg": "A", "ft": "A", "lu": "W", "bt": "W", "sp": "W",
}  # fmt: skip
SQUARE = ("bt", "sp")
"""Kernels that run only on square numbers of ranks."""
RUNS = 3
SECONDS = 1.5
"""Of a run, expected before one is known."""


def square_ranks(kernel: str, ranks: int) -> int:
    """The ranks of a kernel where others have so many: the next square for BT and SP."""
    return math.ceil(math.sqrt(ranks)) ** 2 if kernel in SQUARE else ranks


@dataclass(frozen=True)
class Question:
    """A search: what is tuned, where and how."""

    kernel: str
    problem: str
    nodes: int
    ranks: int
    latency_ms: float
    strategy: str
    runs: int

    @property
    def cell(self) -> str:
        """The kernel at its place."""
        far = f"-{self.latency_ms:g}ms" if self.nodes > 1 else ""
        return f"nas-{self.kernel}-{self.problem}-{self.nodes}x{self.ranks}{far}"

    @property
    def name(self) -> str:
        return f"{self.cell}-{self.strategy}-{self.runs}"


def nodes_and_ranks(text: str) -> tuple[int, int]:
    """A place on the command line."""
    place = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", text)
    if place is None or int(place[1]) > int(place[2]):
        raise argparse.ArgumentTypeError(f"{text!r}: expected NODESxRANKS such as 2x4")
    return int(place[1]), int(place[2])


def parser() -> argparse.ArgumentParser:
    arguments = options(__doc__)
    add = arguments.add_argument
    add("--keep", type=Path, required=True, metavar="DIR", help="finished cells and the database")
    add("--kernels", nargs="+", choices=list(CLASSES), default=list(CLASSES), help="default: all")
    add("--class", dest="problem", choices="SWAB", help="for all; default: as they take a second")
    add(
        "--places", nargs="+", type=nodes_and_ranks, default=[(1, 2), (2, 2), (4, 4)],
        metavar="NODESxRANKS", help="default: 1x2 2x2 4x4",
    )  # fmt: skip
    add("--strategies", nargs="+", default=["ga", "auto"], help="default: ga auto")
    add("--runs", type=positive, default=60, help="launches of one search at most; default 60")
    add("--latency-ms", type=float, default=1.0, help="between nodes, each way")
    add("--mpi", help="as for autotune: a family, a directory or a launcher")
    add("--list", action="store_true", help="what is open and how long it takes; run nothing")
    return arguments


def questions(given: argparse.Namespace) -> dict[str, Question]:
    """All searches by name: place after place, so that each testbed is brought up once."""
    every = [
        Question(
            kernel, given.problem or CLASSES[kernel], nodes, square_ranks(kernel, ranks),
            given.latency_ms, strategy, given.runs,
        )
        for nodes, ranks in given.places
        for kernel in given.kernels
        for strategy in given.strategies
    ]  # fmt: skip
    return {one.name: one for one in every}


def main() -> int:
    given = parser().parse_args()
    asked = questions(given)
    cells = Cells(
        given.keep,
        [
            Cell(name, (one.runs + RUNS + 1) * (SECONDS + START_S), f"{one.nodes}")
            for name, one in asked.items()
        ],
        is_decided,
    )
    if given.list:
        cells.show()
        return 0
    with Bed() as bed:
        rows = cells.complete(lambda cell: measure(asked[cell.name], cells, bed, given), answer)
    table([line(row) for row in rows])
    open_ = [cell.name for cell in cells.open()]
    figures = {"runs": given.runs, "guard": not given.guard, "open": open_, "rows": rows}
    report("nas table", figures, given.json)
    return 1 if open_ else 0


def measure(asked: Question, cells: Cells, bed: Bed, given: argparse.Namespace) -> Row:
    """The default's seconds and share of MPI, then the search; ``status`` says how it ended."""
    cluster = bed.up(asked.nodes, asked.latency_ms)
    row: Row = {
        "kernel": asked.kernel, "class": asked.problem, "nodes": asked.nodes,
        "ranks": asked.ranks, "strategy": asked.strategy,
    }  # fmt: skip
    try:
        row |= default_figures(asked, cluster, cells, given)
    except Busy as reason:
        return row | {"status": "too_noisy", "reason": f"{reason}"}
    search_end = autotune(
        *("search", "--app", f"nas-{asked.kernel}", "--input", asked.problem),
        *("--cluster", cluster, "--ranks", f"{asked.ranks}", "--strategy", asked.strategy),
        *("--runs", f"{asked.runs}", "--store", str(given.keep / f"{asked.strategy}.db")),
        *("--params-file", str(given.keep / f"{asked.name}.conf"), *given.guard),
        *(("--mpi", given.mpi) if given.mpi else ()),
        timeout_s=3600,
    )
    return row | outcome(search_end)


def default_figures(
    asked: Question, cluster: str, cells: Cells, given: argparse.Namespace
) -> dict[str, float]:
    """The default's figures: those of the cell's search by another strategy, else measured."""
    names = ("seconds", "mpi_share", "mops")
    for other in cells.folder.glob(f"{asked.cell}-*.json"):
        if (known := cells.kept(other.stem)) is not None and "seconds" in known:
            return {name: known[name] for name in names}
    target = Place.of(cluster, given.mpi).target(
        f"nas-{asked.kernel}", asked.problem, asked.ranks, timeout_s=1200.0
    )
    with target.locked_runner(guard=not given.guard) as runner:
        bench = Bench(runner, give_up=6, quiet_s=20.0)
        runs = [bench.run(target.spec(None)).extra for _ in range(RUNS + 1)][1:]
    keys = ("solver_s", "mpi_share", "mops")
    return {
        name: statistics.median(extra[key] for extra in runs)
        for name, key in zip(names, keys, strict=True)
    }


def line(row: Row) -> dict[str, str]:
    """A line of the table, with the setting if one was proven."""
    known = "seconds" in row
    setting = ",".join(f"{k}={v}" for k, v in (row.get("setting") or {}).items())
    return {
        "kernel": row["kernel"].upper(),
        "class": row["class"],
        "nodes": f"{row['nodes']}",
        "ranks": f"{row['ranks']}",
        "seconds": f"{row['seconds']:.3f}" if known else "-",
        "in MPI": f"{row['mpi_share']:.0%}" if known else "-",
        "by": row["strategy"],
        "runs": f"{row.get('runs', '-')}",
        "gain of tuning": answer(row),
        "setting": setting or "-",
    }


if __name__ == "__main__":
    run_benchmark(main)
