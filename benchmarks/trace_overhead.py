"""The cost of tracing: kernels with and without the profiling library, interleaved.

    python -m benchmarks.trace_overhead --blocks 20
    python -m benchmarks.trace_overhead --kernels cg mg --input S --blocks 6 --no-guard

Goal: at most 3 % on the kernels. Each block is one run with the library and one without, in random
order. The figure is the program's own if it prints one, because wall time would hide the cost
behind the start. A kernel passes if the median is within the goal, and is called open if the
interval includes the goal.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from autotune.errors import WorkError
from benchmarks.common import conclude, options, run_benchmark, table
from benchmarks.harness.bench import Bench, interleaved
from benchmarks.harness.figures import speedup
from benchmarks.harness.launches import Place
from benchmarks.nas_table import square_ranks
from runner.trace.build import make_cache, profiling_library
from runner.trace.run import DIRECTORY, with_variables

GOAL = 0.03
KERNELS = ("is", "ep", "cg", "mg", "ft", "lu", "sp", "bt")
PLAIN, TRACED = "plain", "traced"


def measure(kernel: str, given: argparse.Namespace) -> dict[str, Any]:
    """The row of a kernel."""
    ranks = square_ranks(kernel, given.ranks)
    target = Place.of().target(f"nas-{kernel}", given.input, ranks)
    plain = target.spec(None)
    library = str(profiling_library(target.library))
    with target.locked_runner(guard=not given.guard) as runner:
        bench = Bench(runner)

        def seconds(form: str, block: int) -> float:
            if form == PLAIN:
                return bench.run(plain).value_s
            with tempfile.TemporaryDirectory(dir=make_cache(), prefix="run-") as place:
                variables = {"LD_PRELOAD": library, DIRECTORY: place}
                record = bench.run(with_variables(plain, target.library, variables))
                if not list(Path(place).iterdir()):
                    raise WorkError("the profiling library is not loaded", code="benchmark.fails")
            return record.value_s

        seconds(PLAIN, 0)
        times = interleaved((PLAIN, TRACED), seconds, given.blocks, given.seed)
    ratio = speedup(times[TRACED], times[PLAIN])  # Plain over traced: how much tracing costs.
    return {
        "kernel": f"{kernel}.{given.input}",
        "ranks": ranks,
        "blocks": given.blocks,
        "plain_s": f"{statistics.median(times[PLAIN]):.4g}",
        "overhead_%": f"{(ratio.value - 1) * 100:.2f}",
        "interval_%": f"[{(ratio.low - 1) * 100:.2f}, {(ratio.high - 1) * 100:.2f}]",
        "open": ratio.low - 1 <= GOAL < ratio.high - 1,
    }


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--kernels", nargs="+", default=list(KERNELS), choices=KERNELS)
    parser.add_argument("--input", default="W", help="problem class")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--blocks", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rows = []
    for kernel in given.kernels:
        rows.append(measure(kernel, given))
        print(f"{kernel}: {rows[-1]['overhead_%']} %", file=sys.stderr, flush=True)
    table(rows)
    wrong = [
        f"{r['kernel']}: {r['overhead_%']} %" for r in rows if float(r["overhead_%"]) > GOAL * 100
    ]
    bound = f"median overhead of every kernel at most {GOAL:.0%}"
    return conclude("trace_overhead", bound, wrong, {"rows": rows}, given.json)


if __name__ == "__main__":
    run_benchmark(main)
