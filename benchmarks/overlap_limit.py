"""The most that over-decomposition can gain for NAS kernels, computed from traces of flat runs.

    python -m benchmarks.overlap_limit [--kernels cg mg lu ft is] [--class S] [--ranks 2]

Each kernel runs once in its flat form for each factor, with so many ranks for each core, on this
machine; the ranks record the CPU time between calls of MPI and their messages. From that follow,
for each latency of ``--latency-ms`` (0: all ranks on one node; else each core is a node of its own
with a link of ``--gbit``):

- ``flat``: the time of the flat program, by a replay of the trace with one rank for each core
- ``limit``: flat / the largest of three bounds of the time with that factor: the computation over
  the cores, the longest chain of dependences (computation, messages, wire), the busiest link
- ``forecast``: flat / the time of a replay in which a core takes the next rank that is ready

The best factor counts. The limit has no overhead of a runtime in it, and the computation has that
of the flat program's Python between kernels. A gain above the limit comes from something else than
overlap: ranks of a process that exchange without the network are in it, other algorithms are not.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from autotune.errors import UsageError
from benchmarks.common import options, positive, report, run_benchmark, table
from benchmarks.harness.bench import Bench
from benchmarks.harness.launches import Place
from benchmarks.nas_table import CLASSES
from benchmarks.overlap.replay import Limit, Network, Trace, flat_seconds, limit
from runner.launch import Runner
from runner.lock import MachineLock
from runner.mpi.discover import adapter

KERNELS = ("cg", "mg", "lu", "ft", "is")
LATENCIES_MS = (0.0, 0.3, 1.0, 3.0)
FACTORS = (1, 2, 4, 8)


def traces(
    bench: Bench, place: Place, classes: dict[str, str], ranks: int, scratch: Path
) -> dict[str, Trace]:
    """The trace of each kernel in its class with so many ranks; raises WorkError if one fails."""
    file = scratch / f"{ranks}.json"
    kernels = [f"{kernel}:{one}" for kernel, one in classes.items()]
    words = [sys.executable, "-m", "benchmarks.overlap.traced", str(file), *kernels]
    bench.run(place.program(words, ranks), f"{ranks} ranks")
    loaded: dict[str, Trace] = json.loads(file.read_text())
    return loaded


def latency_name(latency_ms: float) -> str:
    return f"{latency_ms:g} ms" if latency_ms else "node"


def row(
    kernel: str, problem_class: str, flat: Trace, cut: dict[int, Trace], nodes: int,
    network: Network,
) -> dict[str, Any]:  # fmt: skip
    """Flat time, limit and forecast of a kernel under one network."""
    flat_s = flat_seconds(flat, nodes, network)
    limits = [limit(trace, factor, nodes, network) for factor, trace in cut.items()]
    best = min(limits, key=lambda one: one.least_s)
    soonest = min(limits, key=lambda one: one.forecast_s)
    return {
        "kernel": kernel,
        "class": problem_class,
        "latency": latency_name(network.latency_s * 1e3 if nodes > 1 else 0.0),
        "flat_s": f"{flat_s:.4f}",
        "limit": f"{flat_s / best.least_s:.3f}",
        "factor": best.factor,
        "by": _cause(best),
        "forecast": f"{flat_s / soonest.forecast_s:.3f}",
        "its factor": soonest.factor,
        "bounds": [vars(one) for one in limits],
    }


def _cause(bounds: Limit) -> str:
    causes = {"work": bounds.work_s, "chain": bounds.chain_s, "wire": bounds.wire_s}
    return max(causes, key=lambda name: causes[name])


def main() -> int:
    parser = options(__doc__)
    add = parser.add_argument
    add("--kernels", nargs="+", choices=KERNELS, default=list(KERNELS))
    add("--class", dest="problem", choices="SWAB", help="for all; default: about a second each")
    add("--ranks", type=positive, default=2, help="cores, and ranks of the flat program")
    add("--factors", type=positive, nargs="+", default=FACTORS, help="ranks for each core")
    add("--latency-ms", type=float, nargs="+", default=LATENCIES_MS, help="0: one node")
    add("--mpi", help="as for autotune: a family, a directory or a launcher")
    add("--gbit", type=float, default=1.0, help="of a node's link, per second")
    given = parser.parse_args()
    if given.gbit <= 0 or min(given.latency_ms) < 0:
        raise UsageError("--gbit and --latency-ms: expected positive", code="benchmark.network")
    place = Place.of(mpi=given.mpi)
    factors = sorted({1, *given.factors})
    with (
        tempfile.TemporaryDirectory() as scratch,
        MachineLock("exclusive"),
        Runner(adapter(place.library), guard=not given.guard) as runner,
    ):
        bench = Bench(runner)
        classes = {kernel: given.problem or CLASSES[kernel] for kernel in given.kernels}
        cut = {f: traces(bench, place, classes, f * given.ranks, Path(scratch)) for f in factors}
    rows = [
        row(
            kernel,
            classes[kernel],
            cut[1][kernel],
            {factor: cut[factor][kernel] for factor in factors},
            given.ranks if latency_ms else 1,
            Network(latency_ms / 1e3, given.gbit * 1e9 / 8),
        )
        for kernel in given.kernels
        for latency_ms in given.latency_ms
    ]
    table([{k: v for k, v in one.items() if k != "bounds"} for one in rows])
    print()
    report("overlap_limit", {"classes": classes, "ranks": given.ranks, "rows": rows}, given.json)
    return 0


if __name__ == "__main__":
    run_benchmark(main)
