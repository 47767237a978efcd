"""Shows that the testbed behaves as a cluster: effects that exist only between nodes.

They are measured by autotune compare on 2 nodes with 1 ms each way. The table shows what theory
predicts for each comparison beside what was measured. Needs root and a machine without other work;
about ten minutes with the default pairs.

Usage: python -m benchmarks.testbed_proof [--pairs 12] [--only WORD] [--no-guard] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import report, run_benchmark
from runner import testbed as tb

NODES, LATENCY_S, RATE_BPS = 2, 0.001, 1_000_000_000
MICRO = (sys.executable, "-m", "runner.micro")
CHAIN = (
    *(sys.executable, "-m", "runner.apps.jacobi3d", "--size", "16x128x128", "--grid", "4x1x1"),
    *("--iterations", "100", "--verify", "residual"),
)
"""Four ranks in a row with faces of 131 kB.

By slot one pair of neighbours is on different nodes, by node three pairs are.
"""
FLAT = "map_by=node,coll_han_priority=0,mpi_event_tick_rate=1,coll_tuned_allreduce_algorithm"
"""Ranks alternate between the nodes, and coll/han does not group them by node.

The sockets are polled all the time; by default one launch in five polls only every 5 ms.
"""


@dataclass(frozen=True)
class Case:
    """B against A; ``low`` and ``high`` bound the expected ratio of the times, B / A."""

    name: str
    a: str
    b: str
    ranks: int
    program: tuple[str, ...]
    metric: str
    low: float
    high: float
    theory: str


LINEAR, DOUBLING, RING, RABENSEIFNER = 1, 3, 4, 6
"""Numbers of coll/tuned's algorithms."""


def allreduce(name: str, against: int, low: float, high: float, theory: str) -> Case:
    """Recursive doubling on 4 ranks: one of its two exchanges is between the nodes.

    The figure is the fastest of 20 batches, because two ranks share a CPU.
    """
    program = (*MICRO, "allreduce", "--size", "1024", "--count", "200")
    fast, other = f"{FLAT}={DOUBLING}", f"{FLAT}={against}"
    return Case(f"allreduce {name}", fast, other, 4, program, "json:best_us", low, high, theory)


CASES = (
    Case(
        "eager limit 256 KiB",
        "map_by=node",
        "map_by=node,btl_tcp_eager_limit=262144",
        2,
        (*MICRO, "pingpong", "--size", "100000", "--count", "200"),
        "json:seconds",
        0.25,
        0.5,
        "x0.35: no wait for the receiver's leave",
    ),
    allreduce("linear", LINEAR, 1.4, 3.0, "x2: to the root and back"),
    allreduce("rabenseifner", RABENSEIFNER, 1.4, 3.0, "x2: halves there, halves back"),
    allreduce("ring", RING, 4.0, 8.0, "x6: six steps, each between the nodes"),
    Case(
        "map by node, neighbours",
        "map_by=slot",
        "map_by=node",
        4,
        CHAIN,
        "json:solver_s",
        1.2,
        3.0,
        "x1.2-3: three faces share the link, not one",
    ),
)


def compare(case: Case, pairs: int, guard: bool) -> dict[str, Any]:
    """One comparison; its JSON, or {"failed": message}."""
    with tempfile.TemporaryDirectory() as place:
        answer = Path(place) / "answer.json"
        command = [
            sys.executable, "-m", "autotune", "compare", case.a, case.b, "--cluster", "testbed",
            "--space", "openmpi+openmpi-tcp", "--ranks", str(case.ranks), "--metric", case.metric,
            "--pairs", str(pairs), "--remeasure", "--store", str(Path(place) / "runs.db"),
            "--json", str(answer), *([] if guard else ["--no-guard"]), "--", *case.program,
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not answer.exists():
            return {"failed": (done.stderr or done.stdout).strip()[-500:]}
        found: dict[str, Any] = json.loads(answer.read_text())
        return found


def row(case: Case, found: dict[str, Any]) -> dict[str, Any]:
    """The ratio of the times and its interval, compared with theory."""
    if found.get("failed") or found.get("gain") is None:
        return {"case": case.name, "theory": case.theory, "failed": found.get("failed", "no gain")}
    ratio = 1 / (1 + found["gain"])
    ends = [end for end in found.get("gain_ci95") or [] if end is not None]
    bounds = [1 / (1 + gain) for gain in reversed(ends)] if len(ends) == 2 else None
    return {
        "case": case.name,
        "a_s": found["a_median_s"],
        "ratio": round(ratio, 3),
        "ratio_ci95": bounds,
        "pairs": found["pairs"],
        "significant": found["significant"],
        "theory": case.theory,
        "as_expected": bool(found["significant"]) and case.low <= ratio <= case.high,
    }


def heading() -> str:
    # B's median is not shown: divided by A's median it differs from the median of the pairs.
    return f"{'B against A':<26}{'A s':>8}{'B/A':>7}  {'95 %':<14}{'':<5}theory"


def line(one: dict[str, Any]) -> str:
    """One row of the table; "NO" if the measurement contradicts theory."""
    if "failed" in one:
        return f"{one['case']:<26}  failed: {one['failed']}"
    ends = one["ratio_ci95"]
    shown = f"{ends[0]:.2f}..{ends[1]:.2f}" if ends else "-"
    mark = "yes" if one["as_expected"] else "NO"
    return (
        f"{one['case']:<26}{one['a_s']:>8.3f}{one['ratio']:>7.2f}  "
        f"{shown:<14}{mark:<5}{one['theory']}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--no-guard", action="store_true")
    parser.add_argument("--json")
    given = parser.parse_args()
    already = tb.status(tb.DEFAULT_NAME, measured=False).state == "up"
    tb.up(tb.DEFAULT_NAME, NODES, LATENCY_S, RATE_BPS)
    try:
        state = tb.status(tb.DEFAULT_NAME)
        rows = []
        print(heading())
        for case in [case for case in CASES if given.only in case.name]:
            rows.append(row(case, compare(case, given.pairs, not given.no_guard)))
            print(line(rows[-1]), flush=True)
    finally:
        if not already:
            tb.down(tb.DEFAULT_NAME)
    figures = {
        "round_trip_s": state.round_trip_s,
        "bandwidth_bps": state.bandwidth_bps,
        "delay_line_cpu": state.line_cpu_pingpong,
        "as_expected": f"{sum(r.get('as_expected', False) for r in rows)} of {len(rows)}",
    }
    report("testbed_proof", figures | ({"cases": rows} if given.json else {}), given.json)


if __name__ == "__main__":
    run_benchmark(main)
