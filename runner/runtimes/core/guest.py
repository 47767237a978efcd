"""Guests: idle workers that run regions of other processes' ranks.

Everything that a region and its completion touch is at the same addresses in all processes of a
node (:mod:`runner.runtimes.core.arena`). A guest takes a rank from a queue, runs one region without
messages, and puts the rank back. Messages and Python code stay with the rank's own process, the
host. A rank with a ready region for guests is open.

A guest counts itself, and then a turn, before it takes a rank, and leaves after it has put the rank
back; so the host's deadlock check sees the guest, the turn or the rank.
"""

from __future__ import annotations

from runner.runtimes.core.atomic import (
    add,
    call_0,
    call_nothing_2,
    exchange,
    inner,
    keep_bits,
    load,
    load_real,
    lowest,
    peek,
    put,
    store,
    store_real,
    swap_if,
)
from runner.runtimes.core.clock import now, switch
from runner.runtimes.core.graph import begin_turn, count_turn, end_body, note, part_over
from runner.runtimes.core.queue import call_all, lock, push, unlock, waiting, worker_of
from runner.runtimes.core.words import (
    BITS,
    BODY,
    COMPUTE,
    CORE,
    GRAPH,
    LINE,
    NODE,
    PARKED,
    PART,
    QUEUED,
    RANK,
    RUNNING,
    SCHEDULING,
    START,
    WORKER,
)


@inner
def entry_of(host: int, shared: int) -> int:
    """The code of a region in this process; 0 if it is not loaded or not for guests."""
    if shared == 0:
        return 0
    place = load(host + CORE.entries)
    end = place + 16 * peek(place)
    while place < end:
        place += 16
        if load(place) == shared:
            return load(place + 8)
    return 0


@inner
def open_region(host: int, part: int) -> int:
    """The first ready region that this process can run; 0 if there is none."""
    place = part + PART.size
    end = place + LINE * load(part + PART.words)
    node = load(part + PART.nodes)
    while place < end:
        bits = peek(place)
        while bits != 0:
            found = node + lowest(bits) * NODE.size
            if entry_of(host, load(found + NODE.shared)) != 0:
                return found
            bits &= bits - 1
        node += BITS * NODE.size
        place += LINE
    return 0


@inner
def is_open(host: int, rank: int) -> bool:
    """True if a rank on a queue has a ready region that this process can run."""
    return peek(rank + RANK.mode) == GRAPH and open_region(host, peek(rank + RANK.part)) != 0


@inner
def offers(host: int, home: int) -> bool:
    """True if a rank on a worker's queue is open, as far as visible without the lock."""
    ring, mask = load(home + WORKER.ring), load(home + WORKER.mask)
    place, head = peek(home + WORKER.tail), peek(home + WORKER.head)
    while place > head:
        place -= 1
        rank = peek(ring + 8 * (place & mask))
        if rank != 0 and is_open(host, rank):
            return True
    return False


@inner
def offer_of(host: int) -> int:
    """A worker with an open rank on its queue; 0 if there is none."""
    number = 0
    while number < load(host + CORE.workers):
        home = worker_of(host, number)
        if offers(host, home):
            return home
        number += 1
    return 0


@inner
def host_of(core: int) -> int:
    """The core of another process with an open rank; 0 if there is none."""
    place = load(core + CORE.others)
    end = place + 8 * load(place)
    while place < end:
        place += 8
        host = load(place)
        if peek(host + CORE.open) != 0 and offer_of(host) != 0:
            return host
    return 0


@inner
def take_open(host: int, home: int) -> int:
    """Take the last open rank from a queue; 0 if there is none."""
    if waiting(home) <= 0:
        return 0
    ring, mask = load(home + WORKER.ring), load(home + WORKER.mask)
    lock(host, home + WORKER.lock)
    head, tail = load(home + WORKER.head), load(home + WORKER.tail)
    place, found = tail, 0
    while place > head and found == 0:
        place -= 1
        rank = load(ring + 8 * (place & mask))
        if is_open(host, rank):
            found = rank
    if found != 0:
        while place < tail - 1:
            store(ring + 8 * (place & mask), load(ring + 8 * ((place + 1) & mask)))
            place += 1
        put(home + WORKER.tail, tail - 1)
    unlock(home + WORKER.lock)
    return found


@inner
def visit(core: int, worker: int) -> None:
    """Run a region of another process's rank, if one is ready."""
    host = host_of(core)
    if host == 0:
        return
    number = load(core + CORE.place) + load(worker + WORKER.number)
    guest = load(host + CORE.guest0) + number * WORKER.size
    add(host + CORE.guests, 1)
    add(host + CORE.turns, 1)
    # In this order, see close.
    if peek(host + CORE.open) != 0 and peek(host + CORE.stop) == 0:
        home, rank = offer_of(host), 0
        if home != 0:
            rank = take_open(host, home)
        if rank != 0:
            exchange(rank + RANK.state, RUNNING)
            run_one(core, worker, host, guest, rank)
            give_back(host, rank)
            if peek(host + CORE.stop) != 0:
                call_all(host)
    add(host + CORE.guests, -1)


@inner
def run_one(core: int, worker: int, host: int, guest: int, rank: int) -> None:
    """Run the first region possible for the guest, of a rank that it has taken."""
    part = load(rank + RANK.part)
    node = open_region(host, part)
    if node == 0:
        return
    keep_bits(load(node + NODE.word), ~load(node + NODE.bit))
    # A neighbour registered meanwhile may have added a dependency.
    if peek(node + NODE.unmet) != 0:
        return
    put(node + NODE.unmet, 1)
    note(host, guest, START, node, 0)
    begin_turn(rank, guest)
    store(rank + RANK.worker, guest)
    store(guest + WORKER.rank, rank)
    store(node + NODE.posted, 0)
    store(rank + RANK.owner, node)
    buffering = load_real(guest + WORKER.buffering)
    switch(core, worker, COMPUTE)
    store_real(guest + WORKER.since, now(host, guest))
    store(guest + WORKER.kind, COMPUTE)
    entry = entry_of(host, load(node + NODE.shared))
    call_nothing_2(entry, load(node + NODE.state), load(node + NODE.iteration))
    switch(host, guest, SCHEDULING)
    switch(core, worker, SCHEDULING)
    buffering = load_real(guest + WORKER.buffering) - buffering
    store_real(worker + WORKER.compute, load_real(worker + WORKER.compute) - buffering)
    store_real(worker + WORKER.buffering, load_real(worker + WORKER.buffering) + buffering)
    store(worker + WORKER.regions, load(worker + WORKER.regions) + 1)
    store(worker + WORKER.stolen, load(worker + WORKER.stolen) + 1)
    store(rank + RANK.owner, 0)
    note(host, guest, BODY, node, 0)
    end_body(host, guest, part, node)
    count_turn(rank, guest)
    store(guest + WORKER.rank, 0)


@inner
def has_ready(part: int) -> bool:
    """True if a region of the part is ready."""
    place = part + PART.size
    end = place + LINE * load(part + PART.words)
    while place < end:
        if peek(place) != 0:
            return True
        place += LINE
    return False


@inner
def give_back(host: int, rank: int) -> None:
    """Return the rank to the workers of its process, unless it has to wait."""
    part = load(rank + RANK.part)
    if (
        not has_ready(part)
        and not part_over(part)
        and swap_if(rank + RANK.state, RUNNING, PARKED) != 0
    ):
        return
    # Before the others: other processes wait for its messages.
    exchange(rank + RANK.state, QUEUED)
    push(host, rank, 1)


@inner
def close(core: int) -> None:
    """Admit no more guests, and wait until the last one is gone.

    A guest counts itself and then checks if it may enter: one of the two sees the other.
    """
    exchange(core + CORE.open, 0)
    while peek(core + CORE.guests) != 0:
        call_0(load(core + CORE.yield_))
