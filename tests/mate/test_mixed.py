"""Messages between compiled regions and Python code of one process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from runner.runtimes import mate
from runner.runtimes.mate.config import Config
from tests.case_table import case_table
from tests.refusals import refusal, refused

ROUNDS = 20


class Box:
    """A rank's state: what it sends and what it has got."""

    def __init__(self, ctx: mate.Context) -> None:
        self.ctx = ctx
        self.other = 1 - ctx.local_rank
        self.value = np.zeros(3)
        self.got = np.zeros((ROUNDS, 3))


def _fill(box: Any, i: int) -> None:
    for k in range(3):
        box.value[k] = 100.0 * box.ctx.rank + 10.0 * i + k


def _swap(box: Any, i: int) -> None:
    box.ctx.irecv(box.got[i], box.other, 5)
    box.ctx.isend(box.value, box.other, 5)


def graph(compiled: bool) -> mate.Graph:
    made = mate.Graph("compiled" if compiled else "plain")
    made.region("fill", ["swap*"], compiled=compiled)(_fill)
    made.region("swap", ["fill"], compiled=compiled)(_swap)
    return made


COMPILED, PLAIN = graph(True), graph(False)


def expected(rank: int) -> Any:
    steps = np.arange(ROUNDS)[:, None]
    return 100.0 * rank + 10.0 * steps + np.arange(3)[None, :]


@case_table("workers", [1, 2])
@case_table("python_rank", [0, 1, None])
def test_a_python_region_and_a_compiled_one_exchange(workers: int, python_rank: int | None) -> None:
    async def main(ctx: mate.Context) -> Any:
        box = Box(ctx)
        await ctx.execute(PLAIN if ctx.rank == python_rank else COMPILED, ROUNDS, state=box)
        return box.got

    config = Config(workers=workers, ranks_per_process=2, affinity="none")
    results = mate.run(main, config).results
    assert np.array_equal(results[0], expected(1))
    assert np.array_equal(results[1], expected(0))


def test_a_message_that_waits_in_python_finds_a_compiled_partner() -> None:
    """It was started before the first compiled region of the process was known."""

    async def main(ctx: mate.Context) -> Any:
        box = Box(ctx)
        if ctx.rank == 0:
            early = ctx.irecv(box.got[0], 1, 5), ctx.isend(box.value, 1, 5)
            await ctx.local_barrier()
            await ctx.waitall(early)
        else:
            await ctx.local_barrier()
            await ctx.execute(COMPILED, 1, state=box)
        return box.got[0].tolist()

    config = Config(workers=1, ranks_per_process=2, affinity="none")
    first, second = mate.run(main, config).results
    assert first == [100.0, 101.0, 102.0]
    assert second == [0.0, 0.0, 0.0]


def test_a_compiled_message_that_is_too_long_is_refused() -> None:
    async def main(ctx: mate.Context) -> None:
        if ctx.rank == 0:
            await ctx.recv(np.zeros(1), 1, 5)
        else:
            await ctx.execute(COMPILED, 1, state=Box(ctx))

    config = Config(workers=1, ranks_per_process=2, affinity="none")
    with refused(mate.MateError, "mate.message"):
        mate.run(main, config)


@pytest.mark.parametrize("other", [7, -1])
def test_a_compiled_message_to_nowhere_is_refused(other: int, snapshot: SnapshotAssertion) -> None:
    async def main(ctx: mate.Context) -> None:
        box = Box(ctx)
        box.other = other
        if ctx.rank == 0:
            await ctx.execute(COMPILED, 1, state=box)

    config = Config(workers=1, ranks_per_process=2, affinity="none")
    assert refusal(mate.MateError, mate.run, main, config) == snapshot


def test_compiled_regions_that_wait_for_ever_are_named() -> None:
    async def main(ctx: mate.Context) -> None:
        if ctx.rank == 0:
            await ctx.execute(COMPILED, 1, state=Box(ctx))

    config = Config(workers=2, ranks_per_process=2, affinity="none")
    with refused(mate.Deadlock, "mate.deadlock"):
        mate.run(main, config)
