"""The cost of the MATE runtime: regions, messages, parallel efficiency, idle workers.

    python -m benchmarks.mate_cost [--repeats 5] [--json FILE]

Every figure is the median of the repeats. Regions and kernels are measured in one process without
MPI, messages between two processes under mpirun. CPU time is given beside wall time, because it is
steadier on a shared machine. The goals are those set for the runtime.
"""

from __future__ import annotations

import argparse
import os
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

from benchmarks.common import report
from benchmarks.mate_messages import between_processes
from runner import mate
from runner.mate.timers import WorkerClock

GOALS = {
    "region_us": 3.0,
    "message_added_us": 3.0,
    "efficiency_2_workers": 0.95,
    "idle_cpu_share": 0.05,
}
KERNEL_US = 200.0
STENCIL = {
    "compute": ["pack*", "unpack*", "compute*@"],
    "receive": ["unpack*"],
    "pack": ["compute", "send*"],
    "send": ["pack"],
    "unpack": ["compute", "receive"],
}


def stencil(body: Callable[..., Any]) -> mate.Graph:
    graph = mate.Graph("stencil")
    for name, depends in STENCIL.items():
        graph.region(name, depends)(body)
    return graph


def regions(workers: int, ranks: int, executions: int) -> dict[str, float]:
    """Microseconds per execution of an empty region of the stencil's graph."""
    graph = stencil(lambda state, i: None)

    async def main(ctx: mate.Context) -> None:
        for other in (ctx.local_rank - 1, ctx.local_rank + 1):
            if 0 <= other < ctx.local_count:
                ctx.add_local_neighbor(other)
        await ctx.local_barrier()
        ctx.reset_timers()
        await ctx.execute(graph, executions // (5 * ranks))

    settings = mate.Config(workers=workers, ranks_per_process=ranks)
    totals = mate.run(main, settings).totals()
    done = totals["regions"] / 1e6
    wall = sum(totals[k] for k in totals if k.endswith("_s") and "cpu" not in k and k != "wall_s")
    return {
        "wall": wall / workers / done,
        "cpu": totals["cpu_s"] / done,
        "scheduling": totals["scheduling_s"] / done,
    }


def parts_of_a_region() -> dict[str, float]:
    """Microseconds of each step that every region takes, measured alone."""
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
    """A kernel outside the interpreter's lock that takes about ``KERNEL_US``, in registers."""
    import numba

    def loop(count: int) -> float:
        x = 0.5
        for _ in range(count):
            x = 3.9 * x * (1.0 - x)
        return x

    spin = numba.njit("float64(int64)", nogil=True)(loop)
    count = 100_000
    times = []
    for _ in range(20):
        begin = time.thread_time()
        spin(count)
        times.append(time.thread_time() - begin)
    count = int(count * KERNEL_US * 1e-6 / min(times))
    return lambda: spin(count)


def efficiency(work: Callable[[], None], kernels: int) -> dict[str, float]:
    """Speed-up of two workers over one, divided by two; the same for two plain threads."""

    def mated(workers: int) -> tuple[float, float]:
        graph = mate.Graph("kernels")
        graph.region("kernel", ["kernel*@"])(lambda state, i: work())

        async def main(ctx: mate.Context) -> None:
            for other in (ctx.local_rank - 1, ctx.local_rank + 1):
                if 0 <= other < ctx.local_count:
                    ctx.add_local_neighbor(other)
            await ctx.execute(graph, kernels // 8)

        report = mate.run(main, mate.Config(workers=workers, ranks_per_process=8))
        return report.wall_s, report.totals()["cpu_s"]

    def threaded(count: int) -> float:
        def loop() -> None:
            for _ in range(kernels // count):
                work()

        threads = [threading.Thread(target=loop) for _ in range(count)]
        begin = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - begin

    (one, one_cpu), (two, two_cpu) = mated(1), mated(2)
    return {
        "efficiency": one / two / 2,
        "cpu_efficiency": one_cpu / two_cpu,
        "plain_threads": threaded(1) / threaded(2) / 2,
    }


def idle(seconds: float) -> float:
    """CPU share of a worker that waits while another computes."""

    async def main(ctx: mate.Context) -> None:
        time.sleep(seconds)

    report = mate.run(main, mate.Config(workers=2, ranks_per_process=1))
    waited = max(report.workers, key=lambda w: w.waiting_s)
    return waited.waiting_cpu_s / waited.waiting_s


def middle(samples: list[Any]) -> Any:
    """The median; field by field for dictionaries and pairs."""
    first = samples[0]
    if isinstance(first, dict):
        return {key: middle([s[key] for s in samples]) for key in first}
    if isinstance(first, (list, tuple)):
        return [middle([s[n] for s in samples]) for n in range(len(first))]
    return round(statistics.median(samples), 4)


def measure(repeats: int) -> dict[str, Any]:
    def often(action: Callable[[], Any]) -> Any:
        return middle([action() for _ in range(repeats)])

    work = kernel()
    many = len(os.sched_getaffinity(0)) > 1
    messages = between_processes(repeats)
    plain, mated, own = middle(messages["plain"]), middle(messages["mate"]), messages["own"]
    figures: dict[str, Any] = {
        "region_us 1 worker, 1 rank": often(lambda: regions(1, 1, 50_000)),
        "region_us 1 worker, 8 ranks": often(lambda: regions(1, 8, 50_000)),
        "parts of a region, us": often(parts_of_a_region),
        "message_us between processes, plain [wall, cpu]": plain,
        "message_us between processes, mate [wall, cpu]": mated,
        "message_us to itself, plain [wall, cpu]": middle(own["plain"]),
        "message_us to itself, mate [wall, cpu]": middle(own["mate"]),
        "message_added_us [wall, cpu]": middle(
            [[m[0] - p[0], m[1] - p[1]] for m, p in zip(own["mate"], own["plain"], strict=True)]
        ),
        "idle_cpu_share waiting for MPI": round(messages["idle_mpi"], 4),
    }
    if many:
        figures["region_us 2 workers, 8 ranks"] = often(lambda: regions(2, 8, 50_000))
        figures["efficiency_2_workers"] = often(lambda: efficiency(work, 4000))
        figures["idle_cpu_share"] = often(lambda: idle(1.0))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    report("mate_cost", {"goals": GOALS, **measure(options.repeats)}, options.json)


if __name__ == "__main__":
    main()
