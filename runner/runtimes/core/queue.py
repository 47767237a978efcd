"""Locks, the queues of ready ranks, and waking of sleeping workers.

A ready rank is put on the queue of its home worker; a worker with an empty queue takes from the end
of another's. One queue for all would be slower than one worker. A rank is on at most one queue, so
a queue never overflows.
"""

from __future__ import annotations

from runner.runtimes.core.atomic import (
    add,
    call_0,
    call_varied_6,
    exchange,
    inner,
    load,
    pause,
    peek,
    put,
    store,
    swap_if,
)
from runner.runtimes.core.dice import draw
from runner.runtimes.core.words import CORE, PARKED, QUEUED, RANK, RUNNING, WOKEN, WORKER

_WAIT, _WAKE = 0, 1
"""Operations of futex."""
_LOOKS = 4000
"""Looks at a lock before the core is yielded: its holder may have lost the core."""


@inner
def lock(core: int, place: int) -> None:
    while exchange(place, 1) != 0:
        looks = 0
        while peek(place) != 0:
            pause()
            looks += 1
            if looks > _LOOKS:
                looks = 0
                call_0(load(core + CORE.yield_))


@inner
def unlock(place: int) -> None:
    put(place, 0)


@inner
def try_lock(place: int) -> bool:
    return peek(place) == 0 and exchange(place, 1) == 0


@inner
def worker_of(core: int, number: int) -> int:
    """The record of a worker."""
    return load(core + CORE.worker0) + number * WORKER.size


@inner
def rank_of(core: int, local: int) -> int:
    """The record of a local rank."""
    return load(core + CORE.rank0) + local * RANK.size


@inner
def push(core: int, rank: int, front: int) -> None:
    """Put a rank on its home's queue and wake a sleeping worker."""
    home = worker_of(core, load(rank + RANK.home))
    ring, mask = load(home + WORKER.ring), load(home + WORKER.mask)
    lock(core, home + WORKER.lock)
    if front != 0:
        head = load(home + WORKER.head) - 1
        store(ring + 8 * (head & mask), rank)
        put(home + WORKER.head, head)
    else:
        tail = load(home + WORKER.tail)
        place = tail
        if load(core + CORE.ordered) != 0:
            place = _make_room(home, rank, ring, mask, tail)
        store(ring + 8 * (place & mask), rank)
        put(home + WORKER.tail, tail + 1)
    # The rank must be visible before this worker looks for sleepers.
    exchange(home + WORKER.lock, 0)
    if peek(core + CORE.sleeping) != 0:
        _call_for(core, home)


@inner
def _make_room(home: int, rank: int, ring: int, mask: int, tail: int) -> int:
    """Move ranks with a smaller priority one place back; returns the free place."""
    place, head, own = tail, load(home + WORKER.head), load(rank + RANK.priority)
    while place > head:
        before = load(ring + 8 * ((place - 1) & mask))
        if load(before + RANK.priority) >= own:
            break
        store(ring + 8 * (place & mask), before)
        place -= 1
    return place


@inner
def _call_for(core: int, home: int) -> None:
    """Wake the home if it sleeps; else any worker, if one may take the rank."""
    if call_worker(core, home) == 0 and load(core + CORE.stealing) != 0:
        call_if_none_looks(core)


@inner
def call_if_none_looks(core: int) -> None:
    """Wake one sleeping worker unless one is awake and looking for ranks.

    That one may take another rank: once it has one, it wakes the next worker if more are ready.
    """
    if peek(core + CORE.idle) <= peek(core + CORE.sleeping):
        call_any(core)


@inner
def call_any(core: int) -> None:
    """Wake one sleeping worker, if there is one."""
    number = 0
    while number < load(core + CORE.workers):
        if call_worker(core, worker_of(core, number)) != 0:
            return
        number += 1


@inner
def call_all(core: int) -> None:
    """Wake all sleeping workers."""
    number = 0
    while number < load(core + CORE.workers):
        call_worker(core, worker_of(core, number))
        number += 1


@inner
def call_worker(core: int, worker: int) -> int:
    """Wake a worker if it sleeps; returns 1 if it did, else 0."""
    place = worker + WORKER.asleep
    if peek(place) == 0 or swap_if(place, 1, 0) == 0:
        return 0
    operation = _WAKE | load(core + CORE.private)
    call_varied_6(load(core + CORE.syscall), load(core + CORE.futex), place, operation, 1, 0, 0)
    return 1


@inner
def sleep(core: int, worker: int, seconds: float) -> int:
    """Sleep until called, or for some seconds if not negative; returns 1 if called, else 0.

    ``asleep`` was set before.
    """
    time = 0
    if seconds >= 0.0:
        time = worker + WORKER.time0
        whole = int(seconds)
        store(time, whole)
        store(time + 8, int(1e9 * (seconds - whole)))
    place = worker + WORKER.asleep
    operation = _WAIT | load(core + CORE.private)
    call_varied_6(load(core + CORE.syscall), load(core + CORE.futex), place, operation, 1, time, 0)
    return 1 - exchange(place, 0)


@inner
def waiting(worker: int) -> int:
    """Number of ranks on a worker's queue."""
    return peek(worker + WORKER.tail) - peek(worker + WORKER.head)


@inner
def pop(core: int, worker: int, taker: int) -> int:
    """A rank from a worker's queue, from its end if another worker takes it; 0 if empty."""
    if waiting(worker) <= 0:
        return 0
    rank = 0
    lock(core, worker + WORKER.lock)
    head, tail = load(worker + WORKER.head), load(worker + WORKER.tail)
    if tail > head:
        ring, mask = load(worker + WORKER.ring), load(worker + WORKER.mask)
        if load(core + CORE.random) != 0:
            _shuffle(taker, ring, mask, head, tail)
        if taker != worker:
            rank = load(ring + 8 * ((tail - 1) & mask))
            put(worker + WORKER.tail, tail - 1)
        else:
            rank = load(ring + 8 * (head & mask))
            put(worker + WORKER.head, head + 1)
    unlock(worker + WORKER.lock)
    return rank


@inner
def _shuffle(taker: int, ring: int, mask: int, head: int, tail: int) -> None:
    """Exchange the first and the last rank with random ones drawn by the taker."""
    for end in (head, tail - 1):
        other = head + draw(taker + WORKER.dice, tail - head)
        a, b = ring + 8 * (end & mask), ring + 8 * (other & mask)
        rank = load(a)
        store(a, load(b))
        store(b, rank)


@inner
def take(core: int, worker: int, least: int) -> int:
    """A ready rank for this worker; 0 if there is none.

    Another worker's queue is used if at least ``least`` ranks wait there.
    """
    rank = pop(core, worker, worker)
    if rank == 0 and load(core + CORE.stealing) != 0:
        count, number = load(core + CORE.workers), load(worker + WORKER.number)
        step = 1
        while step < count and rank == 0:
            other = worker_of(core, (number + step) % count)
            if waiting(other) >= least:
                rank = pop(core, other, worker)
            step += 1
    if rank != 0:
        # Whoever finds it queued leaves it to this worker, which must see everything before.
        exchange(rank + RANK.state, RUNNING)
    return rank


@inner
def any_ready(core: int, worker: int, least: int) -> bool:
    """True if :func:`take` would find a rank."""
    if waiting(worker) > 0:
        return True
    if load(core + CORE.stealing) != 0:
        number = 0
        while number < load(core + CORE.workers):
            if waiting(worker_of(core, number)) >= least:
                return True
            number += 1
    return False


@inner
def wake(core: int, rank: int, front: int) -> None:
    """Make a rank ready: the event that it waits for may have happened."""
    place = rank + RANK.state
    while True:
        state = peek(place)
        if state == PARKED:
            if swap_if(place, PARKED, QUEUED) != 0:
                push(core, rank, front)
                return
        elif state == RUNNING:
            if swap_if(place, RUNNING, WOKEN) != 0:
                return
        else:
            return


@inner
def stop(core: int) -> None:
    """Let all workers end."""
    add(core + CORE.stop, 1)
    call_all(core)
