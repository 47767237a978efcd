"""A job with uneven ranks whose regions other processes of the node may run.

mpirun -n P python -m tests.mate.stealing CHECK|CASE

CHECK: ``checks`` runs all checks; rank 0 prints one JSON object: name -> problem or "". CASE: one
of ``killed``, ``stuck``, ``outside``, ``messages``, ``no-arena``, ``other-arena``.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from runner.runtimes import mate
from runner.runtimes.core.words import CORE
from tests.mate.graphs import refused

GRAPH = mate.Graph("ring")
"""Ranks of a process are neighbours of each other; the first and last ones have messages too."""
STEPS = 20
CHECKS: dict[str, Callable[[Any], None]] = {}


class Part:
    """One rank: ``load`` rounds of work in each step, ``data`` [8], messages of 8 numbers."""

    def __init__(self, ctx: mate.Context, load: int, zeros: Callable[..., Any]) -> None:
        self.ctx, self.load = ctx, load
        self.data, self.got, self.given = zeros(8), zeros(8), zeros(8)
        self.weights = [1.0, 0.5, 0.25]
        self.pairs = [(zeros(2), 1), (zeros(2), 2)]
        self.spent = zeros(2)
        self.data[:] = 1.0 + ctx.rank + np.arange(8.0)
        last = ctx.local_rank == ctx.local_count - 1
        self.right = (ctx.rank + 1) % ctx.size if last and ctx.process_count > 1 else -1
        first = ctx.local_rank == 0
        self.left = (ctx.rank - 1) % ctx.size if first and ctx.process_count > 1 else -1


@GRAPH.region(depends=["receive*", "work*@", "send*"], compiled=True)
def work(part: Part, i: int) -> None:
    cpu = part.ctx.cpu_seconds()
    begin = part.ctx.seconds()
    for _ in range(part.load):
        for k in range(8):
            part.data[k] = 0.75 * part.data[(k + 1) % 8] + part.weights[i % 3] * part.got[k] + 0.125
    for pair, number in part.pairs:
        pair[0] += number * part.data[number]
    with part.ctx.buffering():
        for k in range(8):
            part.given[k] = part.data[7 - k] + part.pairs[0][0][0]
    part.spent[0] += part.ctx.seconds() - begin
    part.spent[1] += part.ctx.cpu_seconds() - cpu


@GRAPH.region(depends=["work"], compiled=True)
def receive(part: Part, i: int) -> None:
    if part.left >= 0:
        part.ctx.irecv(part.got, part.left, 3)


@GRAPH.region(depends=["work"], compiled=True)
def send(part: Part, i: int) -> None:
    if part.right >= 0:
        part.ctx.isend(part.given, part.right, 3)


async def main(ctx: mate.Context, zeros: Callable[..., Any], heavy: int) -> list[float]:
    part = Part(ctx, heavy if ctx.process == 0 else max(1, heavy // 50), zeros)
    for other in (ctx.local_rank - 1, ctx.local_rank + 1):
        if 0 <= other < ctx.local_count:
            ctx.add_local_neighbor(other)
    for _ in range(2):
        await ctx.execute(GRAPH, 0, state=part)
        await ctx.barrier()
        await ctx.execute(GRAPH, STEPS, state=part)
    return [*part.data, *part.pairs[1][0], *part.spent]


def configured(**changes: Any) -> mate.Config:
    return mate.Config(**{"ranks_per_process": 4, "affinity": "none", "steal": "node", **changes})


def job(comm: Any, heavy: int = 20, arena: Any = None, log: Any = None, **changes: Any) -> Any:
    config = configured(**changes)
    zeros = arena.zeros if arena is not None else np.zeros
    return mate.run(main, config, zeros, heavy, comm=comm, arena=arena, log=log)


def uneven(processes: int) -> tuple[tuple[int, ...], ...]:
    """4 ranks a process on average; every second process has 2 more."""
    ids = iter(range(4 * processes))
    more = [2 * (-1) ** p if p < processes // 2 * 2 else 0 for p in range(processes)]
    return tuple(tuple(next(ids) for _ in range(4 + m)) for m in more)


def check(function: Callable[[Any], None]) -> Callable[[Any], None]:
    CHECKS[function.__name__] = function
    return function


@check
def the_same_bits_under_every_schedule(comm: Any) -> None:
    wanted = {}
    for rank_map in (None, uneven(comm.size)):
        report = job(comm, steal="process", rank_map=rank_map)
        wanted[rank_map] = [r[:10] for r in report.results]
    arena = mate.Arena(comm)
    for changes in (
        {},
        {"schedule_seed": 1},
        {"schedule_seed": 2, "workers": 2},
        {"workers": 2, "idle_spin_us": 0},
        {"idle_sleep_us": 0, "queue": "shared", "workers": 2},
        {"thread_level": "serialized", "rank_map": uneven(comm.size)},
        {"in_process": True, "schedule_seed": 3},
        {"steal": "process"},
    ):
        log = mate.EventLog()
        report = job(comm, 20, arena, log, **changes)
        assert [r[:10] for r in report.results] == wanted[changes.get("rank_map")], changes
        assert not log.check(), changes
        regions = comm.allreduce(report.totals()["regions"])
        assert regions == comm.size * 4 * 3 * 2 * STEPS, changes
    arena.close()


@check
def idle_processes_help_a_busy_one(comm: Any) -> None:
    arena = mate.Arena(comm)
    report = job(comm, 300000, arena)
    totals = report.totals()
    stolen = comm.bcast(comm.reduce(totals["stolen"]))
    assert stolen > 0, stolen
    regions = comm.bcast(totals["regions"])
    # The busy process has run fewer than its own ones.
    assert regions < 4 * 3 * 2 * STEPS, regions
    # What its ranks cost is counted there, and the time of the workers where it was spent.
    counted = np.array([report.rank_compute_s, [r[10] for r in report.results]])
    assert (counted[0] >= 0.8 * counted[1]).all(), counted
    spent = comm.allgather((sum(report.rank_compute_s), totals["compute_s"]))
    if comm.size > 1:
        assert spent[0][1] < spent[0][0], spent
        assert spent[1][1] > spent[1][0], spent
    ranks, workers = np.sum(spent, axis=0)
    assert abs(ranks - workers) < 0.02 * workers + 0.01
    assert all(own == [0] for own in report.rank_workers)
    arena.close()


@check
def an_arena_is_the_same_everywhere(comm: Any) -> None:
    arena = mate.Arena(comm)
    mine = arena.copy(np.arange(5) + 10 * comm.rank)
    empty = arena.zeros((0, 3), np.float32)
    assert arena.holds(mine)
    assert arena.holds(empty)
    assert empty.shape == (0, 3)
    assert not arena.holds(np.zeros(3))
    assert mine.ctypes.data % 64 == 0
    for rank, address in enumerate(comm.allgather(mine.ctypes.data)):
        there = (ctypes.c_int64 * 5).from_address(address)
        assert list(there) == [10 * rank + n for n in range(5)]
    with refused(mate.ArenaError, "no shared memory for"):
        arena.zeros(1 << 60, np.uint8)
    page = arena.passing(10)
    page[:] = 7
    arena.clear()
    again = arena.passing(10)
    assert again.ctypes.data == page.ctypes.data
    assert not again.any()
    comm.Barrier()
    arena.close()
    mine[0] = 1


@check
def its_memory_goes_with_the_last_array(comm: Any) -> None:
    def mapped() -> int:
        return Path("/proc/self/maps").read_text().count("memfd:arena")

    gc.collect()
    assert mapped() == 0
    arena = mate.Arena(comm)
    kept = arena.zeros(4)
    arena.close()
    del arena
    assert mapped() == 1
    kept[0] = 1.0
    del kept
    assert mapped() == 0


@check
def a_page_of_its_own_hides_nothing_else(comm: Any) -> None:
    """The words of a core that differ from process to process are the first page, no more."""
    assert CORE.live % 4096 == 0
    assert max(CORE.entries, CORE.log_space) < 4096 <= CORE.live


def checks(comm: Any) -> None:
    told = {}
    for name, function in CHECKS.items():
        problem = ""
        try:
            function(comm)
        except Exception:
            problem = traceback.format_exc()
        told[name] = "\n".join(p for p in comm.allgather(problem) if p)
    if comm.rank == 0:
        print(json.dumps(told))


def killed(comm: Any) -> None:
    """Tell the processes' numbers, then run for a long time."""
    processes = comm.allgather(os.getpid())
    if comm.rank == 0:
        print(json.dumps(processes), flush=True)
    job(comm, 10**7, mate.Arena(comm))


def stuck(comm: Any) -> None:
    arena = mate.Arena(comm)

    async def wait(ctx: mate.Context) -> None:
        await main(ctx, arena.zeros, 500)
        if ctx.rank == 0:
            await ctx.recv(bytearray(1), 0)
        await ctx.barrier()

    config = configured(in_process=True)
    mate.run(wait, config, comm=comm, arena=arena)


def outside(comm: Any) -> None:
    arena = mate.Arena(comm)
    kept = iter([True] * 7 + [False] * 100)
    mate.run(
        main,
        configured(ranks_per_process=1),
        lambda n: arena.zeros(n) if next(kept) and n != 2 else np.zeros(n),
        1,
        comm=comm,
        arena=arena,
    )


def messages(comm: Any) -> None:
    graph = mate.Graph("talk")
    graph.region("receive", [], compiled=True)(receive)

    async def talk(ctx: mate.Context) -> None:
        await ctx.execute(graph, 1, state=Part(ctx, 1, arena.zeros))

    arena = mate.Arena(comm)
    mate.run(talk, configured(), comm=comm, arena=arena)


def no_arena(comm: Any) -> None:
    job(comm)


def other_arena(comm: Any) -> None:
    from mpi4py import MPI

    part = comm.Split(comm.rank % 2, 0)
    assert MPI.Comm.Compare(part, comm) not in (MPI.IDENT, MPI.CONGRUENT)
    job(comm, 20, mate.Arena(part))


CASES = {f.__name__.replace("_", "-"): f
         for f in (checks, killed, stuck, outside, messages, no_arena, other_arena)}  # fmt: skip

if __name__ == "__main__":
    comm = mate.world(configured())
    try:
        CASES[sys.argv[1]](comm)
    except mate.MateError as error:
        if comm.rank == 0:
            print(f"refused: {error}", file=sys.stderr)
        sys.exit(2)
