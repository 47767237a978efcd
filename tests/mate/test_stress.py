"""Very many executions of compiled regions, each of which checks those that it depends on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from runner.runtimes import mate

RANKS = 16
GRAPH = mate.Graph("stress")


@GRAPH.region(depends=["push*", "push*@"], compiled=True)
def pull(part: Any, i: int) -> None:
    """After as many executions of ``push`` of this rank and of the one before."""
    done, before = part.done, part.before
    if done[0] != i or done[1] != i:
        done[2] += 1
    # Round the ring the rank before is ahead by one iteration a rank at most.
    if before[1] < i or before[1] > i + part.ranks:
        done[2] += 1
    done[0] += 1


@GRAPH.region(depends=["pull", "pull@"], compiled=True)
def push(part: Any, i: int) -> None:
    """After one more execution of ``pull``."""
    done, before = part.done, part.before
    if done[0] != i + 1 or done[1] != i:
        done[2] += 1
    if before[0] < i + 1 or before[0] > i + 1 + part.ranks:
        done[2] += 1
    done[1] += 1


class Part:
    """Counts of the two regions and of errors: of this rank and of the one before."""

    def __init__(self, counts: np.ndarray[Any, Any], rank: int) -> None:
        self.done, self.before = counts[rank], counts[rank - 1]
        self.ranks = RANKS


def stress(executions: int, workers: int, queue: str) -> None:
    """Run this number of executions in a ring of ranks; the counts must be exact."""
    iterations = executions // (2 * RANKS)
    # Each rank's counts are in cache lines of their own.
    counts = np.zeros((RANKS, 16), np.int64)

    async def main(ctx: mate.Context) -> None:
        ctx.add_local_neighbor((ctx.rank - 1) % RANKS)
        await ctx.barrier()
        await ctx.execute(GRAPH, iterations, state=Part(counts, ctx.rank))

    config = mate.Config(workers=workers, ranks_per_process=RANKS, affinity="none", queue=queue)
    report = mate.run(main, config)
    assert counts[:, :3].tolist() == [[iterations, iterations, 0]] * RANKS
    assert sum(worker.regions for worker in report.workers) == 2 * RANKS * iterations


@pytest.mark.parametrize(
    ("executions", "workers", "queue"),
    [
        (10_000, 2, "home"),
        (10_000, 2, "fixed"),
        (980_000, 2, "shared"),
        # More workers than cores wait for each other.
        (2_000, 4, "home"),
        (2_000, 4, "fixed"),
        (2_000, 4, "shared"),
    ],
)
def test_counts_are_exact(executions: int, workers: int, queue: str) -> None:
    stress(executions, workers, queue)


@pytest.mark.slow
@pytest.mark.parametrize("queue", ["home", "fixed", "shared"])
@pytest.mark.parametrize("workers", [2, 4])
def test_counts_of_a_hundred_million_executions_are_exact(workers: int, queue: str) -> None:
    stress(100_000_000, workers, queue)
