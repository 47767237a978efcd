"""The cost of a region of the MATE runtime in one process; a part of ``benchmarks.mate_cost``."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from runner import mate
from runner.mate.config import CORES
from runner.native import kernels
from runner.native.core import supported
from runner.workers.timers import WorkerClock

KERNEL_US = 200.0
TRIED_STEPS = 100_000
STENCIL = {
    "compute": ["pack*", "unpack*", "compute*@"],
    "receive": ["unpack*"],
    "pack": ["compute", "send*"],
    "send": ["pack"],
    "unpack": ["compute", "receive"],
}


def cores() -> tuple[str, ...]:
    """The cores that run on this processor."""
    return tuple(core for core in CORES if core != "native" or supported())


@dataclass(frozen=True)
class RegionCase:
    """Empty regions of the stencil's graph: the core, the kind of body, workers and ranks."""

    core: str
    compiled: bool
    workers: int
    ranks: int

    @property
    def name(self) -> str:
        body = "compiled" if self.compiled else "Python"
        return f"region, {body} body, {self.workers} w, {self.ranks} r"


def region_cases(workers: int) -> list[RegionCase]:
    """What runs on this processor, with at most so many workers."""
    kinds = [("native", True)] if "native" in cores() else []
    kinds += [(core, False) for core in cores()]
    layouts = [(1, 1), (1, 8), (2, 8)]
    return [RegionCase(*kind, w, r) for kind in kinds for w, r in layouts if w <= workers]


class Marks:
    """The state of the regions: seconds of wall and CPU clocks around the graph."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []


def stencil(body: Callable[..., Any], compiled: bool = False) -> mate.Graph:
    graph = mate.Graph("stencil")
    for name, depends in STENCIL.items():
        graph.region(name, depends, compiled=compiled)(body)
    return graph


def empty(state: Any, i: int) -> None:
    """The body that costs nothing."""


def regions(case: RegionCase, executions: int) -> dict[str, float]:
    """Microseconds per execution of a region: ``wall`` of the process, ``cpu`` of its threads."""
    graph = stencil(empty, case.compiled)
    iterations = max(1, executions // (len(STENCIL) * case.ranks))
    marks = Marks()

    async def main(ctx: mate.Context) -> None:
        for other in (ctx.local_rank - 1, ctx.local_rank + 1):
            if 0 <= other < ctx.local_count:
                ctx.add_local_neighbor(other)
        # Code is loaded, and workers are awake.
        await ctx.execute(graph, 10, state=marks)
        await ctx.local_barrier()
        if ctx.local_rank == 0:
            marks.cpu.append(time.process_time())
        marks.wall.append(time.perf_counter())
        await ctx.execute(graph, iterations, state=marks)
        marks.wall.append(time.perf_counter())
        await ctx.local_barrier()
        if ctx.local_rank == 0:
            marks.cpu.append(time.process_time())

    settings = mate.Config(core=case.core, workers=case.workers, ranks_per_process=case.ranks)
    mate.run(main, settings)
    done = iterations * len(STENCIL) * case.ranks
    return {
        "wall": (max(marks.wall) - min(marks.wall)) / done * 1e6,
        "cpu": (marks.cpu[1] - marks.cpu[0]) / done * 1e6,
    }


def calibrated(case: RegionCase, seconds: float) -> int:
    """Executions that take about so many seconds; the trial also fills the caches of code."""
    tried = 2000
    return max(tried, int(seconds / (regions(case, tried)["wall"] * 1e-6)))


def parts_of_a_region() -> dict[str, float]:
    """Microseconds of each step that every region of the Python core takes, measured alone."""
    clock, lock = WorkerClock(), threading.Lock()

    def locked() -> None:
        if lock.acquire(False):
            lock.release()

    return {
        "two clock switches": 2 * each(lambda: clock.switch(0)),
        "lock and unlock": each(locked),
        "call of an empty body": each(lambda: None),
    }


def each(action: Callable[[], None], count: int = 100_000) -> float:
    """Microseconds of one call, with the loop and the call itself."""
    begin = time.thread_time()
    for _ in range(count):
        action()
    return (time.thread_time() - begin) / count * 1e6


def kernel() -> Callable[[], None]:
    """A chain of arithmetic outside the interpreter's lock that takes about ``KERNEL_US``."""
    chain = kernels.load("benchmarks.metg.kernels").function("chain")
    times = []
    for _ in range(20):
        begin = time.thread_time()
        chain(0.3, TRIED_STEPS)
        times.append(time.thread_time() - begin)
    steps = int(TRIED_STEPS * KERNEL_US * 1e-6 / min(times))

    def work() -> None:
        if not 0 < chain(0.3, steps) < 1:
            raise ArithmeticError("the chain left the interval from 0 to 1")

    return work


def efficiency(core: str, work: Callable[[], None], count: int) -> float:
    """Speed-up of two workers over one, divided by two."""

    def wall_s(workers: int) -> float:
        graph = mate.Graph("kernels")
        graph.region("kernel", ["kernel*@"])(lambda state, i: work())

        async def main(ctx: mate.Context) -> None:
            for other in (ctx.local_rank - 1, ctx.local_rank + 1):
                if 0 <= other < ctx.local_count:
                    ctx.add_local_neighbor(other)
            await ctx.execute(graph, count // 8)

        settings = mate.Config(core=core, workers=workers, ranks_per_process=8)
        return mate.run(main, settings).wall_s

    return wall_s(1) / wall_s(2) / 2


def plain_efficiency(work: Callable[[], None], count: int) -> float:
    """The same for two plain threads, without the runtime."""

    def wall_s(number: int) -> float:
        def loop() -> None:
            for _ in range(count // number):
                work()

        threads = [threading.Thread(target=loop) for _ in range(number)]
        begin = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - begin

    return wall_s(1) / wall_s(2) / 2
