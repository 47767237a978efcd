"""The cost of a task of the Tarragon runtime beside a region of MATE's, on the same core.

    python -m benchmarks.tarragon_cost [--rounds 9] [--json FILE]

In one process with one worker, microseconds of: a region of MATE (the stencil's graph; and one
region for each of eight ranks that wait for their neighbours), a step of a compiled task (eight
tasks that wait for their neighbours), and a hop of a message round a ring of eight tasks.  Between
two processes under mpirun: a hop of the ring, as plain MPI and as tasks.  Every round measures
every row once; the table has minimum, quartiles and median.  Needs a machine without other work.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from autotune.errors import AutotuneError
from benchmarks.common import report, run_benchmark
from benchmarks.mate_regions import RegionCase, regions
from benchmarks.mpi_programs import Programs, python, quartiles
from runner import mate, tarragon
from runner.apps.ring.variants import CompiledRingTask, RingTask
from runner.errors import RunnerError
from runner.lock import MachineLock
from runner.machine import describe_machine
from runner.mpi.discover import find_library

TASKS = 8
GOAL = 1.5
"""A step of a task is to cost at most so many times what a region costs."""
REGION, STEP = "region, one for each of 8 ranks", "task, a step of 8 with neighbours"


class Empty(tarragon.GridTask):
    """Waits for its neighbours and computes nothing."""

    def compute(self, step: int) -> None:
        """Nothing."""


def executed_us(graph_of: Callable[[tarragon.Tarragon], Any], executions: int) -> float:
    """Microseconds of each of the graph's executions of a task."""
    runtime = tarragon.Tarragon()
    graph = graph_of(runtime)
    runtime.graph_init(graph)
    runtime.graph_execute(graph)
    return runtime.exec_time / executions * 1e6


def step_us(steps: int) -> float:
    """Microseconds of a step of a task among its neighbours."""

    def line(runtime: tarragon.Tarragon) -> Any:
        graph = tarragon.VectorGraph(runtime, lambda _: Empty(steps), tarragon.IdentityMap(TASKS))
        graph.accept(tarragon.NearestNeighborConnector(max_size=0))
        return graph

    return executed_us(line, steps * TASKS)


def hop_us(laps: int, compiled: bool) -> float:
    """Microseconds of a hop of a message of 8 bytes."""

    def ring(runtime: tarragon.Tarragon) -> Any:
        graph: tarragon.VectorGraph[Any] = tarragon.VectorGraph(
            runtime,
            lambda n: CompiledRingTask(n, laps) if compiled else RingTask(n, 8, laps),
            tarragon.IdentityMap(TASKS),
        )
        graph.accept(tarragon.OneNeighborConnector(0, 1, periodic=True, max_size=8))
        return graph

    return executed_us(ring, laps * TASKS)


def nothing(state: Any, i: int) -> None:
    """The body that costs nothing."""


def single_us(iterations: int) -> float:
    """Microseconds of a region of MATE, if a rank has one and waits for its neighbours."""
    graph = mate.Graph("single")
    graph.region("compute", ["compute*@"], compiled=True)(nothing)
    spent: list[float] = []

    async def main(ctx: mate.Context) -> None:
        for other in (ctx.local_rank - 1, ctx.local_rank + 1):
            if 0 <= other < ctx.local_count:
                ctx.add_local_neighbor(other)
        await ctx.execute(graph, 10)
        await ctx.local_barrier()
        spent.append(time.perf_counter())
        await ctx.execute(graph, iterations)
        spent.append(time.perf_counter())

    mate.run(main, mate.Config(core="native", workers=1, ranks_per_process=TASKS))
    return (max(spent) - min(spent)) / (iterations * TASKS) * 1e6


def one_round(rows: dict[str, list[float]], launched: Programs, quick: bool) -> None:
    """Measure every row once."""
    count = 500 if quick else 20_000
    stencil = RegionCase("native", True, 1, TASKS)
    rows["region, the stencil's graph, 8 ranks"].append(regions(stencil, 5 * TASKS * count)["wall"])
    rows[REGION].append(single_us(count))
    rows[STEP].append(step_us(count))
    rows["hop of a compiled task"].append(hop_us(count, compiled=True))
    rows["hop of a task in Python"].append(hop_us(count // 20, compiled=False))
    for variant in ("mpi", "compiled", "tarragon"):
        words = python("runner.apps.ring", "--variant", variant, "--laps", f"{count // 4}")
        line, _ = launched.run(words, 2)
        rows[f"hop between two processes, {variant}"].append(line["latency_us"])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--mpi", help="as for autotune: a family, a directory or a launcher")
    parser.add_argument("--quick", action="store_true", help="one short round, not for figures")
    parser.add_argument("--json", metavar="FILE")
    given = parser.parse_args()
    rows: dict[str, list[float]] = defaultdict(list)
    try:
        library = find_library(given.mpi)
        with contextlib.ExitStack() as stack:
            if not given.quick:
                stack.enter_context(MachineLock("exclusive"))
            launched = stack.enter_context(Programs(library))
            one_round(defaultdict(list), launched, quick=True)
            for _ in range(1 if given.quick else given.rounds):
                one_round(rows, launched, given.quick)
    except (AutotuneError, RunnerError) as error:
        print(f"tarragon_cost: {error}", file=sys.stderr)
        return getattr(error, "exit_code", 1)
    print(f"{'us':40}" + "".join(f"{name:>8}" for name in ("min", "q1", "median", "q3")))
    found = {name: quartiles(samples) for name, samples in rows.items()}
    for name, shares in found.items():
        print(f"{name:40}" + "".join(f"{value:8.3f}" for value in shares.values()))
    ratio = found[STEP]["median"] / found[REGION]["median"]
    print(f"a step over such a region: {ratio:.2f} (goal <= {GOAL})\n")
    figures = {"fingerprint": describe_machine().fingerprint, "rows": found, "ratio": ratio}
    report("tarragon_cost", figures, given.json)
    return 0


if __name__ == "__main__":
    run_benchmark(main)
