"""No call to a sleeping worker is lost, however many sleep: what has work for it finds it."""

from __future__ import annotations

import dataclasses
import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runner.runtimes import mate
from runner.runtimes.mate.scheduler import RankScheduler, Sleeper
from runner.runtimes.mate.task import Request, Task
from runner.runtimes.mate.transport import Transport
from runner.runtimes.mate.transport_mpi import MpiTransport
from tests.case_table import case_table

TOO_LATE_S = 20.0
"""A worker that was not called sleeps for ever; on a busy machine one that was may take long."""


class Gated(Transport):
    """Messages that MPI would carry; a look completes those that ``open`` lets through.

    Until there is an ``open``, nothing is taken from the list of new messages.
    """

    direct = False

    def __init__(self) -> None:
        super().__init__()
        self.open: Callable[[Request], bool] | None = None
        self.under_way: list[Request] = []

    @property
    def pending(self) -> bool:
        return bool(self.incoming or self.under_way)

    def post(self, incoming: bool) -> Callable[[Any, int, int], Any]:
        return lambda data, process, tag: None

    def wake_poller(self) -> None:
        MpiTransport.wake_poller(self)  # type: ignore[arg-type]

    def poll(self) -> None:
        if self.open is None:
            return
        with self.scheduler.lock:
            taken = [request for _, request in self.incoming]
            self.under_way += taken
            del self.incoming[: len(taken)]
            complete = [r for r in self.under_way if self.open(r)]
            self.under_way = [r for r in self.under_way if r not in complete]
            self.scheduler.complete(complete)


def until(condition: Callable[[], bool]) -> None:
    """Wait in a rank, keeping its worker."""
    end = time.monotonic() + TOO_LATE_S
    while not condition():
        assert time.monotonic() < end, "this never came"
        time.sleep(0.001)


def asleep(scheduler: RankScheduler) -> int:
    return scheduler.sleepers.asleep


def config(workers: int, ranks: int) -> mate.Config:
    return mate.Config(workers=workers, ranks_per_process=ranks, affinity="none", idle_spin_us=0)


@pytest.mark.parametrize("rounds", [30, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("waits", [True, False])
def test_all_sleepers_are_called_when_a_busy_worker_finds_the_messages(
    waits: bool, rounds: int
) -> None:
    """One look of a worker that has a rank of its own makes three others ready: three sleep.

    Once in a hundred times a worker that has just woken takes the rank of another one, which goes
    to sleep again: that one must be called for the rank that the first one has left.
    """
    for _ in range(rounds):
        three_sleepers_are_called(waits)


def three_sleepers_are_called(waits: bool) -> None:
    transport = Gated()
    together = threading.Barrier(4)
    graph = mate.Graph("news")
    requests: list[Request] = []

    @graph.region()
    def receive(ctx: mate.Context, i: int) -> None:
        if ctx.rank == 0:
            requests.append(ctx.irecv(np.zeros(1), 0, tag=1))

    @graph.region()
    async def look(ctx: mate.Context, i: int) -> None:
        if ctx.rank:
            return
        own = threading.get_ident()
        transport.open = lambda request: threading.get_ident() == own
        if waits:
            # The message of the region above is complete after this rank's own look.
            await ctx.wait(ctx.irecv(np.zeros(1), 0, tag=2))
        while not requests[0].done:
            # Its worker takes a look between two ranks and goes on with this one.
            ctx._scheduler.wake(ctx._task)
            await pause()
        together.wait(TOO_LATE_S)

    @graph.region(depends=["receive@"])
    def follow(ctx: mate.Context, i: int) -> None:
        if ctx.rank:
            together.wait(TOO_LATE_S)

    async def main(ctx: mate.Context) -> None:
        if ctx.rank:
            ctx.add_local_neighbor(0)
        else:
            until(lambda: asleep(ctx._scheduler) == 3)
        await ctx.execute(graph)

    mate.run(main, config(4, 4), transport=transport)


class pause:
    """Give the worker back once; the rank was woken before, so it is ready again at once."""

    def __await__(self) -> Any:
        yield


def test_another_sleeper_looks_when_the_one_that_did_gets_a_rank() -> None:
    """Two messages; who finds the first is busy until somebody has found the second."""
    transport = Gated()
    first_found, second_found = threading.Event(), threading.Event()

    def relay(tag: int, found: Callable[[], None]) -> mate.Graph:
        """Rank 0 receives the message, rank ``tag`` goes on when it has come."""
        graph = mate.Graph(f"relay {tag}")

        @graph.region()
        def receive(ctx: mate.Context, i: int) -> None:
            if ctx.rank == 0:
                ctx.irecv(np.zeros(1), 0, tag)

        @graph.region(depends=["receive@"])
        def follow(ctx: mate.Context, i: int) -> None:
            if ctx.rank == tag:
                found()

        return graph

    def wait_for_second() -> None:
        first_found.set()
        assert second_found.wait(TOO_LATE_S), "nobody looks after the second message"

    first, second = relay(1, wait_for_second), relay(2, second_found.set)

    async def main(ctx: mate.Context) -> None:
        if ctx.rank:
            ctx.add_local_neighbor(0)
            await ctx.execute(first if ctx.rank == 1 else second)
            return
        until(lambda: asleep(ctx._scheduler) == 2)
        await ctx.execute(first, lazy=True)
        await ctx.execute(second, lazy=True)
        transport.open = lambda r: r.route is None or r.route.tag == 1 or first_found.is_set()
        assert second_found.wait(TOO_LATE_S), "nobody looks after the second message"

    mate.run(main, config(3, 3), transport=transport)


def waited_looks(opens: Callable[[list[float]], bool]) -> list[float]:
    """Times of the looks at a message in a worker whose pauses grow to 1 ms, in seconds."""
    transport = Gated()
    looks: list[float] = []
    begin = 0.0

    def gate(request: Request) -> bool:
        looks.append(time.monotonic() - begin)
        return opens(looks)

    async def main(ctx: mate.Context) -> None:
        nonlocal begin
        begin = time.monotonic()
        transport.open = gate
        await ctx.recv(np.zeros(1), 0)

    mate.run(main, dataclasses.replace(config(1, 1), idle_sleep_us=1000), transport=transport)
    return looks


def pauses(looks: list[float]) -> int:
    return sum(later - sooner > 0.7e-3 for sooner, later in itertools.pairwise(looks))


def test_pauses_grow_with_the_wait() -> None:
    """Pauses of 1 ms would be 500; there are some 165 if those after the first 80 ms have 4 ms."""
    looks = waited_looks(lambda looks: looks[-1] >= 0.5)
    assert pauses(looks) < 250
    assert looks[-1] >= 0.5


def test_a_worker_looks_several_times_after_each_pause() -> None:
    """Open MPI looks at TCP in every eighth call only."""
    looks = waited_looks(lambda looks: len(looks) > 7 and looks[-8] >= 0.1)
    assert pauses(looks[-8:]) <= 1


@case_table("ready", range(6))
def test_a_call_reaches_as_many_sleepers_as_are_needed(ready: int) -> None:
    for looking, sleeping in itertools.product(range(4), range(4)):
        check_a_call(ready, looking, sleeping)


def check_a_call(ready: int, looking: int, sleeping: int) -> None:
    """Some of the sleepers have a time, some were called before; none is called twice."""
    scheduler = RankScheduler([Task(n, n) for n in range(ready)], None, None)
    sleepers = scheduler.sleepers
    woken: list[int] = []
    threads = []

    def sleep(number: int) -> None:
        with scheduler.lock:
            sleepers.idle += 1
            sleepers.sleep(Sleeper(), lambda: TOO_LATE_S if number < looking else None)
            woken.append(number)

    for number in range(looking + sleeping):
        threads.append(threading.Thread(target=sleep, args=(number,), daemon=True))
        threads[-1].start()
    until(lambda: asleep(scheduler) == looking + sleeping)
    wanted = min(ready, looking + sleeping)
    with scheduler.lock:
        for _ in range(3):
            scheduler.call_workers()
            assert sleepers.awake == wanted
    until(lambda: len(woken) == wanted)
    # Those without a time go first: messages are still looked after.
    assert sum(n < looking for n in woken) == max(0, wanted - sleeping)
    with scheduler.lock:
        sleepers.call_all()
    for thread in threads:
        thread.join(TOO_LATE_S)
    assert sorted(woken) == list(range(looking + sleeping))
