"""What the MATE runtime itself costs: regions, messages, parallel efficiency, idle workers.

    python -m benchmarks.mate_cost [--repeats 5] [--json FILE]

Every figure is the median of the repeats.  Regions and kernels are measured in one process without
MPI, messages between two processes under mpirun.  CPU time is given beside wall time: on a shared
machine it is the steadier figure.  Goals are those of the project's issue on the runtime.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from runner import mate
from runner.mate.timers import Clock
from runner.mpi.discover import find

GOALS = {
    "region_us": 3.0,
    "message_added_us": 3.0,
    "efficiency_2_workers": 0.95,
    "idle_cpu_share": 0.05,
}
KERNEL_US = 200.0
BATCH = 16
"""Messages each way between two waits."""
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
    """Microseconds of the steps that every region takes, each measured alone."""
    clock, lock = Clock(), threading.Lock()

    def locked() -> None:
        if lock.acquire(False):
            lock.release()

    return {
        "two clock switches": 2 * each(lambda: clock.switch(0)),
        "lock and unlock": each(locked),
        "call of an empty body": each(lambda: None),
    }


def each(action: Callable[[], None], count: int = 100_000) -> float:
    """Microseconds of one call, the loop and the call included."""
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


def messages_to_itself(comm: Any, config: mate.Config, chunks: int) -> dict[str, list[list[float]]]:
    """[wall, CPU] microseconds per message, plain and through the runtime, chunk by chunk in turn.

    Nothing is waited for but the messages themselves, so the difference is the runtime's cost.
    """
    from mpi4py import MPI

    direct = comm.Dup()
    sent, got = np.zeros(1), [np.zeros(1) for _ in range(BATCH)]
    figures: dict[str, list[list[float]]] = {"plain": [], "mate": []}
    rounds = 20
    scale = 1e6 / rounds / BATCH

    def note(kind: str, wall: float, cpu: float) -> None:
        spent = time.perf_counter() - wall, time.thread_time() - cpu
        figures[kind].append([s * scale for s in spent])

    async def main(ctx: mate.Context) -> None:
        own = ctx.rank
        for _ in range(chunks):
            wall, cpu = time.perf_counter(), time.thread_time()
            for _ in range(rounds):
                requests = [direct.Irecv(b, own, n) for n, b in enumerate(got)]
                requests += [direct.Isend(sent, own, n) for n in range(BATCH)]
                while not MPI.Request.Testall(requests):
                    pass
            note("plain", wall, cpu)
            wall, cpu = time.perf_counter(), time.thread_time()
            for _ in range(rounds):
                handles = [ctx.irecv(b, own, n) for n, b in enumerate(got)]
                handles += [ctx.isend(sent, own, n) for n in range(BATCH)]
                await ctx.waitall(handles)
            note("mate", wall, cpu)

    mate.run(main, config, comm=comm)
    return figures


def inside(repeats: int) -> None:
    """The part under mpirun; process 0 prints one JSON object."""
    config = mate.Config(workers=1, ranks_per_process=1)
    comm = mate.world(config)
    plain = [plain_messages(comm, 1000) for _ in range(repeats)]
    mated = [mate_messages(comm, config, 1000) for _ in range(repeats)]
    own = messages_to_itself(comm, config, 40 * repeats)
    waiting = waiting_for_a_message(comm, config, 1.0)
    if comm.rank == 0:
        print(json.dumps({"plain": plain, "mate": mated, "own": own, "idle_mpi": waiting}))


def plain_messages(comm: Any, rounds: int) -> tuple[float, float]:
    """Wall and CPU microseconds per message (one sent and one received) of plain mpi4py."""
    from mpi4py import MPI

    comm, other = comm.Dup(), 1 - comm.rank
    sent, got = np.zeros(1), [np.zeros(1) for _ in range(BATCH)]
    comm.Barrier()
    begin, cpu = time.perf_counter(), time.thread_time()
    for _ in range(rounds):
        requests = [comm.Irecv(b, other, n) for n, b in enumerate(got)]
        requests += [comm.Isend(sent, other, n) for n in range(BATCH)]
        MPI.Request.Waitall(requests)
    scale = 1e6 / rounds / BATCH
    return (time.perf_counter() - begin) * scale, (time.thread_time() - cpu) * scale


def mate_messages(comm: Any, config: mate.Config, rounds: int) -> tuple[float, float]:
    """The same through ranks."""
    sent, got = np.zeros(1), [np.zeros(1) for _ in range(BATCH)]

    async def main(ctx: mate.Context) -> tuple[float, float]:
        other = 1 - ctx.rank
        await ctx.barrier()
        begin, cpu = time.perf_counter(), time.thread_time()
        for _ in range(rounds):
            requests = [ctx.irecv(b, other, n) for n, b in enumerate(got)]
            requests += [ctx.isend(sent, other, n) for n in range(BATCH)]
            await ctx.waitall(requests)
        scale = 1e6 / rounds / BATCH
        return (time.perf_counter() - begin) * scale, (time.thread_time() - cpu) * scale

    ((wall, cpu),) = mate.run(main, config, comm=comm).results
    return wall, cpu


def waiting_for_a_message(comm: Any, config: mate.Config, seconds: float) -> float:
    """CPU share of a worker all of whose ranks wait for another process."""

    async def main(ctx: mate.Context) -> None:
        if ctx.rank == 0:
            await ctx.recv(np.zeros(1), 1)
        else:
            time.sleep(seconds)
            await ctx.send(np.zeros(1), 0)

    (times,) = mate.run(main, config, comm=comm).workers
    return times.waiting_cpu_s / times.waiting_s if times.waiting_s else 0.0


def outside(repeats: int) -> dict[str, Any]:
    """Start :func:`inside` on two processes."""
    words = [find().launcher, "-n", "2", "--mca", "pml", "ob1", "--mca", "btl", "self,sm,vader"]
    words += [sys.executable, "-m", "benchmarks.mate_cost", "--inside", "--repeats", str(repeats)]
    roots = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, env={**os.environ, **roots}, timeout=300
    )
    if done.returncode:
        sys.exit(f"mate_cost: mpirun failed\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def middle(samples: list[Any]) -> Any:
    """Median, field by field for dictionaries and pairs."""
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
    messages = outside(repeats)
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
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        inside(options.repeats)
        return
    from benchmarks.common import report

    report("mate_cost", {"goals": GOALS, **measure(options.repeats)}, options.json)


if __name__ == "__main__":
    main()
