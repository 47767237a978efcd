"""A program whose metric is printed to 0.01 s: the search must warn and name no winner.

The program spins for a fixed time and prints it with two decimals, as the NAS benchmarks do. The
search uses the space ``null``, in which no parameter can matter.

Usage: python -m benchmarks.quantised [--trials 10] [--seconds 0.12] [--json FILE]

Expected on a quiet machine: 1 to 2 minutes.
"""

from __future__ import annotations

import sys

from benchmarks.common import (
    autotune,
    conclude,
    options,
    rejected_share,
    run_benchmark,
    store_at,
    table,
)

# The time varies by some per cent, less than one step, as that of a short real program does.
PROGRAM = """
import random, sys, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
comm.Barrier()
began = time.perf_counter()
end = began + {seconds} * random.uniform(0.97, 1.03)
while time.perf_counter() < end:
    pass
comm.Barrier()
if comm.rank == 0:
    print(f"Time in seconds = {{time.perf_counter() - began:.2f}}")
"""
METRIC = r"Time in seconds = (\S+)"
BOUND = "a warning that the metric is too coarse, and no winner"


def judge(code: int, status: str, warnings: list[str], text: str) -> list[str]:
    """Faults in the end of the search, in words."""
    wrong = []
    if code != 0:
        wrong.append(f"exit {code}: {text[-300:]}")
    if status == "recommended":
        wrong.append("a winner was named")
    if not any(is_resolution_warning(line) for line in warnings):
        wrong.append(f"no warning about the metric's resolution among {warnings}")
    return wrong


def is_resolution_warning(line: str) -> bool:
    """Whether this warning is about the steps of the metric."""
    return any(word in line.lower() for word in ("resolution", "coarse", "steps of"))


def main() -> int:
    arguments = options(__doc__)
    arguments.add_argument("--trials", type=int, default=10)
    arguments.add_argument("--seconds", type=float, default=0.12, help="time of the program")
    given = arguments.parse_args()
    program = [sys.executable, "-c", PROGRAM.format(seconds=given.seconds)]
    with store_at(given.store) as store:
        answer = autotune(
            *("search", "-n", "2", "--space", "null", "--strategy", "random"),
            *("--trials", str(given.trials), "--metric", METRIC, "--store", store),
            *("--params-file", f"{store}.conf", *given.guard, "--", *program),
        )
    result = answer.result
    warnings = list(result.get("warnings", []))
    status = str(result.get("status", "none"))
    row = {
        "status": status,
        "gain": result.get("gain"),
        "default_s": result.get("default", {}).get("median_s"),
        "search_runs": result.get("search_runs"),
        "confirmation_runs": result.get("confirmation_runs"),
        "rejected": f"{rejected_share(result):.0%}",
        "seconds": f"{answer.wall_s:.0f}",
    }
    table([row])
    failures = judge(answer.code, status, warnings, answer.text)
    return conclude(
        "metric in steps of 0.01 s", BOUND, failures, {**row, "warnings": warnings}, given.json
    )


if __name__ == "__main__":
    run_benchmark(main)
