"""The two ends of a connection: data are received and sent without waiting; compiled.

The progress of a message is in shared memory, so another rank may continue it.
"""

from __future__ import annotations

from runner.runtimes.core.atomic import (
    add,
    call_varied_6,
    call_word_2,
    inner,
    load,
    load_int,
    put,
    store,
)
from runner.runtimes.intranode.cab_records import MOVE, REGION
from runner.runtimes.intranode.daps.daps_records import (
    DATA,
    DROP,
    EAGER,
    LINK,
    ME,
    MESSAGE,
    OVER,
    OWNER,
    REQUEST,
    RING,
    STAGE,
)
from runner.runtimes.intranode.daps.handlers import begin_data, handle_parcel
from runner.runtimes.intranode.daps.parcels import data_of
from runner.runtimes.intranode.moves import is_whole, pack, put_in

_STEPS = 16
"""System calls for a connection before the others get their turn."""
_MOST = 1 << 20
"""Maximum bytes of a call."""
_EAGAIN, _EINTR = 11, 4
_DONT_WAIT, _NO_SIGNAL, _MORE = 0x40, 0x4000, 0x8000
"""Flags of Linux's ``send`` and ``recv``."""


@inner
def moved_bytes(me: int, owner: int, link: int, answer: int) -> int:
    """The result of ``send`` or ``recv``: bytes, or 0; a closed connection is recorded."""
    if answer > 0:
        return answer
    if answer < 0:
        error = load_int(call_word_2(load(me + ME.errno), 0, 0))
        if error == _EAGAIN or error == _EINTR:  # noqa: SIM109
            return 0
    put(link + LINK.lost, 1)
    put(owner + OWNER.lost, 1)
    return 0


@inner
def recv_bytes(me: int, owner: int, link: int, socket: int, place: int, size: int) -> int:
    """Receive available bytes; returns their number."""
    size = min(size, _MOST)
    answer = call_varied_6(load(me + ME.recv), socket, place, size, _DONT_WAIT, 0, 0)
    return moved_bytes(me, owner, link, answer)


@inner
def send_bytes(
    me: int, owner: int, link: int, socket: int, place: int, size: int, more: int
) -> int:
    """Send as many bytes as there is room for; returns their number."""
    flags = _DONT_WAIT | _NO_SIGNAL
    if more != 0 or size > _MOST:
        flags |= _MORE
    size = min(size, _MOST)
    answer = call_varied_6(load(me + ME.send), socket, place, size, flags, 0, 0)
    return moved_bytes(me, owner, link, answer)


@inner
def take_in(me: int, owner: int, link: int, socket: int) -> int:
    """Receive available data; returns 1 if there were any, else 0."""
    has_moved, steps = 0, 0
    message = link + LINK.message
    while steps < _STEPS:
        steps += 1
        head = load(link + LINK.head)
        if head < MESSAGE.size:
            count = recv_bytes(me, owner, link, socket, message + head, MESSAGE.size - head)
            if count == 0:
                break
            has_moved = 1
            store(link + LINK.head, head + count)
            if head + count < MESSAGE.size:
                continue
            store(link + LINK.body, 0)
            store(link + LINK.moved, 0)
            store(link + LINK.action, begin_data(owner, link))
        size = data_of(message)
        if load(link + LINK.body) < size:
            if take_data(me, owner, link, socket, size) == 0:
                break
            has_moved = 1
        if load(link + LINK.body) == size:
            handle_parcel(me, owner, link)
            store(link + LINK.head, 0)
    return has_moved


@inner
def take_data(me: int, owner: int, link: int, socket: int, size: int) -> int:
    """Receive data, directly to their destination if they are only copied, without gaps."""
    body, action = load(link + LINK.body), load(link + LINK.action)
    region = link + LINK.message + MESSAGE.address
    if action == MOVE and is_whole(region):
        place = load(region + REGION.address) + body
        count = recv_bytes(me, owner, link, socket, place, size - body)
        store(link + LINK.body, body + count)
        return count
    begin, stage = load(link + LINK.moved), load(link + LINK.in_stage)
    offset = body - begin
    count = recv_bytes(me, owner, link, socket, stage + offset, min(STAGE - offset, size - body))
    body += count
    store(link + LINK.body, body)
    if body == size or body - begin == STAGE:
        if action != DROP:
            put_in(stage, region, begin, body, action)
        store(link + LINK.moved, body)
    return count


@inner
def give_out(me: int, owner: int, link: int, socket: int) -> int:
    """Send queued data; returns 1 if any were sent, else 0."""
    has_moved, steps = 0, 0
    while steps < _STEPS and load(link + LINK.first) < load(link + LINK.end):
        steps += 1
        first = load(link + LINK.first)
        parcel = load(link + LINK.ring) + MESSAGE.size * (first % RING)
        size, sent_bytes = data_of(parcel), load(link + LINK.sent)
        if sent_bytes < MESSAGE.size:
            place = parcel + sent_bytes
            count = send_bytes(me, owner, link, socket, place, MESSAGE.size - sent_bytes, size)
        else:
            count = send_data(me, owner, link, socket, parcel, size)
        if count == 0:
            break
        has_moved = 1
        sent_bytes += count
        store(link + LINK.sent, sent_bytes)
        if sent_bytes == MESSAGE.size + size:
            end_parcel(owner, link, parcel)
    return has_moved


@inner
def send_data(me: int, owner: int, link: int, socket: int, parcel: int, size: int) -> int:
    """Send data of a parcel; data with gaps are packed first, part by part."""
    at, region = load(link + LINK.sent) - MESSAGE.size, parcel + MESSAGE.o_address
    if is_whole(region):
        place = load(region + REGION.address) + at
        return send_bytes(me, owner, link, socket, place, size - at, 0)
    stage, end = load(link + LINK.out_stage), load(link + LINK.packed)
    if at == end:
        end = min(at + STAGE, size)
        pack(stage, region, at, end)
        store(link + LINK.packed, end)
    # Parts start at multiples of the buffer's size.
    begin = (at // STAGE) * STAGE
    return send_bytes(me, owner, link, socket, stage + at - begin, end - at, int(end < size))


@inner
def end_parcel(owner: int, link: int, parcel: int) -> None:
    """A parcel was sent."""
    kind = load(parcel + MESSAGE.kind)
    if kind == EAGER or kind == DATA:  # noqa: SIM109
        put(load(parcel + MESSAGE.value) + REQUEST.stage, OVER)
    store(link + LINK.sent, 0)
    store(link + LINK.packed, 0)
    store(link + LINK.first, load(link + LINK.first) + 1)
    add(owner + OWNER.unsent, 1)
