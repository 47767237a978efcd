"""Speed of the NAS-style kernels on one rank, and their start-up at 4 ranks.

    python -m benchmarks.nas_speed [--kernels cg mg] [--classes W A] [--json FILE]

The table shows Mop/s of each kernel and class beside the memory bandwidth and the arithmetic speed
that one core of this machine reaches. These are *estimates* of what the hardware allows, because
the original kernels are not available for comparison. ``share`` is Mop/s over the arithmetic speed
(not for EP and IS, which do not count floating-point operations). ``bytes/op`` is how many bytes of
memory an operation may move before the bandwidth is the limit; a kernel that needs more is bound by
memory.

Start-up is the time from the first line of the program to the first timed iteration. It is that of
the slowest rank, the median of some runs in class S with a warm cache of kernels, and includes the
import of the command itself. The exit code is 1 if one is above the goal.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from typing import Any

from benchmarks.common import conclude, run_benchmark, table
from benchmarks.nas_launch import TooBusy, run
from benchmarks.nas_machine import bandwidth_gb_s, peak_gflops
from runner.launch import Runner
from runner.lock import MachineLock
from runner.mpi.discover import adapter, find_library
from runner.nas.common_options import NAMES

GOAL_S = 1.5
RANKS = 4
NOT_FLOATING = {"ep", "is"}


def speed(runner: Runner, kernel: str, problem_class: str, repetitions: int) -> dict[str, Any]:
    """Solver time (median of repetitions in one launch) and Mop/s on one rank."""
    extra, rejected = run(runner, kernel, problem_class, 1, "--repetitions", f"{repetitions}")
    return {
        "seconds": round(extra["solver_s"], 6),
        "mops": round(extra["mops"], 1),
        "rejected": rejected,
    }


def startup(runner: Runner, kernel: str, runs: int) -> dict[str, Any]:
    """Median seconds from start to the first timed iteration at 4 ranks; a first run warms up."""
    found = [run(runner, kernel, "S", RANKS) for _ in range(runs + 1)][1:]
    seconds = [extra["startup_s"] for extra, _ in found]
    return {
        "median_s": round(statistics.median(seconds), 3),
        "worst_s": round(max(seconds), 3),
        "rejected": sum(rejected for _, rejected in found),
    }


def speed_row(
    kernel: str, problem_class: str, found: dict[str, Any], bandwidth: float, peak: float
) -> dict[str, str]:
    """A line of the table."""
    mops = found["mops"]
    floating = kernel not in NOT_FLOATING
    return {
        "kernel": kernel,
        "class": problem_class,
        "seconds": f"{found['seconds']:.4f}",
        "Mop/s": f"{mops:.1f}",
        "share": f"{mops / (1e3 * peak):.1%}" if floating else "-",
        "bytes/op": f"{1e3 * bandwidth / mops:.1f}" if floating else "-",
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--kernels", nargs="+", choices=NAMES, default=list(NAMES), help="default: all")
    add("--classes", nargs="*", choices=list("SWAB"), default=["W", "A"], help="none: skip speed")
    add("--repetitions", type=int, default=3, help="of the timed part in one launch")
    add("--startups", type=int, default=5, help="launches per kernel; 0: skip start-up")
    add("--json", metavar="FILE", help="write the figures as JSON")
    add("--no-guard", dest="guard", action="store_false", help="for trying out, not for figures")
    given = parser.parse_args()
    rows: list[dict[str, str]] = []
    starts: list[dict[str, Any]] = []
    figures: dict[str, Any] = {}
    busy: list[str] = []
    library = find_library()
    with (
        MachineLock("exclusive"),
        Runner(adapter(library), guard=given.guard) as runner,
    ):
        bandwidth, peak = bandwidth_gb_s(), peak_gflops()
        cases = [(k, c) for c in given.classes for k in given.kernels]
        for number, (kernel, problem_class) in enumerate(cases, start=1):
            say(number, len(cases), f"nas {kernel} {problem_class} on 1 rank")
            try:
                found = speed(runner, kernel, problem_class, given.repetitions)
            except TooBusy as reason:
                busy.append(f"{kernel} {problem_class}: too busy: {reason}")
                continue
            figures[f"{kernel} {problem_class}"] = found
            rows.append(speed_row(kernel, problem_class, found, bandwidth, peak))
        for number, kernel in enumerate(given.kernels if given.startups else [], start=1):
            say(number, len(given.kernels), f"start-up of nas {kernel} on {RANKS} ranks")
            try:
                started = startup(runner, kernel, given.startups)
            except TooBusy as reason:
                busy.append(f"start-up of {kernel}: too busy: {reason}")
                continue
            figures[f"{kernel} start-up"] = started
            starts.append({"kernel": kernel, **started})
    for lines in filter(None, (rows, starts)):
        print()
        table(lines)
    print()
    slow = [f"{s['kernel']}: {s['median_s']} s" for s in starts if s["median_s"] > GOAL_S]
    figures |= {
        "one core, triad, GB/s (estimate)": round(bandwidth, 2),
        "one core, multiply and add, GFLOP/s (estimate)": round(peak, 2),
        "guard": given.guard,
    }
    bound = f"start-up at {RANKS} ranks <= {GOAL_S} s"
    return conclude("nas speed", bound, [*slow, *busy], figures, given.json)


def say(number: int, count: int, what: str) -> None:
    """Print progress to a place where it does not mix with the figures."""
    print(f"{number}/{count} {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        run_benchmark(main)
    except KeyboardInterrupt:
        print("stopped; nothing was written", file=sys.stderr)
        sys.exit(130)
