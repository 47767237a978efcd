"""Messages in compiled code: started in MPI, then completed; see :mod:`.mail` for others.

MPI's functions and handles come from a table of addresses, so one stored object serves every
library. Handles are passed by value; those of MPICH have 4 bytes. One worker at a time tests all
requests. Requests started meanwhile wait on a second list. If one worker makes all MPI calls, the
others put theirs on that list and continue (Barrett et al.: FUNNELED).
"""

from __future__ import annotations

from runner.runtimes.core.atomic import (
    add,
    call_5,
    call_7,
    call_word_2,
    call_word_3,
    exchange,
    inner,
    load,
    load_int,
    load_real,
    peek,
    peek_real,
    put,
    put_real,
    store,
    store_int,
    store_real,
)
from runner.runtimes.core.clock import now, switch
from runner.runtimes.core.graph import fail, note, requests_done
from runner.runtimes.core.mail import deliver, hand_over
from runner.runtimes.core.queue import call_any, call_worker, lock, try_lock, unlock
from runner.runtimes.core.words import (
    COMPUTE,
    CORE,
    DEEP_SHARE,
    MPI,
    MPI_FAILED,
    NO_MEMORY,
    NO_RANK,
    NO_TAG,
    NODE,
    POLL,
    POLL_GAP_S,
    POLL_SHARE,
    POSTED,
    RANK,
    REQUEST,
    WORKER,
)


@inner
def start(
    rank: int, incoming: int, address: int, count: int, kind: int, peer: int, tag: int
) -> None:
    """Start a message of the region that the rank is running: ``count`` elements at an address."""
    core, worker, node = (
        load(rank + RANK.core),
        load(rank + RANK.worker),
        load(rank + RANK.owner),
    )
    if peer < 0 or peer >= load(core + CORE.total):
        fail(core, NO_RANK, rank, peer, incoming, 0)
        return
    if tag < 0 or tag > load(core + CORE.tag_top):
        fail(core, NO_TAG, rank, tag, incoming, 0)
        return
    switch(core, worker, MPI)
    store(node + NODE.posted, load(node + NODE.posted) + 1)
    place = load(load(core + CORE.locations) + 8 * peer)
    process, local = place >> 32, place & 0xFFFFFFFF
    kinds = load(core + CORE.kinds) + 16 * kind
    size = count * load(kinds + 8)
    if incoming == 0:
        store(worker + WORKER.messages, load(worker + WORKER.messages) + 1)
        store(worker + WORKER.bytes, load(worker + WORKER.bytes) + size)
        _count(core, rank, peer, size)
    if load(core + CORE.direct) != 0 and process == load(core + CORE.process):
        partner = hand_over(core, rank, incoming, address, size, peer, local, tag, node)
        if partner != 0:
            deliver(core, worker, rank, partner)
            note(core, worker, REQUEST, node, 0)
            requests_done(core, worker, node, 1)
    else:
        own = load(rank + RANK.local)
        sender, receiver = (local, own) if incoming != 0 else (own, local)
        bits = load(core + CORE.tag_bits)
        wire = (((tag << bits) | sender) << bits) | receiver
        info = (peer << 32) | (tag << 1) | incoming
        if calls_mpi(core, worker):
            before_others(core, worker)
            if _call(core, worker, info, address, count, load(kinds), process, wire, node):
                _keep(core, worker, worker + WORKER.time0, node, info)
        else:
            _move(core, node, info, address, count, load(kinds), process, wire)
    switch(core, worker, COMPUTE)


@inner
def _count(core: int, rank: int, peer: int, size: int) -> None:
    """Count a message from a rank in the table of traffic, if there is one."""
    traffic = load(core + CORE.traffic)
    if traffic != 0:
        place = traffic + 16 * (load(rank + RANK.local) * load(core + CORE.total) + peer)
        store(place, load(place) + 1)
        store(place + 8, load(place + 8) + size)


@inner
def calls_mpi(core: int, worker: int) -> bool:
    """True if a worker may make MPI calls."""
    funnel = load(core + CORE.funnel)
    return funnel == 0 or funnel == worker


@inner
def _call(
    core: int,
    worker: int,
    info: int,
    address: int,
    count: int,
    datatype: int,
    process: int,
    wire: int,
    node: int,
) -> bool:
    """Start a message in MPI; returns True if its request is in the worker's ``time0``."""
    function = load(core + (CORE.irecv if info & 1 else CORE.isend))
    communicator = load(core + CORE.communicator)
    request = worker + WORKER.time0
    _mpi_lock(core)
    code = call_7(function, address, count, datatype, process, wire, communicator, request)
    _mpi_unlock(core)
    if code != 0:
        fail(core, MPI_FAILED, load(node + NODE.rank), code, 0, 0)
    return code == 0


@inner
def _move(
    core: int,
    node: int,
    info: int,
    address: int,
    count: int,
    datatype: int,
    process: int,
    wire: int,
) -> None:
    """Leave a call to the worker that makes all MPI calls."""
    add(core + CORE.pending, 1)
    lock(core, core + CORE.post_lock)
    place = _new_posted(core)
    store(place + POSTED.node, node)
    store(place + POSTED.info, info)
    store(place + POSTED.address, address)
    store(place + POSTED.count, count)
    store(place + POSTED.datatype, datatype)
    store(place + POSTED.process, process)
    store(place + POSTED.wire, wire)
    # The call must be visible before this worker looks for sleepers.
    exchange(core + CORE.post_lock, 0)
    if peek(core + CORE.sleeping) != 0:
        call_worker(core, load(core + CORE.funnel))


@inner
def _new_posted(core: int) -> int:
    """A new entry of the list of posted messages, whose lock is held."""
    count = load(core + CORE.incoming_count)
    if count == load(core + CORE.incoming_space):
        _grow(core, CORE.incoming, CORE.incoming_space, POSTED.size)
    put(core + CORE.incoming_count, count + 1)
    return load(core + CORE.incoming) + POSTED.size * count


@inner
def before_others(core: int, worker: int) -> None:
    """Make the calls left to this worker: the next one must not overtake them."""
    if load(core + CORE.funnel) != 0 and peek(core + CORE.incoming_count) != 0:
        lock(core, core + CORE.poll_lock)
        _take_incoming(core, worker)
        unlock(core + CORE.poll_lock)


@inner
def _mpi_lock(core: int) -> None:
    """Take the lock around MPI calls at thread level "serialized"."""
    if load(core + CORE.serial) != 0:
        lock(core, core + CORE.mpi_lock)


@inner
def _mpi_unlock(core: int) -> None:
    if load(core + CORE.serial) != 0:
        unlock(core + CORE.mpi_lock)


@inner
def _handle(core: int, place: int) -> int:
    return load_int(place) if load(core + CORE.handle_size) == 4 else load(place)


@inner
def _set_handle(core: int, place: int, value: int) -> None:
    if load(core + CORE.handle_size) == 4:
        store_int(place, value)
    else:
        store(place, value)


@inner
def _keep(core: int, worker: int, request: int, node: int, info: int) -> None:
    """Add a started request to the tested ones, or to the waiting list."""
    before = add(core + CORE.pending, 1)
    if try_lock(core + CORE.poll_lock):
        _append(core, _handle(core, request), node, info)
        unlock(core + CORE.poll_lock)
    else:
        lock(core, core + CORE.post_lock)
        place = _new_posted(core)
        store(place + POSTED.request, _handle(core, request))
        store(place + POSTED.node, node)
        store(place + POSTED.info, info)
        store(place + POSTED.wire, -1)
        unlock(core + CORE.post_lock)
    if before == 0 and peek(core + CORE.sleeping) != 0:
        watch(core)


@inner
def watch(core: int) -> None:
    """Messages are under way: make sure that a worker without a rank polls them."""
    funnel = load(core + CORE.funnel)
    if funnel != 0:
        call_worker(core, funnel)
        return
    if peek(core + CORE.idle) > peek(core + CORE.sleeping) or peek(core + CORE.watcher) != 0:
        return
    call_any(core)


@inner
def _grow(core: int, place: int, space: int, size: int) -> None:
    """Double an array of the core."""
    wanted = 2 * load(core + space)
    found = call_word_2(load(core + CORE.realloc), load(core + place), wanted * size)
    if found == 0:
        fail(core, NO_MEMORY, 0, wanted * size, 0, 0)
        return
    store(core + place, found)
    if place != CORE.requests and place != CORE.owners and place != CORE.infos:
        store(core + space, wanted)


@inner
def _append(core: int, handle: int, node: int, info: int) -> None:
    """Add a request to the tested ones; the poll lock is held."""
    count = load(core + CORE.count)
    if count == load(core + CORE.space):
        _grow_requests(core)
    _set_handle(core, load(core + CORE.requests) + count * load(core + CORE.handle_size), handle)
    store(load(core + CORE.owners) + 8 * count, node)
    store(load(core + CORE.infos) + 8 * count, info)
    put(core + CORE.count, count + 1)


@inner
def _grow_requests(core: int) -> None:
    _resize(core, core + CORE.requests, load(core + CORE.handle_size))
    _resize(core, core + CORE.owners, 8)
    _resize(core, core + CORE.infos, 8)
    _resize(core, core + CORE.indices, 4)
    _resize(core, core + CORE.done, 8)
    _resize(core, core + CORE.statuses, load(core + CORE.status_size))
    store(core + CORE.space, 2 * load(core + CORE.space))


@inner
def _resize(core: int, place: int, size: int) -> None:
    bytes_ = 2 * load(core + CORE.space) * size
    found = call_word_2(load(core + CORE.realloc), load(place), bytes_)
    if found == 0:
        fail(core, NO_MEMORY, 0, bytes_, 0, 0)
    else:
        store(place, found)


@inner
def poll(core: int, worker: int) -> int:
    """Test all messages under way, if no other worker does; returns 1 if it polled, else 0."""
    if not calls_mpi(core, worker):
        return 0
    if not try_lock(core + CORE.poll_lock):
        return 0
    if peek_real(core + CORE.next_poll) < 0.0:
        # Python is polling now (below).
        unlock(core + CORE.poll_lock)
        return 0
    begin = now(core, worker)
    if peek(core + CORE.incoming_count) != 0:
        _take_incoming(core, worker)
    if load(core + CORE.count) != 0:
        calls = load(core + CORE.looks)
        deep = calls > 1 and begin >= load_real(core + CORE.next_deep)
        while _test(core, worker) == 0 and deep and calls > 1:
            calls -= 1
        if deep:
            end = now(core, worker)
            store_real(core + CORE.next_deep, end + DEEP_SHARE * (end - begin))
    outside = peek(core + CORE.outside)
    if outside != 0:
        # A callback may wait for the interpreter's lock, whose holder may want the poll lock.
        put_real(core + CORE.next_poll, -1.0)
        add(core + CORE.turns, 1)
        unlock(core + CORE.poll_lock)
        call_word_3(load(core + CORE.call), POLL, load(worker + WORKER.number), 0)
        lock(core, core + CORE.poll_lock)
    end = now(core, worker)
    put_real(core + CORE.next_poll, end + max(POLL_GAP_S, POLL_SHARE * (end - begin)))
    unlock(core + CORE.poll_lock)
    if outside != 0 and peek(core + CORE.outside) != 0 and peek(core + CORE.sleeping) != 0:
        # While Python polled, ``outside`` was 0: a worker that saw this sleeps until called.
        watch(core)
    return 1


@inner
def _take_incoming(core: int, worker: int) -> None:
    """Add posted messages to the tested ones in order; the poll lock is held."""
    number = 0
    lock(core, core + CORE.post_lock)
    while number < load(core + CORE.incoming_count):
        place = load(core + CORE.incoming) + POSTED.size * number
        number += 1
        node, info, wire = (
            load(place + POSTED.node),
            load(place + POSTED.info),
            load(place + POSTED.wire),
        )
        if wire < 0:
            _append(core, load(place + POSTED.request), node, info)
            continue
        address, count, datatype, process = (
            load(place + POSTED.address),
            load(place + POSTED.count),
            load(place + POSTED.datatype),
            load(place + POSTED.process),
        )
        # Others may leave calls during this one.
        unlock(core + CORE.post_lock)
        if _call(core, worker, info, address, count, datatype, process, wire, node):
            _append(core, _handle(core, worker + WORKER.time0), node, info)
        lock(core, core + CORE.post_lock)
    put(core + CORE.incoming_count, 0)
    unlock(core + CORE.post_lock)


@inner
def _test(core: int, worker: int) -> int:
    """One Testsome of all requests; the poll lock is held.

    Returns the number of complete ones, or -1 after an error.
    """
    count, size = load(core + CORE.count), load(core + CORE.handle_size)
    requests, owners = load(core + CORE.requests), load(core + CORE.owners)
    infos, indices = load(core + CORE.infos), load(core + CORE.indices)
    outcount = core + CORE.outcount
    _mpi_lock(core)
    code = call_5(
        load(core + CORE.testsome), count, requests, outcount, indices, load(core + CORE.statuses)
    )
    _mpi_unlock(core)
    if code != 0:
        fail(core, MPI_FAILED, 0, code, 1, 0)
        return -1
    found = load_int(outcount)
    if found == load(core + CORE.undefined) or found == 0:
        return 0
    done = load(core + CORE.done)
    number = 0
    while number < found:
        at = load_int(indices + 4 * number)
        store(done + 8 * number, load(owners + 8 * at))
        store(owners + 8 * at, 0)
        number += 1
    number = 0
    while number < found:
        while count > 0 and load(owners + 8 * (count - 1)) == 0:
            count -= 1
        at = load_int(indices + 4 * number)
        if at < count:
            count -= 1
            _set_handle(core, requests + size * at, _handle(core, requests + size * count))
            store(owners + 8 * at, load(owners + 8 * count))
            store(infos + 8 * at, load(infos + 8 * count))
        number += 1
    put(core + CORE.count, count)
    number = 0
    while number < found:
        node = load(done + 8 * number)
        note(core, worker, REQUEST, node, 0)
        requests_done(core, worker, node, 1)
        number += 1
    # Only now: a message that is complete but not counted must not look like a deadlock.
    add(core + CORE.pending, -found)
    return found


@inner
def poll_if_due(core: int, worker: int, time: float) -> None:
    """Poll unless the last poll was very recent."""
    if peek(core + CORE.pending) == 0 and peek(core + CORE.outside) == 0:
        return
    if load(core + CORE.service) != 0 or not calls_mpi(core, worker):
        return
    due = peek_real(core + CORE.next_poll)
    if time >= due and due >= 0.0:
        kind = load(worker + WORKER.kind)
        switch(core, worker, MPI)
        poll(core, worker)
        switch(core, worker, kind)
