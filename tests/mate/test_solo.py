"""Ranks of one process without MPI: messages, meetings, errors, times."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from runner.errors import RunnerError
from runner.runtimes import mate
from tests.case_table import case_table
from tests.refusals import refusal, refused


def run(main: Any, ranks: int = 2, workers: int = 1, **more: Any) -> mate.Report:
    settings = mate.Config(
        workers=workers, ranks_per_process=ranks, affinity="none", **more.pop("settings", {})
    )
    return mate.run(main, settings, **more)


@case_table("workers", [1, 2, 4])
def test_waiting_stops_only_the_rank(workers: int) -> None:
    async def main(ctx: mate.Context) -> list[int]:
        got = []
        for n in range(20):
            other, buffer = 1 - ctx.rank, np.empty(1, int)
            receipt = ctx.irecv(buffer, other, tag=n)
            await ctx.waitall([receipt, ctx.isend(np.array([100 * ctx.rank + n]), other, tag=n)])
            got.append(int(buffer[0]))
        return got

    assert run(main, 2, workers).results == [[100 + n for n in range(20)], list(range(20))]


def test_messages_of_one_tag_do_not_overtake_and_tags_do_not_cross() -> None:
    async def main(ctx: mate.Context) -> list[list[int]]:
        if ctx.rank == 0:
            for n in range(6):
                ctx.isend(np.array([n]), 1, tag=n % 2)
            return []
        got = []
        for tag in (1, 0):
            buffers = [np.empty(1, int) for _ in range(3)]
            await ctx.waitall([ctx.irecv(b, 0, tag) for b in buffers])
            got.append([int(b[0]) for b in buffers])
        return got

    assert run(main).results[1] == [[1, 3, 5], [0, 2, 4]]


def test_a_rank_can_send_to_itself_and_any_contiguous_memory_will_do() -> None:
    async def main(ctx: mate.Context) -> bytes:
        buffer = bytearray(8)
        ctx.irecv(buffer, 0)
        await ctx.send(np.asfortranarray(np.arange(8, dtype=np.uint8).reshape(2, 4)), 0)
        return bytes(buffer)

    assert run(main, 1).results == [bytes([0, 4, 1, 5, 2, 6, 3, 7])]


def test_what_cannot_be_is_refused_in_words(snapshot: SnapshotAssertion) -> None:
    actions: list[Callable[[mate.Context], object]] = [
        lambda c: c.isend(np.zeros(1), -1),
        lambda c: c.irecv(np.zeros(1), -1),
        lambda c: c.irecv(np.zeros(1), 2),
        lambda c: c.irecv(np.zeros(1), 0, -1),
        lambda c: c.isend(np.zeros(1), 0, 2**31),
        lambda c: c.isend(np.zeros((4, 4))[:, 1], 0),
        lambda c: c.isend("text", 0),
        lambda c: c.add_local_neighbor(2),
        lambda c: c.rank_of(0, 2),
        lambda c: c.location_of(5),
        lambda c: c.process_time(),
    ]

    def of_rank_0(action: Callable[[mate.Context], object]) -> None:
        async def main(ctx: mate.Context) -> None:
            if ctx.rank == 0:
                action(ctx)

        run(main)

    assert [refusal(mate.MateError, of_rank_0, action) for action in actions] == snapshot


def test_a_message_that_is_too_long_is_refused() -> None:
    async def main(ctx: mate.Context) -> None:
        if ctx.rank == 0:
            await ctx.send(np.zeros(2), 1)
        else:
            await ctx.recv(np.zeros(1), 0)

    with refused(mate.MateError, "mate.message"):
        run(main)


def test_the_end_of_a_rank_waits_for_its_messages() -> None:
    got = np.zeros(3)

    async def main(ctx: mate.Context) -> None:
        if ctx.rank == 0:
            ctx.irecv(got, 1)
        else:
            await ctx.send(np.ones(3), 0)

    run(main)
    assert got.tolist() == [1, 1, 1]


def test_sends_of_a_graph_that_was_left_lazily_are_waited_for() -> None:
    graph, order = mate.Graph("exchange"), []

    @graph.region(depends=["send*"])
    def pack(ctx: mate.Context, i: int) -> None:
        order.append("pack")

    @graph.region(depends=["pack"])
    def send(ctx: mate.Context, i: int) -> None:
        ctx.isend(bytearray(1), 1)

    async def main(ctx: mate.Context) -> None:
        if ctx.rank == 0:
            await ctx.execute(graph, lazy=True)
            order.append("left")
            await ctx.execute(graph, lazy=True)
            order.append("left again")
        else:
            order.append("receives")
            await ctx.recv(bytearray(1), 0)
            await ctx.recv(bytearray(1), 0)

    run(main)
    assert order == ["pack", "left", "receives", "pack", "left again"]


def test_the_end_of_a_graph_waits_for_its_messages() -> None:
    graph, order = mate.Graph("exchange"), []
    graph.region("send")(lambda ctx, i: ctx.isend(bytearray(1), 1))

    async def main(ctx: mate.Context) -> None:
        if ctx.rank == 0:
            await ctx.execute(graph)
            order.append("left")
        else:
            order.append("receives")
            await ctx.recv(bytearray(1), 0)

    run(main)
    assert order == ["receives", "left"]


@case_table("ranks", [1, 2, 5, 64, 256])
@case_table("workers", [1, 2])
def test_barriers_hold_everybody(workers: int, ranks: int) -> None:
    rounds = 100 if ranks <= 5 else 50
    count = [0] * rounds

    async def main(ctx: mate.Context) -> None:
        for n in range(rounds):
            count[n] += 1
            await (ctx.local_barrier() if n % 2 else ctx.barrier())
            assert count[n] == ranks

    run(main, ranks, workers)
    assert count == [ranks] * rounds


def test_a_region_may_wait_at_a_barrier_and_for_messages() -> None:
    graph, arrived = mate.Graph("meeting"), []

    @graph.region(depends=[])
    async def meet(ctx: mate.Context, i: int) -> None:
        arrived.append(i)
        await ctx.local_barrier()
        assert arrived.count(i) == 3
        buffer = np.empty(1, int)
        receipt = ctx.irecv(buffer, (ctx.rank + 1) % 3)
        ctx.isend(np.array([ctx.rank]), (ctx.rank + 2) % 3)
        await ctx.wait(receipt)
        assert buffer[0] == (ctx.rank + 1) % 3

    async def main(ctx: mate.Context) -> None:
        await ctx.execute(graph, 50)

    log = mate.EventLog()
    run(main, 3, 2, log=log)
    assert log.check() == []
    assert len(arrived) == 150


def test_local_broadcast_hands_over_the_object_itself() -> None:
    async def main(ctx: mate.Context) -> Any:
        return await ctx.local_bcast([ctx.rank] if ctx.rank == 2 else None, 2)

    results = run(main, 4).results
    assert results[0] == [2]
    assert all(r is results[0] for r in results)


def test_different_operations_at_the_same_time_are_refused() -> None:
    async def main(ctx: mate.Context) -> None:
        await (ctx.barrier() if ctx.rank else ctx.allreduce(np.zeros(1), np.zeros(1)))

    with refused(mate.MateError, "mate.collective"):
        run(main)


def test_an_unknown_reduction_is_refused() -> None:
    async def main(ctx: mate.Context) -> None:
        await ctx.allreduce(np.zeros(1), np.zeros(1), "median")

    with refused(mate.MateError, "mate.collective"):
        run(main)


def test_a_deadlock_says_who_waits_for_what(snapshot: SnapshotAssertion) -> None:
    graph = mate.Graph("stuck")
    graph.region("a", ["b@"])(lambda ctx, i: None)
    graph.region("b", ["a@"])(lambda ctx, i: None)

    async def main(ctx: mate.Context) -> None:
        if ctx.rank == 0:
            await ctx.recv(np.zeros(1), 1, tag=7)
        elif ctx.rank == 3:
            await ctx.local_barrier()
        else:
            ctx.add_local_neighbor(3 - ctx.local_rank)
            await ctx.execute(graph)

    with refused(mate.Deadlock, "mate.deadlock") as caught:
        run(main, 4, 2)
    assert str(caught.value) == snapshot


def test_a_rank_that_raises_ends_the_job() -> None:
    async def main(ctx: mate.Context) -> None:
        if ctx.rank == 1:
            raise KeyError("lost")
        await ctx.recv(np.zeros(1), 1)

    with pytest.raises(mate.RankFailed, match="rank 1 failed: KeyError: 'lost'") as caught:
        run(main)
    assert isinstance(caught.value.__cause__, KeyError)


def test_an_error_for_the_user_comes_as_it_is() -> None:
    async def main(ctx: mate.Context) -> None:
        raise RunnerError("the file is missing", code="test.error")

    with refused(RunnerError, "test.error"):
        run(main)


def test_only_methods_of_the_context_can_be_awaited() -> None:
    async def main(ctx: mate.Context) -> None:
        future: asyncio.Future[None] = asyncio.Future(loop=asyncio.new_event_loop())
        await future

    with refused(mate.MateError, "mate.call"):
        run(main, 1)


def test_graphs_cannot_be_nested() -> None:
    graph = mate.Graph("outer")

    @graph.region()
    async def inside(ctx: mate.Context, i: int) -> None:
        await ctx.execute(graph)

    async def main(ctx: mate.Context) -> None:
        await ctx.execute(graph)

    with pytest.raises(mate.MateError, match="nested"):
        run(main, 1)


def test_a_rank_that_waits_for_itself_is_refused() -> None:
    graph = mate.Graph("own")
    graph.region("a", ["a@"])(lambda ctx, i: None)

    async def main(ctx: mate.Context) -> None:
        ctx.add_local_neighbor(0)
        await ctx.execute(graph)

    with refused(mate.GraphError, "mate.graph"):
        run(main, 1)


def test_ranks_move_between_workers() -> None:
    async def main(ctx: mate.Context) -> None:
        moved = await ctx.local_bcast(set(), 0)
        for _ in range(2000):
            moved.add((ctx.rank, ctx.worker))
            time.sleep(0.001)
            await ctx.local_barrier()
            if len(moved) > ctx.local_count:
                break
            await ctx.local_barrier()

    report = run(main, 3, 2)
    assert any(len(workers) > 1 for workers in report.rank_workers)


def test_times_add_up_and_are_counted_apart() -> None:
    graph = mate.Graph("work")

    @graph.region()
    def work(ctx: mate.Context, i: int) -> None:
        time.sleep(0.002)
        with ctx.buffering():
            time.sleep(0.004)
        ctx.isend(bytearray(10), ctx.rank)
        ctx.irecv(bytearray(10), ctx.rank)

    async def main(ctx: mate.Context) -> None:
        ctx.reset_timers()
        await ctx.execute(graph, 5)
        ctx.stop_timers()
        time.sleep(0.1)

    report = run(main, 1)
    (times,) = report.workers
    assert times.compute_s >= 0.010
    assert times.buffering_s >= 0.020
    assert times.regions == times.messages == 5
    assert times.bytes == 50
    assert times.wall_s <= report.wall_s - 0.1
    assert 0 < times.cpu_s < times.wall_s
    assert report.rank_compute_s == pytest.approx([times.compute_s])


def test_the_timers_count_the_ranks_too() -> None:
    """Two ranks, of which one resets the timers while the other one computes."""
    together = threading.Barrier(2)

    async def main(ctx: mate.Context) -> None:
        time.sleep(0.05)
        together.wait(20)
        if ctx.rank == 0:
            ctx.reset_timers()
        together.wait(20)
        time.sleep(0.02 * (1 + ctx.rank))
        await ctx.local_barrier()
        time.sleep(0.01)
        together.wait(20)
        if ctx.rank == 0:
            ctx.stop_timers()
        together.wait(20)
        time.sleep(0.05)

    report = run(main, 2, 2)
    assert min(report.rank_compute_s) >= 0.03
    assert report.rank_compute_s[1] >= 0.05
    assert sum(report.rank_compute_s) == pytest.approx(sum(w.compute_s for w in report.workers))
    assert sum(report.rank_compute_s) <= 2 * (report.wall_s - 0.1)


def test_an_idle_worker_waits_without_cpu_time() -> None:
    async def main(ctx: mate.Context) -> None:
        time.sleep(0.2)

    report = run(main, 1, 2)
    waited = max(report.workers, key=lambda w: w.waiting_s)
    assert waited.waiting_s >= 0.1
    assert waited.waiting_cpu_s <= 0.05 * waited.waiting_s


def test_marks_span_the_first_and_the_last_arrival() -> None:
    async def main(ctx: mate.Context) -> float:
        ctx.mark_first()
        time.sleep(0.01)
        ctx.mark_last()
        await ctx.local_barrier()
        return ctx.process_time()

    assert min(run(main, 3).results) >= 0.03


def test_lapses_tell_what_each_worker_did() -> None:
    async def main(ctx: mate.Context) -> None:
        await ctx.local_barrier()

    log = mate.EventLog()
    run(main, 2, log=log)
    assert {lapse.rank for lapse in log.lapses} == {0, 1}
    assert all(lapse.begin <= lapse.end for lapse in log.lapses)


def test_no_mpi_and_no_tuner_is_loaded_without_need() -> None:
    code = (
        "import sys; from runner.runtimes import mate\n"
        "async def main(ctx): await ctx.barrier()\n"
        "mate.run(main)\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('mpi4py', 'autotune', 'numba')])"
    )
    # The first run on a machine compiles the core.
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
    assert done.stdout.strip() == "[]"


def test_the_interpreters_switch_interval_is_put_back() -> None:
    before = sys.getswitchinterval()

    async def main(ctx: mate.Context) -> None:
        pass

    run(main)
    assert sys.getswitchinterval() == before


def test_who_and_where() -> None:
    async def main(ctx: mate.Context) -> tuple[int, ...]:
        where = (ctx.process, ctx.process_count, ctx.local_rank, ctx.local_count)
        return (*where, ctx.rank, ctx.size, ctx.workers, ctx.global_workers)

    assert run(main, 3, 2).results == [(0, 1, n, 3, n, 3, 2, 2) for n in range(3)]


def test_a_rank_stays_with_the_worker_that_it_chose() -> None:
    waits = threading.Event()

    async def main(ctx: mate.Context) -> None:
        if ctx.rank == 1:
            assert waits.wait(60)
            time.sleep(0.05)
            await ctx.send(np.zeros(1), 0)
            return
        ctx.set_home(1)
        request = ctx.irecv(np.zeros(1), 1)
        waits.set()
        await ctx.wait(request)
        assert ctx.worker == 1 or ctx.config.core == "python"

    settings = mate.Config(workers=2, ranks_per_process=2, affinity="none", queue="fixed")
    mate.run(main, settings)


def test_a_worker_that_does_not_exist_is_no_home() -> None:
    async def main(ctx: mate.Context) -> None:
        ctx.set_home(2)

    with refused(mate.MateError, "mate.call"):
        run(main, 1)


def test_the_region_of_the_highest_priority_runs_first() -> None:
    ran: list[str] = []
    graph = mate.Graph("ordered")
    for name, priority in (("low", -1), ("plain", 0), ("high", 3), ("also plain", 0)):
        graph.region(name, priority=priority)(lambda ctx, i, name=name: ran.append(name))

    async def main(ctx: mate.Context) -> None:
        await ctx.execute(graph)

    run(main, 1)
    assert ran == ["high", "plain", "also plain", "low"]
