"""Every NAS-style kernel at 4 ranks: seconds, share of time in MPI, and the gain by tuning.

    python -m benchmarks.nas_table --keep DIR [--kernels cg mg] [--json FILE]

Each kernel gets some runs under the default, then ``autotune search --strategy ga --trials 40``.
The answer is a gain with its 95 % interval, or that the default stays. The classes are those that
take about 0.5 to 2 seconds at 4 ranks on two cores; ``--budget`` limits each search.

Each finished kernel is stored in DIR as JSON and not run again. The searches store their runs in
DIR/results.db, so that an interrupted one (Ctrl-C, a kill) continues with the same command.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from benchmarks.common import autotune, options, rejected_share, report, run_benchmark, table
from benchmarks.harness.bench import Bench, Busy
from benchmarks.harness.launches import Place
from runner.files import write_atomically

CLASSES = {
    "is": "B", "ep": "W", "cg": "A", "mg": "A", "ft": "A", "lu": "W", "bt": "W", "sp": "W",
}  # fmt: skip
RUNS = 3
DECIDED = {"recommended", "keep_default", "inconclusive"}
"""Status of a search that is over; a search with another status is tried again by the next call."""
Row = dict[str, Any]


def parser() -> argparse.ArgumentParser:
    made = options(__doc__)
    add = made.add_argument
    add("--keep", type=Path, required=True, metavar="DIR", help="finished kernels and the database")
    add("--kernels", nargs="+", choices=list(CLASSES), default=list(CLASSES), help="default: all")
    add("--class", dest="problem", choices="SWAB", help="for all; default: as they take a second")
    add("--ranks", type=int, default=4)
    add("--trials", type=int, default=40)
    add("--budget", default="170s", help="machine time of one search; default 170s")
    return made


def main() -> int:
    given = parser().parse_args()
    given.keep.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for number, kernel in enumerate(given.kernels, start=1):
        problem = given.problem or CLASSES[kernel]
        path = place(given, kernel, problem)
        row = kept(path)
        if row is None:
            row = measure(given, kernel, problem)
            if row.get("status") in DECIDED:
                write_atomically(path, json.dumps(row, indent=2) + "\n")
        rows.append(row)
        print(f"{number}/{len(given.kernels)} {kernel}: {answer(row)}", file=sys.stderr, flush=True)
    table([cells(row) for row in rows])
    open_ = [row["kernel"] for row in rows if row.get("status") not in DECIDED]
    figures = {"trials": given.trials, "guard": not given.guard, "open": open_, "rows": rows}
    report("nas table", figures, given.json)
    return 1 if open_ else 0


def measure(given: argparse.Namespace, kernel: str, problem: str) -> Row:
    """The default's seconds and share of MPI, then the search; ``status`` says how it ended."""
    row: Row = {"kernel": kernel, "class": problem, "ranks": given.ranks}
    target = Place.of().target(f"nas-{kernel}", problem, given.ranks, timeout_s=1200.0)
    try:
        with target.locked_runner(guard=not given.guard) as runner:
            bench = Bench(runner, give_up=6, quiet_s=20.0)
            runs = [bench.run(target.spec(None)).extra for _ in range(RUNS + 1)][1:]
    except Busy as reason:
        return row | {"status": "too_noisy", "reason": f"{reason}"}
    for name, key in (("seconds", "solver_s"), ("mpi_share", "mpi_share"), ("mops", "mops")):
        row[name] = statistics.median(extra[key] for extra in runs)
    found = autotune(
        *("search", "--app", f"nas-{kernel}", "--input", problem),
        *("--ranks", f"{given.ranks}", "--strategy", "ga", "--trials", f"{given.trials}"),
        *("--budget", given.budget, "--store", str(given.keep / "results.db"), *given.guard),
        *("--params-file", str(given.keep / f"nas-{kernel}.conf")),
        timeout_s=3600,
    )
    result = found.result
    if not result:
        return row | {"status": "failed", "reason": found.text.splitlines()[-1:]}
    return row | {
        "status": result["status"],
        "gain": result["gain"],
        "ci": result["gain_ci95"],
        "setting": result["recommended"]["setting"],
        "rejected": rejected_share(result),
        "wall_s": found.wall_s,
        "result": result,
    }


def place(given: argparse.Namespace, kernel: str, problem: str) -> Path:
    """The file of one question; other ranks or trials have another file."""
    folder: Path = given.keep
    return folder / f"nas-{kernel}-{problem}-{given.ranks}-{given.trials}.json"


def kept(path: Path) -> Row | None:
    """The stored result of a kernel; one that is not decided is measured again."""
    row = json.loads(path.read_text()) if path.exists() else {}
    return row if row.get("status") in DECIDED else None


def answer(row: Row) -> str:
    """The answer of the search, in words."""
    status = row.get("status")
    if status == "recommended":
        low, high = (f"{end:+.1%}" if end is not None else "open" for end in row["ci"])
        return f"{row['gain']:+.1%} ({low} to {high})"
    words = {"keep_default": "default stands", "inconclusive": "default stands (not decided)"}
    return words.get(f"{status}", f"open: {status}")


def cells(row: Row) -> dict[str, str]:
    """A line of the table, with the setting if one was proven."""
    known = "seconds" in row
    setting = ",".join(f"{k}={v}" for k, v in (row.get("setting") or {}).items())
    return {
        "kernel": row["kernel"].upper(),
        "class": row["class"],
        "ranks": f"{row['ranks']}",
        "seconds": f"{row['seconds']:.3f}" if known else "-",
        "in MPI": f"{row['mpi_share']:.0%}" if known else "-",
        "gain of tuning": answer(row),
        "setting": setting or "-",
    }


if __name__ == "__main__":
    run_benchmark(main)
