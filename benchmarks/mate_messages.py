"""The cost of a message through the MATE runtime; a part of ``benchmarks.mate_cost``.

Under mpirun it is one of two processes:
``python -m benchmarks.mate_messages --rounds 1000 --repeats 5 --wait 1``. Batches of nonblocking
messages of 8 bytes go to the other process, and to the process itself, in the same pattern as those
of ``metg/messages.c``. Process 0 prints one JSON line: microseconds per message (one sent and one
received) of each repeat, by way and destination.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.mate_regions import cores
from runner import mate

BATCH = 16
"""Number of messages each way between two waits."""
WARM = 10
"""One part in ``WARM`` of the rounds runs before the time is taken."""
WAIT_FROM_S = 0.001
"""A waiting worker's CPU time counts from here on."""
DESTINATIONS = ("between", "itself", "in process")
"""The other process, the process itself through MPI, the process itself without MPI."""

Way = Callable[[Any, mate.Config, str, int], float]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--wait", type=float, default=1.0, metavar="SECONDS")
    given = parser.parse_args()
    settings = {
        (core, to): mate.Config(core=core, in_process=to == "in process")
        for core in cores()
        for to in DESTINATIONS
    }
    first = next(iter(settings.values()))
    comm = mate.world(first)
    found: dict[str, list[float]] = {}
    for _ in range(given.repeats):
        for name, way, to, case in ways(settings):
            own = comm.allreduce(way(comm, case, to, given.rounds)) / comm.size
            found.setdefault(name, []).append(own)
    waiting = {core: waiting_share(comm, mate.Config(core=core), given.wait) for core in cores()}
    if comm.rank == 0:
        print(json.dumps({"message_us": found, "waiting": waiting}))


def ways(
    settings: dict[tuple[str, str], mate.Config],
) -> list[tuple[str, Way, str, mate.Config]]:
    """Name, function, destination and configuration of everything that is measured."""
    found: list[tuple[str, Way, str, mate.Config]] = []
    for (core, to), case in settings.items():
        kinds: list[tuple[str, Way]] = [("Python region", from_python), ("awaited", awaited)]
        if core == "native":
            kinds.insert(0, ("compiled region", from_compiled))
        found += [(f"{core}, {kind}, {to}", way, to, case) for kind, way in kinds]
    plain = next(iter(settings.values()))
    return [*found, *((f"mpi4py, {to}", direct, to, plain) for to in DESTINATIONS[:2])]


def partner(rank: int, to: str) -> int:
    """The rank that a process sends to, and receives from."""
    return 1 - rank if to == "between" else rank


def per_message(seconds: float, rounds: int) -> float:
    return seconds * 1e6 / rounds / BATCH


def direct(comm: Any, case: mate.Config, to: str, rounds: int) -> float:
    """Microseconds per message of mpi4py."""
    from mpi4py import MPI

    other = partner(comm.rank, to)
    sent, got = np.zeros(1), [np.zeros(1) for _ in range(BATCH)]

    def exchange(count: int) -> None:
        for _ in range(count):
            requests = [comm.Irecv(b, other, n) for n, b in enumerate(got)]
            requests += [comm.Isend(sent, other, n) for n in range(BATCH)]
            MPI.Request.Waitall(requests)

    exchange(rounds // WARM + 1)
    comm.Barrier()
    begin = time.perf_counter()
    exchange(rounds)
    return per_message(time.perf_counter() - begin, rounds)


def awaited(comm: Any, case: mate.Config, to: str, rounds: int) -> float:
    """The same by ranks that await their messages outside of graphs."""
    sent, got = np.zeros(1), [np.zeros(1) for _ in range(BATCH)]

    async def exchange(ctx: mate.Context, count: int) -> None:
        other = partner(ctx.rank, to)
        for _ in range(count):
            requests = [ctx.irecv(b, other, n) for n, b in enumerate(got)]
            requests += [ctx.isend(sent, other, n) for n in range(BATCH)]
            await ctx.waitall(requests)

    async def timed(ctx: mate.Context) -> float:
        await exchange(ctx, rounds // WARM + 1)
        await ctx.barrier()
        begin = time.perf_counter()
        await exchange(ctx, rounds)
        return per_message(time.perf_counter() - begin, rounds)

    (found,) = mate.run(timed, case, comm=comm).results
    return float(found)


class Batch:
    """The state of the region: one buffer to send, one for each message to receive."""

    def __init__(self, ctx: mate.Context, to: str) -> None:
        self.ctx = ctx
        self.other = partner(ctx.rank, to)
        self.sent = np.zeros(1)
        self.received = [np.zeros(1) for _ in range(BATCH)]


def exchange(batch: Any, i: int) -> None:
    """The region: it ends when its messages are complete, and the next one may run then."""
    for n in range(len(batch.received)):
        batch.ctx.irecv(batch.received[n], batch.other, n)
    for n in range(len(batch.received)):
        batch.ctx.isend(batch.sent, batch.other, n)


def from_compiled(comm: Any, case: mate.Config, to: str, rounds: int) -> float:
    """The same by a compiled region; the cost of the region itself is in it."""
    return from_region(comm, case, to, rounds, compiled=True)


def from_python(comm: Any, case: mate.Config, to: str, rounds: int) -> float:
    """The same by a region in Python."""
    return from_region(comm, case, to, rounds, compiled=False)


def from_region(comm: Any, case: mate.Config, to: str, rounds: int, compiled: bool) -> float:
    graph = mate.Graph("messages")
    graph.region("exchange", ["exchange*"], compiled=compiled)(exchange)

    async def timed(ctx: mate.Context) -> float:
        batch = Batch(ctx, to)
        await ctx.execute(graph, rounds // WARM + 1, state=batch)
        await ctx.barrier()
        begin = time.perf_counter()
        await ctx.execute(graph, rounds, state=batch)
        return per_message(time.perf_counter() - begin, rounds)

    (found,) = mate.run(timed, case, comm=comm).results
    return float(found)


def waiting_share(comm: Any, case: mate.Config, seconds: float) -> float:
    """CPU share of a process whose only worker waits for a message, after the first millisecond.

    The other process reads the CPU clock of the whole process that waits, while it sleeps itself.
    """
    pids = comm.allgather(os.getpid())

    async def main(ctx: mate.Context) -> float:
        await ctx.barrier()
        if ctx.rank == 0:
            await ctx.recv(np.zeros(1), 1)
            return 0.0
        time.sleep(WAIT_FROM_S)
        share = share_of_core(pids[0], seconds)
        await ctx.send(np.zeros(1), 0)
        return share

    (share,) = mate.run(main, case, comm=comm).results
    return float(comm.allreduce(share))


def share_of_core(pid: int, seconds: float) -> float:
    """CPU time of all threads of a process over wall time, while this thread sleeps."""
    # Linux's number of the CPU clock of another process (clock_getcpuclockid).
    clock = (~pid << 3) | 2
    begin, cpu = time.perf_counter(), time.clock_gettime(clock)
    time.sleep(seconds)
    return (time.clock_gettime(clock) - cpu) / (time.perf_counter() - begin)


if __name__ == "__main__":
    main()
