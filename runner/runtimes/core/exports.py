"""The compiled functions that the core exports to Python and compiled regions.

Regions have the addresses of some of them, so their code is compiled without the core's.
"""

from __future__ import annotations

from runner.runtimes.core.atomic import fence, inner, load, peek, store, ticks
from runner.runtimes.core.clock import now, switch, thread_seconds
from runner.runtimes.core.fiber import live, post_ahead, take_all, transfer, wait_all
from runner.runtimes.core.graph import enter_part, link_nodes, note, requests_done
from runner.runtimes.core.guest import close
from runner.runtimes.core.mail import hand_over
from runner.runtimes.core.message import start, watch
from runner.runtimes.core.queue import lock, stop, unlock, wake
from runner.runtimes.core.scheduler import work
from runner.runtimes.core.words import CORE, GRAPH, PART, RANK, REQUEST, WORKER

__all__ = ["FUNCTIONS", "work"]

FUNCTIONS = {
    "work": "void(int64, int64)",
    "enter": "void(int64, int64, int64, int64, int64, int64, int64)",
    "over": "int64(int64)",
    "link": "void(int64, int64, int64, int64, int64)",
    "wake_rank": "void(int64, int64)",
    "complete": "void(int64, int64, int64, int64)",
    "note_requests": "void(int64, int64, int64, int64)",
    "start_message": "void(int64, int64, int64, int64, int64, int64, int64)",
    "switch_kind": "void(int64, int64, int64)",
    "count_as": "int64(int64, int64)",
    "seconds": "float64(int64)",
    "cpu_seconds": "float64(int64)",
    "wait_messages": "void(int64)",
    "transfer_message": "void(int64, int64, int64, int64, int64, int64, int64)",
    "post_message": "void(int64, int64, int64, int64, int64, int64, int64)",
    "take_messages": "void(int64)",
    "live_on": "void(int64)",
    "post": "int64(int64, int64, int64, int64, int64, int64, int64, int64, int64)",
    "stop_all": "void(int64)",
    "call_poller": "void(int64)",
    "lock_mpi": "void(int64)",
    "unlock_mpi": "void(int64)",
    "close_core": "void(int64)",
    "count": "int64()",
}


def enter(core: int, worker: int, part: int, count: int, first: int, step: int, lazy: int) -> None:
    """The rank that the worker runs enters a graph; then its function yields."""
    rank = load(part + PART.rank)
    enter_part(core, worker, part, count, first, step, lazy)
    store(rank + RANK.part, part)
    store(rank + RANK.mode, GRAPH)


def over(part: int) -> int:
    """1 if all messages of the regions are complete and no execution is left, else 0."""
    if load(part + PART.bodies_left) != 0:
        return 0
    return 1 if load(part + PART.here) + peek(part + PART.away) == load(part + PART.total) else 0


def link(core: int, edge: int, target: int, source: int, lead: int) -> None:
    """See :func:`runner.runtimes.core.graph.link_nodes`."""
    link_nodes(core, edge, target, source, lead)


def wake_rank(core: int, rank: int) -> None:
    """Make a rank ready."""
    wake(core, rank, 0)


def complete(core: int, worker: int, node: int, count: int) -> None:
    """Messages of a region that Python code started are complete; the region has returned."""
    _note_requests(core, worker, node, count)
    requests_done(core, worker, node, count)


def note_requests(core: int, worker: int, node: int, count: int) -> None:
    """Some messages of a region are complete, and Python code has counted them."""
    _note_requests(core, worker, node, count)


@inner
def _note_requests(core: int, worker: int, node: int, count: int) -> None:
    number = 0
    while number < count:
        note(core, worker, REQUEST, node, 0)
        number += 1


def start_message(
    rank: int, incoming: int, address: int, count: int, kind: int, peer: int, tag: int
) -> None:
    """Start a message of a compiled region, which has the address of this function.

    So the regions' code is compiled without the message code, which would take seconds.
    """
    start(rank, incoming, address, count, kind, peer, tag)


def switch_kind(core: int, worker: int, kind: int) -> None:
    """Count the worker's time from now on as this kind."""
    switch(core, worker, kind)


def count_as(rank: int, kind: int) -> int:
    """Count the time of the worker that runs the rank as this kind from now on.

    Compiled regions have the address of this function. Returns the kind before.
    """
    worker = load(rank + RANK.worker)
    before = load(worker + WORKER.kind)
    switch(load(rank + RANK.core), worker, kind)
    return before


def seconds(rank: int) -> float:
    """Seconds on the clock of this process; compiled regions have the address of this function."""
    return now(load(rank + RANK.core), load(rank + RANK.worker))


def cpu_seconds(rank: int) -> float:
    """CPU time of the worker that runs the rank, which calls this."""
    return thread_seconds(load(rank + RANK.core), load(rank + RANK.worker))


def wait_messages(rank: int) -> None:
    """See :func:`runner.runtimes.core.fiber.wait_all`; compiled regions have its address."""
    wait_all(rank)


def transfer_message(
    rank: int, incoming: int, address: int, count: int, kind: int, peer: int, tag: int
) -> None:
    """See :func:`runner.runtimes.core.fiber.transfer`; compiled regions have its address."""
    transfer(rank, incoming, address, count, kind, peer, tag)


def post_message(
    rank: int, incoming: int, address: int, count: int, kind: int, peer: int, tag: int
) -> None:
    """See :func:`runner.runtimes.core.fiber.post_ahead`; compiled regions have its address."""
    post_ahead(rank, incoming, address, count, kind, peer, tag)


def take_messages(rank: int) -> None:
    """See :func:`runner.runtimes.core.fiber.take_all`; compiled regions have its address."""
    take_all(rank)


def live_on(fiber: int) -> None:
    """See :func:`runner.runtimes.core.fiber.live`; never returns."""
    live(fiber)


def post(
    core: int,
    rank: int,
    incoming: int,
    address: int,
    size: int,
    peer: int,
    local: int,
    tag: int,
    request: int,
) -> int:
    """Hand over a message that Python code started; ``request`` is its number.

    Returns 0 if there is no partner yet, else the partner's owner.
    """
    return hand_over(core, rank, incoming, address, size, peer, local, tag, 2 * request + 1)


def stop_all(core: int) -> None:
    """Let all workers end."""
    stop(core)


def call_poller(core: int) -> None:
    """Wake a sleeping worker if nobody polls messages; Python code has started one."""
    # Python has stored ``outside``: it must be visible before this looks for sleepers.
    fence()
    watch(core)


def lock_mpi(core: int) -> None:
    """Take the lock that compiled code takes around MPI calls at thread level "serialized"."""
    lock(core, core + CORE.mpi_lock)


def unlock_mpi(core: int) -> None:
    """Release it."""
    unlock(core + CORE.mpi_lock)


def close_core(core: int) -> None:
    """Admit no more guests, and wait until the last one is gone."""
    close(core)


def count() -> int:
    """The processor's counter."""
    return ticks()
