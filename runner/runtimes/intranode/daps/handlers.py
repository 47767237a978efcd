"""The handlers of received active messages, run for their owner; compiled.

Whoever makes the progress of ``owner`` runs them, so no two run for one owner at the same time.
"""

from __future__ import annotations

from runner.runtimes.core.atomic import add, inner, load, put, store
from runner.runtimes.intranode.cab_records import ADD_REALS, ADD_WORDS, MOVE
from runner.runtimes.intranode.daps.daps_records import (
    ANSWER,
    BEAT,
    BUFFERS,
    DATA,
    DONE,
    DROP,
    EAGER,
    FETCH,
    FILLING,
    FULL,
    GET,
    LINK,
    MESSAGE,
    OFFER,
    OWNER,
    PUT,
    READY,
    REPLY,
    REQUEST,
    SEEN,
    SLOT,
)
from runner.runtimes.intranode.daps.data import add_all, move_all
from runner.runtimes.intranode.daps.matching import (
    counter_of,
    describe_buffer,
    empty_slot,
    end_receive,
    find_receive,
    fits,
    handle_loan,
    handle_offer,
    ready,
    tell_receive,
    use_slot,
)
from runner.runtimes.intranode.daps.parcels import copy_region, queue_short

_IN_SLOT = 1
"""Added to ``LINK.receive`` if it is a slot; records start at a cache line."""


@inner
def fetch_and_add(message: int) -> int:
    """Add to a word; returns the previous value."""
    return add(load(message + MESSAGE.address), load(message + MESSAGE.value))


@inner
def answer_cell(cell: int, value: int) -> None:
    """Write the result of a fetch where its rank waits for it."""
    store(cell + 8, value)
    put(cell, 1)


@inner
def beat(owner: int, message: int) -> None:
    """A rank has reached a barrier."""
    add(load(owner + OWNER.beats) + 8 * load(message + MESSAGE.value), 1)


@inner
def handle_letter(me: int, owner: int, letter: int) -> None:
    """A message of a rank of this node, whose memory is accessible."""
    kind, rank = load(letter + MESSAGE.kind), load(letter + MESSAGE.source)
    if kind == BEAT:
        beat(owner, letter)
        return
    if kind == EAGER or kind == OFFER:  # noqa: SIM109
        handle_loan(me, owner, letter)
        return
    size = load(letter + MESSAGE.bytes)
    region, other_region = letter + MESSAGE.address, letter + MESSAGE.o_address
    if kind == PUT:
        move_all(me, region, other_region, size)
    elif kind == GET:
        move_all(me, other_region, region, size)
    elif kind == FETCH:
        answer_cell(load(letter + MESSAGE.request), fetch_and_add(letter))
    else:
        add_all(me, region, other_region, size, kind)
    add(counter_of(me, owner, rank, OWNER.done), 1)


@inner
def begin_data(owner: int, link: int) -> int:
    """A header from another node has arrived; returns the action for the data after it."""
    message = link + LINK.message
    kind = load(message + MESSAGE.kind)
    store(link + LINK.receive, 0)
    if kind == ADD_REALS or kind == ADD_WORDS:  # noqa: SIM109
        return kind
    if kind != EAGER:
        return MOVE
    request = find_receive(owner, load(message + MESSAGE.source), load(message + MESSAGE.tag))
    if request != 0:
        store(link + LINK.receive, request)
        if fits(request, message) == 0:
            return DROP
        copy_region(message + MESSAGE.address, request + REQUEST.address)
        return MOVE
    slot = use_slot(owner, message, 0, BUFFERS)
    describe_buffer(slot, message + MESSAGE.address)
    store(slot + SLOT.state, FILLING)
    store(link + LINK.receive, slot + _IN_SLOT)
    return MOVE


@inner
def end_eager(me: int, owner: int, link: int) -> None:
    """All data of an eager message have arrived."""
    place = load(link + LINK.receive)
    if place & _IN_SLOT == 0:
        tell_receive(me, owner, load(link + LINK.message + MESSAGE.source))
        end_receive(owner, place)
        return
    slot = place - _IN_SLOT
    store(slot + SLOT.state, FULL)
    claim = load(slot + SLOT.claim)
    if claim != 0:
        empty_slot(me, owner, slot, claim)


@inner
def handle_parcel(me: int, owner: int, link: int) -> None:
    """A message from another node has arrived with all its data."""
    message = link + LINK.message
    kind, rank = load(message + MESSAGE.kind), load(message + MESSAGE.source)
    request = load(message + MESSAGE.request)
    if kind == PUT or kind == ADD_REALS or kind == ADD_WORDS:  # noqa: SIM109
        queue_short(me, owner, rank, DONE, 0, 0, 0, 0)
    elif kind == REPLY or kind == DONE or kind == ANSWER:  # noqa: SIM109
        if kind == ANSWER:
            answer_cell(request, load(message + MESSAGE.value))
        add(load(owner + OWNER.done) + 8 * rank, 1)
    elif kind == EAGER:
        end_eager(me, owner, link)
    elif kind == DATA:
        end_receive(owner, request)
    elif kind == GET:
        reply = queue_short(me, owner, rank, REPLY, load(message + MESSAGE.bytes), 0, 0, 0)
        copy_region(reply + MESSAGE.address, message + MESSAGE.o_address)
        copy_region(reply + MESSAGE.o_address, message + MESSAGE.address)
    elif kind == FETCH:
        queue_short(me, owner, rank, ANSWER, 0, 0, request, fetch_and_add(message))
    elif kind == OFFER:
        handle_offer(me, owner, message)
    elif kind == READY:
        ready(me, owner, message)
    elif kind == SEEN:
        add(load(owner + OWNER.seen) + 8 * rank, 1)
    elif kind == BEAT:
        beat(owner, message)
