"""Every NAS-style kernel at 4 ranks: seconds, share of time in MPI, and the gain by tuning.

    python -m benchmarks.nas_table --keep DIR [--kernels cg mg] [--markdown FILE] [--json FILE]

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
import time
from pathlib import Path
from typing import Any

from benchmarks.common import autotune, options, rejected_share, report, run_benchmark, table
from benchmarks.nas_launch import TooBusy, run
from runner.launch import Runner
from runner.lock import MachineLock
from runner.mpi.discover import adapter, find_library

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
    add("--classes", nargs="+", default=[], metavar="K=C", help="other classes, such as is=S")
    add("--ranks", type=int, default=4)
    add("--trials", type=int, default=40)
    add("--budget", default="170s", help="machine time of one search; default 170s")
    add("--markdown", type=Path, metavar="FILE", help="where the table goes")
    return made


def main() -> int:
    made = parser()
    given = made.parse_args()
    classes = {**CLASSES, **chosen_classes(made, given.classes)}
    given.keep.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    began = time.monotonic()
    for number, kernel in enumerate(given.kernels, start=1):
        path = place(given, kernel, classes[kernel])
        row = kept(path)
        if row is None:
            say(f"{number}/{len(given.kernels)} nas {kernel} {classes[kernel]}", began)
            row = measure(given, kernel, classes[kernel])
            if row.get("status") in DECIDED:
                path.write_text(json.dumps(row, indent=2) + "\n")
        rows.append(row)
        if given.markdown:
            given.markdown.write_text(markdown(rows))
        left = (len(given.kernels) - number) * (time.monotonic() - began) / number
        rest = f"; about {left:.0f} s left" if left else ""
        say(f"{number}/{len(given.kernels)} {kernel}: {answer(row)}{rest}", began)
    print()
    table([{**cells(row)} for row in rows])
    print()
    open_ = [row["kernel"] for row in rows if row.get("status") not in DECIDED]
    figures = {
        "trials": given.trials,
        "guard": not given.guard,
        "kernels": ", ".join(given.kernels),
        "open": ", ".join(open_) or "none",
    }
    report("nas table", figures, given.json)
    if given.json:
        # Too long to print; the table above shows the main figures.
        file = Path(given.json)
        file.write_text(json.dumps({**json.loads(file.read_text()), "rows": rows}, indent=2) + "\n")
    return 1 if open_ else 0


def measure(given: argparse.Namespace, kernel: str, problem_class: str) -> Row:
    """The default's seconds and share of MPI, then the search; ``status`` says how it ended."""
    row: Row = {"kernel": kernel, "class": problem_class, "ranks": given.ranks}
    try:
        row |= default_runs(given, kernel, problem_class)
    except TooBusy as reason:
        return row | {"status": "too_noisy", "reason": f"{reason}"}
    store = given.store or str(given.keep / "results.db")
    found = autotune(
        *("search", "--app", f"nas-{kernel}", "--input", problem_class),
        *("--ranks", f"{given.ranks}", "--strategy", "ga", "--trials", f"{given.trials}"),
        *("--budget", given.budget, "--store", store, *given.guard),
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
        "search_runs": result["search_runs"],
        "confirmation_runs": result["confirmation_runs"],
        "rejected": rejected_share(result),
        "wall_s": found.wall_s,
        "result": result,
    }


def default_runs(given: argparse.Namespace, kernel: str, problem_class: str) -> Row:
    """Medians of a few launches, after one that warms up."""
    with (
        MachineLock("exclusive"),
        Runner(adapter(find_library()), guard=not given.guard) as runner,
    ):
        runs = [run(runner, kernel, problem_class, given.ranks)[0] for _ in range(RUNS + 1)][1:]
    return {
        "seconds": statistics.median(extra["solver_s"] for extra in runs),
        "mpi_share": statistics.median(extra["mpi_share"] for extra in runs),
        "mops": statistics.median(extra["mops"] for extra in runs),
    }


def chosen_classes(made: argparse.ArgumentParser, words: list[str]) -> dict[str, str]:
    """The classes given as ``is=S`` and so on; ends the program with a message for other text."""
    chosen = {}
    for word in words:
        kernel, _, problem_class = word.partition("=")
        if kernel not in CLASSES or problem_class not in set("SWAB"):
            made.error(f"--classes {word}: expected KERNEL=CLASS, such as is=S")
        chosen[kernel] = problem_class
    return chosen


def place(given: argparse.Namespace, kernel: str, problem_class: str) -> Path:
    """The file of one question; other ranks or trials have another file."""
    name = f"nas-{kernel}-{problem_class}-{given.ranks}-{given.trials}.json"
    folder: Path = given.keep
    return folder / name


def kept(path: Path) -> Row | None:
    """The stored result of a kernel; a file that was cut off is measured again."""
    try:
        row = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return row if isinstance(row, dict) and row.get("status") in DECIDED else None


def answer(row: Row) -> str:
    """The answer of the search, in words."""
    status = row.get("status")
    if status == "recommended":
        low, high = (f"{end:+.1%}" if end is not None else "open" for end in row["ci"])
        return f"{row['gain']:+.1%} ({low} to {high})"
    if status == "keep_default":
        return "default stands"
    if status == "inconclusive":
        return "default stands (not decided)"
    return f"open: {status}"


def cells(row: Row) -> dict[str, str]:
    """A line of the table."""
    known = "seconds" in row
    return {
        "kernel": row["kernel"].upper(),
        "class": row["class"],
        "ranks": f"{row['ranks']}",
        "seconds": f"{row['seconds']:.3f}" if known else "-",
        "in MPI": f"{row['mpi_share']:.0%}" if known else "-",
        "gain of tuning": answer(row),
    }


def markdown(rows: list[Row]) -> str:
    """The table as Markdown, with the setting if one was proven."""
    lines = [{**cells(row), "setting": words(row.get("setting"))} for row in rows]
    head = list(lines[0])
    text = [head, ["---"] * len(head), *(list(line.values()) for line in lines)]
    return "".join(f"| {' | '.join(line)} |\n" for line in text)


def words(setting: dict[str, Any] | None) -> str:
    return ", ".join(f"`{k}={v}`" for k, v in (setting or {}).items()) or "-"


def say(what: str, began: float) -> None:
    """Print progress to a place where it does not mix with the figures."""
    print(f"[{time.monotonic() - began:5.0f} s] {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        run_benchmark(main)
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        sys.exit(130)
