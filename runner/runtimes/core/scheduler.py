"""The loop of a worker: it runs ready ranks, polls messages, and sleeps if there is nothing to do.

The loop enters Python only for a rank's function, for a region that is a Python function, for
messages started by Python code, and for errors. Only these calls take the interpreter's lock.
"""

from __future__ import annotations

from runner.runtimes.core.atomic import (
    add,
    call_0,
    call_nothing_2,
    call_word_3,
    exchange,
    fence,
    inner,
    load,
    load_real,
    pause,
    peek,
    put,
    store,
    store_real,
    swap_if,
)
from runner.runtimes.core.clock import now, switch, thread_seconds
from runner.runtimes.core.fiber import resume
from runner.runtimes.core.graph import (
    begin_turn,
    choose,
    count_turn,
    end_body,
    note,
    part_over,
)
from runner.runtimes.core.guest import host_of, visit
from runner.runtimes.core.message import calls_mpi, poll, poll_if_due, watch
from runner.runtimes.core.queue import (
    any_ready,
    call_if_none_looks,
    sleep,
    stop,
    take,
    waiting,
    worker_of,
)
from runner.runtimes.core.words import (
    BODY,
    COMPUTE,
    CORE,
    COROUTINE,
    DEADLOCK,
    ENDED,
    EVENT,
    FAIL,
    FIRST_PAUSE_S,
    GRAPH,
    GROWTH,
    LAPSE,
    LATE,
    LONGEST,
    LOOKS,
    MPI,
    NODE,
    PARKED,
    PATIENCE_S,
    RAISED,
    RAN_TO_END,
    RANK,
    REGION,
    RESUME,
    RUNNING,
    SCHEDULING,
    SUSPENDED,
    VISIT_S,
    WAITING,
    WAITS,
    WORKER,
    YIELDED,
)

_PAUSES = 8
"""Pauses of the processor between two looks of a worker that spins."""


def work(core: int, worker: int) -> None:
    """Run ranks until all have ended or one has failed: the body of a worker's thread.

    It is also the body of the thread that only polls messages.
    """
    store_real(worker + WORKER.since, now(core, worker))
    store(worker + WORKER.kind, SCHEDULING)
    if worker == load(core + CORE.service):
        _serve(core, worker)
    while peek(core + CORE.stop) == 0:
        rank = take(core, worker, 2)
        if rank == 0:
            rank = _idle(core, worker)
        if rank != 0:
            _turn(core, worker, rank)
            poll_if_due(core, worker, now(core, worker))
        elif load(core + CORE.others) != 0:
            visit(core, worker)
            poll_if_due(core, worker, now(core, worker))
    switch(core, worker, SCHEDULING)
    if peek(core + CORE.failed) > 0:
        code = exchange(core + CORE.failed, -1)
        if code > 0:
            call_word_3(load(core + CORE.call), FAIL, load(worker + WORKER.number), code)


@inner
def _serve(core: int, worker: int) -> None:
    """Poll messages and do nothing else."""
    while peek(core + CORE.stop) == 0:
        switch(core, worker, MPI)
        poll(core, worker)
        switch(core, worker, WAITING)
        if load(core + CORE.crowded) != 0:
            call_0(load(core + CORE.yield_))
        else:
            number = 0
            while number < _PAUSES:
                pause()
                number += 1


@inner
def _turn(core: int, worker: int, rank: int) -> None:
    """Run a rank until it has to wait or has ended."""
    begin = load_real(worker + WORKER.since)
    begin_turn(rank, worker)
    number = load(worker + WORKER.number)
    place = rank + RANK.places0 + 8 * (number >> 6)
    store(place, load(place) | (1 << (number & 63)))
    store(rank + RANK.worker, worker)
    store(worker + WORKER.rank, rank)
    while True:
        ended = _run(core, worker, rank)
        count_turn(rank, worker)
        store(worker + WORKER.rank, 0)
        if ended != 0:
            put(rank + RANK.state, ENDED)
            if add(core + CORE.live, -1) == 1:
                stop(core)
            break
        if swap_if(rank + RANK.state, RUNNING, PARKED) != 0:
            break
        # An event that it may wait for has happened meanwhile.
        exchange(rank + RANK.state, RUNNING)
        store(worker + WORKER.rank, rank)
        if peek(core + CORE.stop) != 0:
            break
        poll_if_due(core, worker, now(core, worker))
    if load(core + CORE.log) != 0:
        _note_lapse(core, worker, load(rank + RANK.local), begin)


@inner
def _run(core: int, worker: int, rank: int) -> int:
    """Run a rank until nothing is ready in it; returns 1 if its function has ended, else 0."""
    while True:
        if load(rank + RANK.mode) == SUSPENDED:
            node = load(rank + RANK.owner)
            if peek(node + NODE.pending) != WAITS:
                return 0
            store(rank + RANK.mode, GRAPH)
            if resume(core, worker, node) == 0:
                return 0
            _end_region(core, worker, rank, load(rank + RANK.owner), 0)
        if load(rank + RANK.mode) == GRAPH:
            part = load(rank + RANK.part)
            _run_regions(core, worker, rank, part)
            if peek(core + CORE.stop) != 0:
                return 0
            if load(rank + RANK.mode) != GRAPH or not part_over(part):
                return 0
            store(rank + RANK.mode, COROUTINE)
        switch(core, worker, COMPUTE)
        answer = call_word_3(
            load(core + CORE.call),
            RESUME,
            load(worker + WORKER.number),
            load(rank + RANK.local),
        )
        switch(core, worker, SCHEDULING)
        code = answer & 3
        if code == RAISED:
            return 0
        if load(rank + RANK.mode) == REGION:
            if code == YIELDED:
                return 0
            _end_region(core, worker, rank, load(rank + RANK.owner), answer >> 2)
            store(rank + RANK.mode, GRAPH)
        elif code == RAN_TO_END:
            return 1
        elif load(rank + RANK.mode) == COROUTINE:
            return 0


@inner
def _run_regions(core: int, worker: int, rank: int, part: int) -> None:
    """Run regions as long as one is ready; meanwhile the rank keeps its worker."""
    while peek(core + CORE.stop) == 0:
        node = choose(core, worker, part)
        if node == 0:
            return
        store(node + NODE.posted, 0)
        store(rank + RANK.owner, node)
        store(worker + WORKER.regions, load(worker + WORKER.regions) + 1)
        if load(node + NODE.fiber) != 0:
            if resume(core, worker, node) == 0:
                return
            _end_region(core, worker, rank, node, 0)
            poll_if_due(core, worker, now(core, worker))
            continue
        entry = load(node + NODE.entry)
        started = 0
        switch(core, worker, COMPUTE)
        if entry != 0:
            call_nothing_2(entry, load(node + NODE.state), load(node + NODE.iteration))
        else:
            answer = call_word_3(
                load(core + CORE.body),
                load(worker + WORKER.number),
                load(node + NODE.number),
                load(node + NODE.iteration),
            )
            code = answer & 3
            if code == YIELDED:
                store(rank + RANK.mode, REGION)
                switch(core, worker, SCHEDULING)
                return
            if code == RAISED:
                switch(core, worker, SCHEDULING)
                return
            started = answer >> 2
        time = switch(core, worker, SCHEDULING)
        _end_region(core, worker, rank, node, started)
        poll_if_due(core, worker, time)


@inner
def _end_region(core: int, worker: int, rank: int, node: int, answer: int) -> None:
    """``answer``: messages that Python code started; in the upper half, those already complete."""
    store(rank + RANK.owner, 0)
    posted, complete = load(node + NODE.posted) + (answer & 0xFFFFFFFF), answer >> 32
    store(node + NODE.posted, posted - complete)
    note(core, worker, BODY, node, posted)
    end_body(core, worker, load(node + NODE.part), node)


@inner
def _idle(core: int, worker: int) -> int:
    """A ready rank as soon as there is one.

    0 if there will be no more work, or a process of the node has a rank for guests.
    """
    begin = switch(core, worker, WAITING)
    crowded, others = load(core + CORE.crowded) != 0, load(core + CORE.others)
    spin_s, sleep_s = load_real(core + CORE.spin_s), load_real(core + CORE.sleep_s)
    # Reading a thread's CPU time is a system call. A spinning worker uses its core, so elapsed time
    # counts, unless it yields the core meanwhile.
    cpu = thread_seconds(core, worker) if crowded else -1.0
    waited, spun = begin, 0.0
    looks, length = 0, FIRST_PAUSE_S
    add(core + CORE.idle, 1)
    rank, least = 0, 2
    while peek(core + CORE.stop) == 0:
        if any_ready(core, worker, least):
            # In this order, and before the queue gets shorter: see _check_deadlock.
            add(core + CORE.idle, -1)
            add(core + CORE.turns, 1)
            rank = take(core, worker, least)
            if rank != 0:
                break
            add(core + CORE.idle, 1)
        polled = 0
        if peek(core + CORE.pending) != 0 or peek(core + CORE.outside) != 0:
            polled = poll(core, worker)
            if any_ready(core, worker, least):
                continue
            if peek(core + CORE.pending) == 0 and peek(core + CORE.outside) == 0:
                # Perhaps only this worker is awake to see that nothing is left to wait for.
                continue
        elif peek(core + CORE.idle) == load(core + CORE.workers) and peek(core + CORE.guests) == 0:
            _check_deadlock(core, worker)
            continue
        time = now(core, worker)
        if time - begin > PATIENCE_S:
            least = 1
        if others != 0 and time - begin > VISIT_S and host_of(core) != 0:
            break
        if looks > 1 or time - waited < spin_s:
            looks -= 1
            if crowded:
                call_0(load(core + CORE.yield_))
            elif polled == 0:
                number = 0
                while number < _PAUSES:
                    pause()
                    number += 1
            continue
        if cpu < 0.0:
            spun += time - waited
            cpu = thread_seconds(core, worker)
        called = _sleep(core, worker, length)
        if called != 0:
            length = FIRST_PAUSE_S
            waited = now(core, worker)
            if not crowded:
                store_real(
                    worker + WORKER.waiting_cpu,
                    load_real(worker + WORKER.waiting_cpu) + thread_seconds(core, worker) - cpu,
                )
                cpu = -1.0
        else:
            long = min(LATE * (time - waited), LONGEST * sleep_s)
            length = max(min(GROWTH * length, sleep_s), long)
            looks = LOOKS
    if rank == 0:
        add(core + CORE.idle, -1)
        # It may take a rank before it counts as idle again: see _check_deadlock.
        add(core + CORE.turns, 1)
    if (rank != 0 or others != 0) and peek(core + CORE.sleeping) != 0:
        # This worker may be away for long. Whoever made more ranks ready has relied on it.
        if load(core + CORE.stealing) != 0 and any_ready(core, worker, 1):
            call_if_none_looks(core)
        if peek(core + CORE.pending) != 0 or peek(core + CORE.outside) != 0:
            watch(core)
    end = switch(core, worker, SCHEDULING)
    if cpu >= 0.0:
        spun += thread_seconds(core, worker) - cpu
    else:
        spun += end - waited
    store_real(worker + WORKER.waiting_cpu, load_real(worker + WORKER.waiting_cpu) + spun)
    if load(core + CORE.log) != 0:
        _note_lapse(core, worker, -1, begin)
    return rank


@inner
def _sleep(core: int, worker: int, length: float) -> int:
    """Sleep until called; the worker that watches messages sleeps at most ``length`` seconds.

    So do all if they look for ranks of other processes, which do not call them. If one worker makes
    all MPI calls, only that one watches. Returns 1 if the worker was called, else 0. It counts as
    asleep before it looks once more, and whoever has work for it then looks for sleepers: one of
    the two sees the other.
    """
    put(worker + WORKER.asleep, 1)
    add(core + CORE.sleeping, 1)
    fence()
    watches, caller = 0, calls_mpi(core, worker)
    if caller and (peek(core + CORE.pending) != 0 or peek(core + CORE.outside) != 0):
        watches = swap_if(core + CORE.watcher, 0, 1)
    called = 0
    if peek(core + CORE.stop) != 0 or any_ready(core, worker, 1):
        put(worker + WORKER.asleep, 0)
    elif caller and load(core + CORE.funnel) != 0 and peek(core + CORE.incoming_count) != 0:
        # A call was left to this worker meanwhile.
        put(worker + WORKER.asleep, 0)
    elif (
        caller
        and watches == 0
        and peek(core + CORE.watcher) == 0
        and (peek(core + CORE.pending) != 0 or peek(core + CORE.outside) != 0)
    ):
        # The watcher is gone.
        put(worker + WORKER.asleep, 0)
    else:
        timed = watches != 0 or load(core + CORE.others) != 0
        called = sleep(core, worker, length if timed else -1.0)
    add(core + CORE.sleeping, -1)
    if watches != 0:
        put(core + CORE.watcher, 0)
    return called


@inner
def _check_deadlock(core: int, worker: int) -> None:
    """Tell Python if this process can never continue."""
    turns = peek(core + CORE.turns)
    if peek(core + CORE.next_poll) < 0:
        # Python is polling: ``outside`` is temporarily wrong. A poll that starts now is a turn.
        return
    if peek(core + CORE.idle) != load(core + CORE.workers) or peek(core + CORE.guests) != 0:
        return
    if peek(core + CORE.pending) != 0 or peek(core + CORE.outside) != 0:
        return
    number = 0
    while number < load(core + CORE.workers):
        if waiting(worker_of(core, number)) > 0:
            return
        number += 1
    fence()
    if peek(core + CORE.turns) != turns or peek(core + CORE.live) == 0:
        return
    if swap_if(core + CORE.failed, 0, -1) != 0:
        call_word_3(load(core + CORE.call), DEADLOCK, load(worker + WORKER.number), 0)


@inner
def _note_lapse(core: int, worker: int, rank: int, begin: float) -> None:
    number = add(core + CORE.log_count, 1)
    if number >= load(core + CORE.log_space):
        return
    event = load(core + CORE.log) + number * EVENT.size
    store_real(event + EVENT.time, begin)
    store_real(event + EVENT.execution, now(core, worker))
    store(event + EVENT.rank, rank)
    store(event + EVENT.worker, load(worker + WORKER.number))
    put(event + EVENT.kind, LAPSE)
