"""Checks that run inside real MPI processes; rank 0 prints one JSON object: name -> problem or "".

mpirun -n P python -m tests.mate.mpi_checks WORKERS RANKS THREAD_LEVEL
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from runner.runtimes import mate
from tests.mate.graphs import STENCIL, DelayedMpi, chain, refused

CHECKS: dict[str, Callable[[Any, mate.Config], None]] = {}


def check(function: Callable[[Any, mate.Config], None]) -> Callable[[Any, mate.Config], None]:
    CHECKS[function.__name__] = function
    return function


def varied(config: mate.Config, **changes: Any) -> mate.Config:
    """The configuration of this start with some fields changed."""
    fields = {
        "workers": config.workers,
        "ranks_per_process": config.ranks_per_process,
        "affinity": "none",
        "thread_level": config.thread_level,
        **changes,
    }
    return mate.Config(**fields)


def uneven(comm: Any) -> tuple[tuple[int, ...], ...]:
    """1, 2, 3, 1, ... ranks per process, global ids from the last process to the first."""
    counts = [1 + p % 3 for p in range(comm.size)]
    ids = iter(range(sum(counts) - 1, -1, -1))
    return tuple(tuple(next(ids) for _ in range(count)) for count in counts)


@check
def every_rank_talks_to_every_rank_under_one_tag(comm: Any, config: mate.Config) -> None:
    async def main(ctx: mate.Context) -> None:
        for tag in (0, 5):
            got = np.full((ctx.size, 2), -1)
            receipts = [ctx.irecv(got[r], r, tag) for r in range(ctx.size)]
            sent = [np.array([ctx.rank, r]) for r in range(ctx.size)]
            await ctx.waitall([ctx.isend(sent[r], r, tag) for r in range(ctx.size)] + receipts)
            assert got.tolist() == [[r, ctx.rank] for r in range(ctx.size)]

    for in_process in (False, True):
        mate.run(main, varied(config, in_process=in_process), comm=comm)
        mate.run(main, varied(config, in_process=in_process, rank_map=uneven(comm)), comm=comm)


@check
def blocking_messages_stop_only_the_rank(comm: Any, config: mate.Config) -> None:
    async def main(ctx: mate.Context) -> None:
        after, before = (ctx.rank + 1) % ctx.size, (ctx.rank - 1) % ctx.size
        for n in range(12):
            buffer = np.empty(3)
            if ctx.rank % 2 or ctx.rank == ctx.size - 1:
                await ctx.recv(buffer, before)
                await ctx.send(np.full(3, float(n + ctx.rank)), after)
            else:
                await ctx.send(np.full(3, float(n + ctx.rank)), after)
                await ctx.recv(buffer, before)
            assert (buffer == n + before).all()

    for in_process in (False, True):
        mate.run(main, varied(config, in_process=in_process), comm=comm)


@check
def large_messages_arrive_whole(comm: Any, config: mate.Config) -> None:
    async def main(ctx: mate.Context) -> None:
        after, before = (ctx.rank + 1) % ctx.size, (ctx.rank - 1) % ctx.size
        data = np.arange(100_000) + ctx.rank
        got = np.zeros_like(data)
        parts = [ctx.irecv(p, before) for p in mate.pieces(got, 3)]
        parts += [ctx.isend(p, after) for p in mate.pieces(data, 3)]
        await ctx.waitall(parts)
        assert (got == np.arange(100_000) + before).all()

    mate.run(main, varied(config), comm=comm)


def stencil_job(steps: int, wrong: list[str]) -> Callable[[mate.Context], Any]:
    """A ring of processes: first and last local ranks exchange iteration numbers across."""

    async def main(ctx: mate.Context) -> None:
        faces = []
        if ctx.local_rank == 0:
            before = (ctx.process - 1) % ctx.process_count
            faces.append((ctx.rank_of(before, ctx.local_count_of(before) - 1), 0, 1))
        if ctx.local_rank == ctx.local_count - 1:
            faces.append((ctx.rank_of((ctx.process + 1) % ctx.process_count, 0), 1, 0))
        sent = [np.zeros(1, int) for _ in faces]
        got = [np.full(1, -1) for _ in faces]

        def body(name: str, _: Any, i: int) -> None:
            for n, (other, tag, back) in enumerate(faces):
                if name == "receive":
                    ctx.irecv(got[n], other, back)
                elif name == "pack":
                    sent[n][0] = 1000 * ctx.rank + i
                elif name == "send":
                    ctx.isend(sent[n], other, tag)
                elif name == "unpack" and got[n][0] != 1000 * other + i:
                    wrong.append(f"rank {ctx.rank} iteration {i} got {got[n][0]} from {other}")

        graph = await ctx.local_bcast(GRAPH, 0)
        chain(ctx)
        await ctx.execute(graph, steps, state=body)

    return main


GRAPH = mate.Graph("stencil")
for _name, _depends in STENCIL.items():
    GRAPH.region(_name, _depends)(lambda body, i, name=_name: body(name, body, i))


@check
def a_stencil_obeys_its_graph_whatever_the_delays(comm: Any, config: mate.Config) -> None:
    for seed in range(2):
        log, wrong = mate.EventLog(), list[str]()
        settings = varied(config, schedule_seed=seed)
        mate.run(
            stencil_job(12, wrong),
            settings,
            comm=comm,
            log=log,
            transport=DelayedMpi(comm, seed + comm.rank, config.thread_level == "serialized"),
        )
        assert wrong == [], wrong
        assert log.check() == [], log.check()[:3]
        assert sum(e.kind == "request" for e in log.events) == 2 * 2 * 12
    log, wrong = mate.EventLog(), list[str]()
    mate.run(stencil_job(50, wrong), varied(config), comm=comm, log=log)
    assert (wrong, log.check()) == ([], [])


@check
def the_end_of_a_graph_waits_for_messages(comm: Any, config: mate.Config) -> None:
    async def main(ctx: mate.Context) -> None:
        got = np.zeros(1)
        graph = mate.Graph("exchange")
        graph.region("receive")(lambda c, i: ctx.irecv(got, (ctx.rank - 1) % ctx.size))
        graph.region("send")(lambda c, i: ctx.isend(np.ones(1), (ctx.rank + 1) % ctx.size))
        graph = await ctx.local_bcast(graph, 0) if ctx.local_count == 1 else graph
        await ctx.execute(graph)
        assert got[0] == 1

    log = mate.EventLog()
    layer = DelayedMpi(comm, 1, config.thread_level == "serialized")
    mate.run(main, varied(config), comm=comm, log=log, transport=layer)
    assert log.check() == []


@check
def barriers_hold_all_ranks_also_inside_regions(comm: Any, config: mate.Config) -> None:
    arrived = [0] * 14
    graph = mate.Graph("meeting")

    @graph.region()
    async def meet(ctx: mate.Context, i: int) -> None:
        arrived[i] += 1
        await (ctx.local_barrier() if i % 2 else ctx.barrier())
        assert arrived[i] == ctx.local_count

    async def main(ctx: mate.Context) -> None:
        await ctx.execute(graph, 14)
        total = np.zeros(1, int)
        await ctx.allreduce(np.array([1]), total)
        assert total[0] == ctx.size

    mate.run(main, varied(config), comm=comm)


@check
def collectives_agree_with_plain_mpi(comm: Any, config: mate.Config) -> None:
    from mpi4py import MPI

    async def main(ctx: mate.Context) -> None:
        n, size, rank = 3, ctx.size, ctx.rank
        every = np.array([[10 * r + k for k in range(n)] for r in range(size)], float)
        mine = every[rank].copy()
        for root in {0, size - 1, size // 2}:
            data = mine.copy()
            await ctx.bcast(data, root)
            assert (data == every[root]).all(), "bcast"
            out = np.zeros(n)
            await ctx.reduce(mine, out if rank == root else None, "max", root)
            assert rank != root or (out == every.max(axis=0)).all(), "reduce"
            whole = np.zeros((size, n))
            await ctx.gather(mine, whole if rank == root else None, root)
            assert rank != root or (whole == every).all(), "gather"
            part = np.zeros(n)
            await ctx.scatter(2 * every if rank == root else None, part, root)
            assert (part == 2 * mine).all(), "scatter"
        for op, expected in (
            ("sum", every.sum(axis=0)),
            ("min", every.min(axis=0)),
            (MPI.MAX, every.max(axis=0)),
            ("prod", every.prod(axis=0)),
        ):
            out = mine.copy()
            await ctx.allreduce(out, out, op)
            assert np.allclose(out, expected, rtol=1e-14), op
        whole = np.zeros((size, n))
        await ctx.allgather(mine, whole)
        assert (whole == every).all(), "allgather"
        counts = [1 + r % 3 for r in range(size)]
        out = np.zeros(sum(counts))
        await ctx.allgatherv(mine[: counts[rank]], out, counts)
        assert (out == np.concatenate([every[r][: counts[r]] for r in range(size)])).all()

    mate.run(main, varied(config), comm=comm)
    mate.run(main, varied(config, rank_map=uneven(comm)), comm=comm)


@check
def a_rank_map_is_what_ranks_see(comm: Any, config: mate.Config) -> None:
    ranks = uneven(comm)

    async def main(ctx: mate.Context) -> int:
        assert ctx.location_of(ctx.rank) == (ctx.process, ctx.local_rank)
        assert ctx.rank_of(ctx.process, ctx.local_rank) == ctx.rank
        assert ctx.local_count == len(ranks[ctx.process]) == ctx.local_count_of(ctx.process)
        return ctx.rank

    report = mate.run(main, varied(config, rank_map=ranks), comm=comm)
    assert tuple(report.results) == ranks[comm.rank] == tuple(report.local_ranks)
    gathered = report.gather(comm)
    assert (gathered is None) == (comm.rank != 0)
    assert gathered is None or [r.process for r in gathered] == list(range(comm.size))


@check
def derived_datatypes_and_status_travel(comm: Any, config: mate.Config) -> None:
    from mpi4py import MPI

    column = MPI.DOUBLE.Create_vector(4, 1, 4).Commit()
    corners = MPI.DOUBLE.Create_indexed([1, 1, 2], [0, 3, 14]).Commit()
    pair = MPI.Datatype.Create_struct([1, 1], [0, 8], [MPI.INT, MPI.DOUBLE]).Commit()
    block = MPI.DOUBLE.Create_contiguous(4).Commit()

    async def main(ctx: mate.Context) -> None:
        after, before = (ctx.rank + 1) % ctx.size, (ctx.rank - 1) % ctx.size
        field = np.arange(16.0).reshape(4, 4)

        async def exchange(source: Any, target: Any) -> MPI.Status:
            status = MPI.Status()
            receipt = ctx.irecv(target, before, 3, status)
            await ctx.waitall([receipt, ctx.isend(source, after, 3)])
            assert (status.source, status.tag) == (before, 3)
            return status

        got = np.zeros(4)
        await exchange((field, 1, column), got)
        assert (got == field[:, 0]).all(), "vector"
        got[:] = 0
        await exchange((field, 1, corners), got)
        assert got.tolist() == [0, 3, 14, 15], "indexed"
        wide = np.zeros((4, 4))
        await exchange(field[1].copy(), (wide, 1, column))
        assert (wide[:, 0] == field[1]).all(), "into a vector"
        assert not wide[:, 1:].any(), "into a vector"
        await exchange((field, 1, block), got)
        assert (got == field[0]).all(), "contiguous"
        record = np.zeros(2, dtype=[("i", "i4"), ("pad", "i4"), ("x", "f8")])
        record["i"], record["x"] = 7, 2.5
        other = np.zeros_like(record)
        await exchange((record, 1, pair), (other, 1, pair))
        assert (other["i"][0], other["x"][0], other["i"][1]) == (7, 2.5, 0), "struct"
        status = await exchange(field[0, :3].copy(), got)
        assert status.Get_count(MPI.DOUBLE) == 3, "status"

    for in_process in (False, True):
        mate.run(main, varied(config, in_process=in_process), comm=comm)


@check
def blocking_calls_of_mpi4py_raise(comm: Any, config: mate.Config) -> None:
    from mpi4py import MPI

    here, buffer = comm.rank, np.zeros(1)
    request = comm.Isend(buffer, here, 99)
    row, everyone = comm.Create_cart([comm.size]), comm.Get_group()
    calls: list[Callable[[], Any]] = [
        lambda: comm.Recv(buffer, here),
        lambda: MPI.COMM_WORLD.recv(source=here),
        lambda: comm.Barrier(),
        lambda: comm.allreduce(1),
        lambda: MPI.COMM_SELF.Bcast(buffer),
        lambda: request.Wait(),
        lambda: MPI.Request.Waitall([request]),
        lambda: comm.Scan(buffer, np.zeros(1)),
        lambda: comm.Create_group(everyone),
        lambda: MPI.Intracomm.Create_from_group(everyone),
        lambda: row.Sub([True]),
        lambda: row.neighbor_alltoall([1, 1]),
        lambda: MPI.Message.probe(comm, here, 99),
    ]

    async def main(ctx: mate.Context) -> None:
        for call in calls:
            with refused(mate.MateError, "would block a worker"):
                call()

    mate.run(main, varied(config), comm=comm)
    comm.Recv(buffer, here, 99)
    request.Wait()
    row.Free()
    comm.Barrier()


@check
def ranks_move_between_workers(comm: Any, config: mate.Config) -> None:
    if config.workers == 1 or config.ranks_per_process <= config.workers:
        return
    seen: set[tuple[int, int]] = set()

    async def main(ctx: mate.Context) -> None:
        for _ in range(500):
            seen.add((ctx.rank, ctx.worker))
            time.sleep(0.0005)
            await ctx.local_barrier()
            if len(seen) > ctx.local_count:
                break
            await ctx.local_barrier()

    report = mate.run(main, varied(config), comm=comm)
    assert any(len(workers) > 1 for workers in report.rank_workers)


@check
def waiting_for_another_process_leaves_the_core(comm: Any, config: mate.Config) -> None:
    async def main(ctx: mate.Context) -> None:
        if ctx.process == 0 and ctx.process_count > 1:
            await ctx.recv(np.zeros(1), ctx.size - 1, ctx.local_rank)
        elif ctx.rank == ctx.size - 1:
            time.sleep(0.3)
            for rank in range(ctx.local_count_of(0) if ctx.process else 0):
                await ctx.send(np.zeros(1), rank, rank)

    report = mate.run(main, varied(config), comm=comm)
    totals = report.totals()
    # A worker that only polls would use all of it.
    assert totals["waiting_cpu_s"] <= 0.3 * totals["waiting_s"] + 0.01


@check
def different_configurations_are_refused_everywhere(comm: Any, config: mate.Config) -> None:
    async def main(ctx: mate.Context) -> None:
        pass

    if comm.size > 1:
        with refused(mate.ConfigError, "different configurations"):
            mate.run(main, varied(config, split=1 + comm.rank), comm=comm)
    with refused(mate.ConfigError, "--rank-map"):
        mate.run(main, varied(config, rank_map=tuple((r,) for r in range(9))), comm=comm)


def main() -> None:
    workers, ranks, level = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    config = mate.Config(
        workers=workers, ranks_per_process=ranks, affinity="none", thread_level=level
    )
    comm = mate.world(config)
    told = {}
    for name, function in CHECKS.items():
        problem = ""
        try:
            function(comm, config)
        except Exception:
            problem = traceback.format_exc()
        told[name] = "\n".join(p for p in comm.allgather(problem) if p)
    if comm.rank == 0:
        print(json.dumps(told))


if __name__ == "__main__":
    main()
