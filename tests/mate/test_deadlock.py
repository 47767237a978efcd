"""Deadlocks that become certain only when the last message is complete."""

from __future__ import annotations

import time

from syrupy.assertion import SnapshotAssertion

from runner.runtimes import mate
from runner.runtimes.mate.task import Request
from tests.case_table import case_table
from tests.mate.graphs import DelayedTransport
from tests.refusals import refusal, refused


class LateTransport(DelayedTransport):
    """A message completes some milliseconds after it was delivered, when all workers sleep."""

    def __init__(self) -> None:
        super().__init__(0)
        self._due = 0.0

    def deliver(self, *requests: Request) -> None:
        self._due = time.perf_counter() + 0.02
        super().deliver(*requests)

    def poll(self) -> None:
        while self.pending and time.perf_counter() > self._due:
            super().poll()


@case_table("workers", [1, 2])
def test_a_deadlock_after_the_last_message_is_told(workers: int) -> None:
    """Nobody waits for that message, so its end wakes no rank."""

    async def main(ctx: mate.Context) -> None:
        ctx.isend(bytearray(1), 1 - ctx.rank)
        ctx.irecv(bytearray(1), 1 - ctx.rank)
        await ctx.recv(bytearray(1), 1 - ctx.rank, 7)

    config = mate.Config(workers=workers, ranks_per_process=2, affinity="none")
    with refused(mate.Deadlock, "mate.deadlock"):
        mate.run(main, config, transport=LateTransport())


def test_a_deadlock_after_an_async_region_names_the_regions(snapshot: SnapshotAssertion) -> None:
    graph = mate.Graph("stuck")

    @graph.region("first")
    async def first(ctx: mate.Context, i: int) -> None:
        ctx.isend(bytearray(1), ctx.rank, 5)
        await ctx.recv(bytearray(1), ctx.rank, 5)

    graph.region("both", ["both@"])(lambda ctx, i: None)

    async def main(ctx: mate.Context) -> None:
        ctx.add_local_neighbor(1 - ctx.rank)
        await ctx.execute(graph, 2)

    config, transport = mate.Config(ranks_per_process=2), LateTransport()
    assert refusal(mate.Deadlock, lambda: mate.run(main, config, transport=transport)) == snapshot
