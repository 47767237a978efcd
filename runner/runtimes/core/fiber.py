"""Fibers: compiled regions with their own stack, so that they may wait in the middle.

A region that waits for its messages leaves its stack, and the worker runs other ranks. It continues
when they are complete, perhaps on another worker (Barrett et al.: tasks whose blocking MPI calls
yield). While it waits, ``WAITS`` is added to the node's ``pending``: so completing the last message
wakes the rank and does not finish the region.
"""

from __future__ import annotations

from runner.runtimes.core.atomic import (
    add,
    call_nothing_2,
    call_word_2,
    inner,
    load,
    load_real,
    pause,
    peek,
    store,
    store_real,
)
from runner.runtimes.core.clock import now, switch
from runner.runtimes.core.message import calls_mpi, poll, start
from runner.runtimes.core.words import (
    COMPUTE,
    CORE,
    FIBER,
    MPI,
    NODE,
    RANK,
    SCHEDULING,
    SUSPENDED,
    WAITS,
    WORKER,
)


@inner
def resume(core: int, worker: int, node: int) -> int:
    """Run a region on its stack until it waits (0) or its function returns (1)."""
    fiber = load(node + NODE.fiber)
    switch(core, worker, COMPUTE)
    call_word_2(
        load(core + CORE.swapcontext), load(worker + WORKER.context), load(fiber + FIBER.context)
    )
    switch(core, worker, SCHEDULING)
    ended = load(fiber + FIBER.ended)
    store(fiber + FIBER.ended, 0)
    return ended


@inner
def leave(rank: int, fiber: int) -> None:
    """Go back to the worker that runs the rank; returns when a worker resumes the fiber."""
    core, worker = load(rank + RANK.core), load(rank + RANK.worker)
    call_word_2(
        load(core + CORE.swapcontext), load(fiber + FIBER.context), load(worker + WORKER.context)
    )


@inner
def live(fiber: int) -> None:
    """The code on a fiber's stack: one execution of its region each time it is resumed."""
    node = load(fiber + FIBER.node)
    while True:
        call_nothing_2(
            load(node + NODE.entry), load(node + NODE.state), load(node + NODE.iteration)
        )
        store(fiber + FIBER.ended, 1)
        leave(load(node + NODE.rank), fiber)


@inner
def wait_all(rank: int) -> None:
    """The region waits until all messages that it has started are complete."""
    node = load(rank + RANK.owner)
    if load(node + NODE.posted) != 0:
        _wait(rank, node)


@inner
def transfer(
    rank: int, incoming: int, address: int, count: int, kind: int, peer: int, tag: int
) -> None:
    """Start a message and wait only for it: others that the region has started continue."""
    node = load(rank + RANK.owner)
    fiber = load(node + NODE.fiber)
    single = load(fiber + FIBER.single)
    store(single + NODE.posted, 0)
    store(rank + RANK.owner, single)
    start(rank, incoming, address, count, kind, peer, tag)
    if load(single + NODE.posted) != 0:
        _wait(rank, single)
    store(rank + RANK.owner, node)


@inner
def post_ahead(
    rank: int, incoming: int, address: int, count: int, kind: int, peer: int, tag: int
) -> None:
    """Start a message that a later execution of the region waits for."""
    node = load(rank + RANK.owner)
    store(rank + RANK.owner, load(load(node + NODE.fiber) + FIBER.ahead))
    start(rank, incoming, address, count, kind, peer, tag)
    store(rank + RANK.owner, node)


@inner
def take_all(rank: int) -> None:
    """Wait for the messages posted ahead."""
    node = load(rank + RANK.owner)
    ahead = load(load(node + NODE.fiber) + FIBER.ahead)
    if load(ahead + NODE.posted) != 0:
        store(rank + RANK.owner, ahead)
        _wait(rank, ahead)
        store(rank + RANK.owner, node)


@inner
def _wait(rank: int, node: int) -> None:
    """Leave the stack to others until a node's messages are complete."""
    core, worker = load(rank + RANK.core), load(rank + RANK.worker)
    posted, fiber = load(node + NODE.posted), load(node + NODE.fiber)
    store(node + NODE.posted, 0)
    if add(node + NODE.pending, posted + WAITS) + posted != 0:
        begin = now(core, worker)
        _look(core, rank, node)
        while peek(node + NODE.pending) != WAITS:
            store(rank + RANK.mode, SUSPENDED)
            leave(rank, fiber)
        spent = now(core, load(rank + RANK.worker)) - begin
        store_real(rank + RANK.waited, load_real(rank + RANK.waited) + spent)
    add(node + NODE.pending, -WAITS)


@inner
def _look(core: int, rank: int, node: int) -> None:
    """Look for the messages a few times before the region leaves its stack."""
    left = load(core + CORE.patience)
    if left == 0:
        return
    worker = load(rank + RANK.worker)
    switch(core, worker, MPI)
    while left > 0 and peek(node + NODE.pending) != WAITS and peek(core + CORE.stop) == 0:
        if load(core + CORE.service) != 0 or not calls_mpi(core, worker):
            pause()
        else:
            poll(core, worker)
        left -= 1
    switch(core, worker, COMPUTE)
