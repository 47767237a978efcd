"""The stencil as ranks of the MATE runtime, one rank for each point.

    mpirun -n 2 python -m benchmarks.metg.mate_stencil --edges boundary --body compiled 7:1000

``--edges inside``: every edge inside one process. ``boundary``: messages between processes,
dependencies inside. ``messages``: a message for every edge.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.metg import WIDTH, parse_cases, start_value, warm_up
from benchmarks.metg.chain import chain, combined
from runner.runtimes import mate
from runner.runtimes.core import kernels
from runner.runtimes.mate.config import CORES

LINE = 8
"""Distance of two points in an array, in elements: each has a cache line of its own."""
EDGES = ("inside", "boundary", "messages")
BODIES = ("compiled", "python")
TAG = 0

Array = np.ndarray[Any, np.dtype[Any]]


class Point:
    """The state of one rank; task ``i`` reads ``arrays[i % 2]`` and writes the other array.

    ``left``, ``own`` and ``right`` are indices into both arrays. ``others`` are the ranks that get
    the point's value by a message, and ``received`` has two arrays of one element for each of them,
    one for each half of ``arrays``.
    """

    def __init__(self, ctx: mate.Context, edges: str, arrays: list[Array]) -> None:
        self.ctx = ctx
        self.arrays = arrays
        self.steps = 0
        self.others: list[int] = []
        self.received: list[Array] = []
        own = 1 if edges == "messages" else 1 + ctx.local_rank
        self.own = own * LINE
        self.left = self._neighbor(ctx.rank - 1, own - 1, edges)
        self.right = self._neighbor(ctx.rank + 1, own + 1, edges)
        self.sent = [array[self.own : self.own + 1] for array in arrays]
        self._given = np.zeros(1, dtype=np.int64)
        self.calls = [self._call(i) for i in range(2)]
        """One task as a compiled function, for a region that is not compiled."""

    def _neighbor(self, other: int, slot: int, edges: str) -> int:
        if not 0 <= other < self.ctx.size:
            return self.own
        process, local = self.ctx.location_of(other)
        if edges == "messages" or process != self.ctx.process:
            self.others.append(other)
            self.received += [a[slot * LINE : slot * LINE + 1] for a in self.arrays]
        else:
            self.ctx.add_local_neighbor(local)
        return slot * LINE

    def _call(self, i: int) -> Callable[[], None]:
        old, new = self.arrays[i % 2], self.arrays[(i + 1) % 2]
        cells = [old[at : at + 1] for at in (self.left, self.own, self.right)]
        result = new[self.own : self.own + 1]
        code = kernels.load("benchmarks.metg.kernels")
        return code.bind("task", *cells, result, self._given)

    def begin(self, steps: int) -> None:
        """Set the values before the first task, the neighbours' included."""
        self.steps = int(steps)
        self._given[0] = steps
        for at, point in ((self.left, -1), (self.right, 1), (self.own, 0)):
            self.arrays[0][at] = start_value(self.ctx.rank + point)

    def value(self, iterations: int) -> float:
        """The value after that many tasks."""
        return float(self.arrays[iterations % 2][self.own])


def exchange(point: Any, i: int) -> None:
    """Send the value of task ``i``, and receive the neighbours' values of theirs."""
    half = (i + 1) % 2
    for n in range(len(point.others)):
        point.ctx.irecv(point.received[2 * n + half], point.others[n], TAG)
        point.ctx.isend(point.sent[half], point.others[n], TAG)


def stencil(body: str) -> mate.Graph:
    """One region: the task of a point, which ends when its messages are complete.

    So the next task of the point has the values that this one receives.
    """
    graph = mate.Graph("stencil")
    depends = ["task*", "task*@"]
    if body == "python":

        @graph.region("task", depends)
        def called(point: Any, i: int) -> None:
            point.calls[i % 2]()
            if point.others:
                exchange(point, i)

        return graph

    @graph.region("task", depends, compiled=True)
    def task(point: Any, i: int) -> None:
        old, new = point.arrays[i % 2], point.arrays[(i + 1) % 2]
        x = combined(old[point.left], old[point.own], old[point.right])
        new[point.own] = chain(x, point.steps)
        exchange(point, i)

    return graph


@dataclass
class Measured:
    """What one rank saw of one case: its own begin and end in seconds, and its last value."""

    begin: float
    end: float
    value: float


async def measure(
    ctx: mate.Context, graph: mate.Graph, edges: str, cases: list[tuple[int, int]]
) -> list[Measured]:
    """Run every case once, after some tasks that are not timed."""
    slots = 3 if edges == "messages" else ctx.local_count + 2
    arrays = [np.zeros(slots * LINE) for _ in range(2)]
    if edges != "messages":
        arrays = await ctx.local_bcast(arrays, 0)
    point = Point(ctx, edges, arrays)
    found = []
    for steps, iterations in cases:
        await ctx.barrier()
        point.begin(steps)
        await ctx.barrier()
        await ctx.execute(graph, warm_up(iterations), state=point)
        await ctx.barrier()
        point.begin(steps)
        await ctx.barrier()
        begin = time.perf_counter()
        await ctx.execute(graph, iterations, state=point)
        found.append(Measured(begin, time.perf_counter(), point.value(iterations)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", nargs="+", metavar="STEPS:ITERATIONS")
    parser.add_argument("--edges", choices=EDGES, default="inside")
    parser.add_argument("--body", choices=BODIES, default="python")
    parser.add_argument("--core", choices=CORES, default="python")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    local = WIDTH // given.processes
    settings = mate.Config(core=given.core, workers=given.workers, ranks_per_process=local)
    comm = mate.world(settings)
    cases = parse_cases(given.cases)
    report = mate.run(measure, settings, stencil(given.body), given.edges, cases, comm=comm)
    gathered = comm.gather(report.results)
    if gathered is not None:
        ranks: list[list[Measured]] = [rank for process in gathered for rank in process]
        walls = [
            max(rank[n].end for rank in ranks) - min(rank[n].begin for rank in ranks)
            for n in range(len(cases))
        ]
        values = [[rank[n].value for rank in ranks] for n in range(len(cases))]
        print(json.dumps({"wall_s": walls, "values": values}))


if __name__ == "__main__":
    main()
