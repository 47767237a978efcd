"""The cost of tracing: kernels with and without the profiling library, interleaved.

    python -m benchmarks.trace_overhead --pairs 20
    python -m benchmarks.trace_overhead --kernels cg mg --input S --pairs 6 --no-guard

Goal: at most 3 % on the kernels. Each pair is one run with the library and one without, in random
order. The figure is the program's own if it prints one, because wall time would hide the cost
behind the start. The table shows the median of the pairs' ratios and its exact sign-test interval.
A kernel passes if the median is within the goal, and is called open if the interval includes the
goal.
"""

from __future__ import annotations

import math
import random
import signal
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from autotune.api.target import find_target
from autotune.stats import estimate
from autotune.targets.request import TargetRequest
from benchmarks.common import conclude, options, run_benchmark, table
from runner.launch import Runner
from runner.lock import MachineLock
from runner.mpi.discover import adapter
from runner.trace.build import make_cache, profiling_library
from runner.trace.run import DIRECTORY, with_variables
from runner.types import LaunchSpec

GOAL = 0.03
KERNELS = ("is", "ep", "cg", "mg", "ft", "lu", "sp", "bt")
SQUARE = ("sp", "bt")
"""Kernels that run only on square numbers of ranks; the next square is taken."""
ATTEMPTS = 5


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--kernels", nargs="+", default=list(KERNELS), choices=KERNELS)
    parser.add_argument("--input", default="W", help="problem class")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    rng = random.Random(args.seed)
    rows, failures = [], []
    with MachineLock("exclusive"):
        for kernel in args.kernels:
            row = _measure(kernel, args, rng)
            rows.append(row)
            print(f"{kernel}: {row['overhead_%']} %", file=sys.stderr, flush=True)
            if float(row["overhead_%"]) > GOAL * 100:
                failures.append(f"{kernel}: {row['overhead_%']} %")
    table(rows)
    bound = f"median overhead of every kernel at most {GOAL:.0%}"
    return conclude("trace_overhead", bound, failures, {"rows": rows}, args.json)


def _measure(kernel: str, args: Any, rng: random.Random) -> dict[str, Any]:
    ranks = math.ceil(math.sqrt(args.ranks)) ** 2 if kernel in SQUARE else args.ranks
    words = TargetRequest(None, f"nas-{kernel}", args.input, ranks, "local", None, None, None, None)
    target = find_target(words)
    plain = target.spec(None)
    library = str(profiling_library(target.library))
    ratios, seconds = [], []
    with Runner(adapter(target.library), guard=not args.guard) as runner:
        _value(runner, plain, None)
        for _ in range(args.pairs):
            order = [None, library]
            rng.shuffle(order)
            pair = {preload: _value(runner, plain, preload) for preload in order}
            seconds.append(pair[None])
            ratios.append(pair[library] / pair[None])
    # Order statistics hold for ratios as for times; none of the warnings about times apply.
    ratio = estimate(ratios, resolution=0.0, min_time=0.0)
    return {
        "kernel": f"{kernel}.{args.input}",
        "ranks": ranks,
        "pairs": len(ratios),
        "plain_s": f"{statistics.median(seconds):.4g}",
        "overhead_%": f"{(ratio.median - 1) * 100:.2f}",
        "interval_%": f"[{(ratio.lo - 1) * 100:.2f}, {(ratio.hi - 1) * 100:.2f}]",
        "open": ratio.lo - 1 <= GOAL < ratio.hi - 1,
    }


def _value(runner: Runner, plain: LaunchSpec, preload: str | None) -> float:
    """Seconds of one valid run; raises SystemExit if there is none in ATTEMPTS."""
    for _ in range(ATTEMPTS):
        with tempfile.TemporaryDirectory(dir=make_cache(), prefix="run-") as place:
            spec = plain
            if preload is not None:
                told = {"LD_PRELOAD": preload, DIRECTORY: place}
                spec = with_variables(plain, runner.adapter.library, told)
            record = runner.run(spec)
            if preload is not None and record.valid and not list(Path(place).iterdir()):
                raise SystemExit("the profiling library was not loaded: nothing is measured")
        if record.valid:
            return record.value_s
    raise SystemExit(f"no valid run of {plain.program}: {record.state} ({record.reason})")


if __name__ == "__main__":
    run_benchmark(main)
