"""The cost of a message through the MATE runtime; a part of ``benchmarks.mate_cost``.

Under mpirun it is one of the two processes: ``python -m benchmarks.mate_messages REPEATS``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

import numpy as np

from runner import mate
from runner.mpi.discover import find_library

BATCH = 16
"""Number of messages each way between two waits."""


def between_processes(repeats: int) -> dict[str, Any]:
    """All figures, measured by two processes under mpirun."""
    words = [
        find_library().launcher,
        "-n",
        "2",
        "--mca",
        "pml",
        "ob1",
        "--mca",
        "btl",
        "self,sm,vader",
    ]
    words += [sys.executable, "-m", "benchmarks.mate_messages", str(repeats)]
    roots = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, env={**os.environ, **roots}, timeout=300
    )
    if done.returncode:
        sys.exit(f"mate_messages: mpirun failed\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def messages_to_itself(comm: Any, config: mate.Config, chunks: int) -> dict[str, list[list[float]]]:
    """[wall, CPU] microseconds per message, plain and through the runtime, in alternating chunks.

    The process waits for nothing but the messages themselves, so the difference is the runtime's
    cost.
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
    """The work of each process; process 0 prints one JSON object."""
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
    """The same through ranks of the runtime."""
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
    """CPU share of a worker whose ranks all wait for another process."""

    async def main(ctx: mate.Context) -> None:
        if ctx.rank == 0:
            await ctx.recv(np.zeros(1), 1)
        else:
            time.sleep(seconds)
            await ctx.send(np.zeros(1), 0)

    (times,) = mate.run(main, config, comm=comm).workers
    return times.waiting_cpu_s / times.waiting_s if times.waiting_s else 0.0


if __name__ == "__main__":
    inside(int(sys.argv[1]))
