"""Matching of sends and receives by source and tag, in the order of both; compiled.

All functions are called by whoever makes the progress of ``owner``, the receiver.
"""

from __future__ import annotations

from runner.runtimes.core.atomic import add, copy, inner, load, put, store
from runner.runtimes.intranode.daps.daps_records import (
    BUFFERS,
    DATA,
    EAGER,
    FILLING,
    FREE,
    FULL,
    LENT,
    MESSAGE,
    OFFERED,
    OVER,
    OWNER,
    READY,
    REQUEST,
    SEEN,
    SLOT,
    SLOT_SIZE,
    SLOTS,
)
from runner.runtimes.intranode.daps.data import move_all
from runner.runtimes.intranode.daps.parcels import copy_region, owner_of, place_of, queue_short


@inner
def counter_of(me: int, owner: int, rank: int, table: int) -> int:
    """The word of a rank of this node that counts the answers of ``owner``."""
    other = owner_of(me, -1 - place_of(me, rank))
    return load(other + table) + 8 * load(owner + OWNER.rank)


@inner
def find_receive(owner: int, rank: int, tag: int) -> int:
    """Remove the oldest receive for this source and tag from the list; 0 if there is none."""
    before, request = 0, load(owner + OWNER.first)
    while request != 0:
        after = load(request + REQUEST.next)
        if load(request + REQUEST.peer) == rank and load(request + REQUEST.tag) == tag:
            if before == 0:
                store(owner + OWNER.first, after)
            else:
                store(before + REQUEST.next, after)
            if after == 0:
                store(owner + OWNER.last, before)
            return request
        before = request
        request = after
    return 0


@inner
def append_receive(owner: int, request: int) -> None:
    """Put a receive at the end of the list."""
    store(request + REQUEST.next, 0)
    last = load(owner + OWNER.last)
    if last == 0:
        store(owner + OWNER.first, request)
    else:
        store(last + REQUEST.next, request)
    store(owner + OWNER.last, request)


@inner
def end_receive(owner: int, request: int) -> None:
    """A receive is over: nothing more is expected for it."""
    if load(request + REQUEST.net) != 0:
        add(owner + OWNER.net_avail, -1)
    else:
        add(owner + OWNER.shm_avail, -1)
    put(request + REQUEST.stage, OVER)


@inner
def fits(request: int, message: int) -> int:
    """1 if a message has the size of a receive; otherwise 0, and the receive fails."""
    size = load(message + MESSAGE.bytes)
    if load(request + REQUEST.bytes) == size:
        return 1
    store(request + REQUEST.failed, size + 1)
    return 0


@inner
def tell_receive(me: int, owner: int, rank: int) -> None:
    """Tell a sender that its message has a receive."""
    if place_of(me, rank) < 0:
        add(counter_of(me, owner, rank, OWNER.seen), 1)
    else:
        queue_short(me, owner, rank, SEEN, 0, 0, 0, 0)


@inner
def answer_offer(me: int, owner: int, message: int, request: int) -> None:
    """Ask the sender on another node for the data, or (request 0) tell it to send none."""
    rank, sender = load(message + MESSAGE.source), load(message + MESSAGE.request)
    size = load(message + MESSAGE.bytes)
    ready = queue_short(me, owner, rank, READY, size, 0, sender, request)
    if request != 0:
        copy_region(ready + MESSAGE.address, request + REQUEST.address)


@inner
def take_loan(me: int, owner: int, message: int, request: int) -> None:
    """Copy the data of a sender on this node, which are in shared memory."""
    if fits(request, message) != 0:
        size = load(message + MESSAGE.bytes)
        move_all(me, request + REQUEST.address, message + MESSAGE.o_address, size)
    put(load(message + MESSAGE.request) + REQUEST.stage, OVER)
    tell_receive(me, owner, load(message + MESSAGE.source))
    end_receive(owner, request)


@inner
def slots_of(owner: int, rank: int) -> int:
    """The first slot for messages of a rank."""
    return load(owner + OWNER.slots) + SLOT_SIZE * SLOTS * rank


@inner
def use_slot(owner: int, message: int, first: int, end: int) -> int:
    """A free slot from ``first`` to ``end`` (excluded) with a copy of a message; 0 if none is
    free."""
    number = first
    while number < end:
        slot = slots_of(owner, load(message + MESSAGE.source)) + SLOT_SIZE * number
        if load(slot + SLOT.state) == FREE:
            copy(slot + SLOT.message, message, MESSAGE.size)
            sequence = load(owner + OWNER.sequence)
            store(owner + OWNER.sequence, sequence + 1)
            store(slot + SLOT.sequence, sequence)
            store(slot + SLOT.claim, 0)
            return slot
        number += 1
    return 0


@inner
def oldest_slot(owner: int, rank: int, tag: int) -> int:
    """The oldest message of a rank with this tag and without a receive; 0 if there is none."""
    oldest, number = 0, 0
    while number < SLOTS:
        slot = slots_of(owner, rank) + SLOT_SIZE * number
        waits = load(slot + SLOT.state) != FREE and load(slot + SLOT.claim) == 0
        waits = waits and load(slot + SLOT.message + MESSAGE.tag) == tag
        if waits and (oldest == 0 or load(slot + SLOT.sequence) < load(oldest + SLOT.sequence)):
            oldest = slot
        number += 1
    return oldest


@inner
def describe_buffer(slot: int, region: int) -> None:
    """Write the buffer of a slot as a gapless region of the message's size."""
    store(region, load(slot + SLOT.buffer))
    store(region + 8, load(slot + SLOT.message + MESSAGE.bytes))
    for n in range(3):
        store(region + 16 + 16 * n, 1)
        store(region + 24 + 16 * n, 0)


@inner
def empty_slot(me: int, owner: int, slot: int, request: int) -> None:
    """Give the data in a slot's buffer to a receive."""
    message = slot + SLOT.message
    if fits(request, message) != 0:
        source = message + MESSAGE.o_address
        describe_buffer(slot, source)
        size = load(message + MESSAGE.bytes)
        move_all(me, request + REQUEST.address, source, size)
    tell_receive(me, owner, load(message + MESSAGE.source))
    store(slot + SLOT.state, FREE)
    end_receive(owner, request)


@inner
def give_slot(me: int, owner: int, slot: int, request: int) -> None:
    """A receive gets a message that arrived before it."""
    state, message = load(slot + SLOT.state), slot + SLOT.message
    if state == FILLING:
        store(slot + SLOT.claim, request)
    elif state == FULL:
        empty_slot(me, owner, slot, request)
    else:
        store(slot + SLOT.state, FREE)
        if state == LENT:
            take_loan(me, owner, message, request)
        else:
            accept_offer(me, owner, message, request)


@inner
def accept_offer(me: int, owner: int, message: int, request: int) -> None:
    """A receive gets a message whose data are on another node."""
    if fits(request, message) != 0:
        answer_offer(me, owner, message, request)
    else:
        answer_offer(me, owner, message, 0)
        end_receive(owner, request)


@inner
def receive(me: int, owner: int, request: int) -> None:
    """Start a receive of the owner."""
    slot = oldest_slot(owner, load(request + REQUEST.peer), load(request + REQUEST.tag))
    if slot != 0:
        give_slot(me, owner, slot, request)
    else:
        append_receive(owner, request)


@inner
def handle_offer(me: int, owner: int, message: int) -> None:
    """A sender on another node has a message."""
    request = find_receive(owner, load(message + MESSAGE.source), load(message + MESSAGE.tag))
    if request != 0:
        accept_offer(me, owner, message, request)
    else:
        store(use_slot(owner, message, BUFFERS, SLOTS) + SLOT.state, OFFERED)


@inner
def handle_loan(me: int, owner: int, message: int) -> None:
    """A sender on this node has a message; a short one is copied, so that the sender can
    continue."""
    request = find_receive(owner, load(message + MESSAGE.source), load(message + MESSAGE.tag))
    if request != 0:
        take_loan(me, owner, message, request)
        return
    size, slot = load(message + MESSAGE.bytes), 0
    if load(message + MESSAGE.kind) == EAGER:
        slot = use_slot(owner, message, 0, BUFFERS)
    if slot == 0:
        store(use_slot(owner, message, BUFFERS, SLOTS) + SLOT.state, LENT)
        return
    message_copy = slot + SLOT.message
    describe_buffer(slot, message_copy + MESSAGE.address)
    move_all(me, message_copy + MESSAGE.address, message_copy + MESSAGE.o_address, size)
    store(slot + SLOT.state, FULL)
    put(load(message + MESSAGE.request) + REQUEST.stage, OVER)


@inner
def ready(me: int, owner: int, message: int) -> None:
    """The receiver of a send of this owner is ready for the data, or refuses them."""
    sender, receiver = load(message + MESSAGE.request), load(message + MESSAGE.value)
    rank = load(message + MESSAGE.source)
    add(load(owner + OWNER.seen) + 8 * rank, 1)
    add(owner + OWNER.net_avail, -1)
    if receiver == 0:
        put(sender + REQUEST.stage, OVER)
        return
    size = load(message + MESSAGE.bytes)
    data = queue_short(me, owner, rank, DATA, size, 0, receiver, sender)
    copy_region(data + MESSAGE.address, message + MESSAGE.address)
    copy_region(data + MESSAGE.o_address, sender + REQUEST.address)
