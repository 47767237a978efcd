"""Requests: their stages, and the loop of a waiting rank; compiled."""

from __future__ import annotations

from runner.runtimes.core.atomic import add, call_0, inner, load, pause, peek, put, store, swap_if
from runner.runtimes.intranode.cab_records import (
    ARRIVED,
    BOARD,
    CHANNEL,
    CHANNEL_SIZE,
    FLAG,
    FREE,
    LETTER,
    LOCKING,
    MATCH,
    MATCHED,
    ME,
    OVER,
    PLACES,
    POSTED,
    REGION,
    REQUEST,
    SEAT,
    SENT,
    SETTLE,
    TAKEN,
    UNPACK,
    WRONG_SIZE,
)
from runner.runtimes.intranode.moves import copy_over, is_whole
from runner.runtimes.intranode.stealing import help_others, offer, seat_of, set_active

__all__ = ["FUNCTIONS", "copy_over"]

FUNCTIONS = {
    "post": "int64(int64, int64)",
    "begin": "void(int64, int64, int64)",
    "wait_all": "int64(int64, int64, int64, int64)",
    "arrive": "void(int64, int64)",
    "copy_over": "void(int64, int64, int64, int64, int64)",
}
"""Functions for Python."""
_NEAR_THE_END = 2000
"""Looks for chunks still held by others before the request is postponed."""


def post(me: int, request: int) -> int:
    """Send: put a letter into the channel; returns 1 if there was room, else 0."""
    channel = load(seat_of(me, load(request + REQUEST.peer)) + SEAT.channels)
    channel += CHANNEL_SIZE * load(me + ME.rank)
    number = load(channel + CHANNEL.posted)
    letter = channel + CHANNEL.letters + LETTER.size * (number % PLACES)
    if peek(letter + LETTER.state) != FREE:
        return 0
    _copy_region(letter + LETTER.address, request + REQUEST.address)
    store(letter + LETTER.tag, load(request + REQUEST.tag))
    store(request + REQUEST.letter, letter)
    store(request + REQUEST.stage, SENT)
    put(letter + LETTER.state, POSTED)
    put(channel + CHANNEL.posted, number + 1)
    return 1


@inner
def _copy_region(target: int, source: int) -> None:
    for n in range(REGION.size // 8):
        store(target + 8 * n, load(source + 8 * n))


def begin(me: int, request: int, stage: int) -> None:
    """Append a receive or an operation to those started before."""
    store(request + REQUEST.next, 0)
    store(request + REQUEST.stage, stage)
    if load(me + ME.first) == 0:
        store(me + ME.first, request)
    else:
        store(load(me + ME.end) + REQUEST.next, request)
    store(me + ME.end, request)


@inner
def _match(me: int, peer: int) -> None:
    """Match the messages of a rank with its receives, in the order of both."""
    channel = load(load(me + ME.seat) + SEAT.channels) + CHANNEL_SIZE * peer
    # Letters that arrive meanwhile wait for the next time: a later receive must not take one.
    end = peek(channel + CHANNEL.posted)
    request = load(me + ME.first)
    while request != 0 and load(channel + CHANNEL.taken) != end:
        if load(request + REQUEST.stage) == MATCH and load(request + REQUEST.peer) == peer:
            letter = _oldest(channel, end, load(request + REQUEST.tag))
            if letter != 0:
                store(request + REQUEST.letter, letter)
                store(request + REQUEST.stage, MATCHED)
        request = load(request + REQUEST.next)


@inner
def _oldest(channel: int, end: int, tag: int) -> int:
    """Take the oldest letter with a tag before ``end``; 0 if there is none."""
    number = load(channel + CHANNEL.taken)
    first, oldest = 1, 0
    while number < end and oldest == 0:
        letter = channel + CHANNEL.letters + LETTER.size * (number % PLACES)
        if peek(letter + LETTER.state) == POSTED:
            if load(letter + LETTER.tag) == tag:
                put(letter + LETTER.state, TAKEN)
                oldest = letter
            else:
                first = 0
        number += 1
        if first != 0:
            store(channel + CHANNEL.taken, number)
    return oldest


@inner
def _bytes_of(region: int) -> int:
    rows = load(region + REGION.n0) * load(region + REGION.n1) * load(region + REGION.n2)
    return load(region + REGION.run) * rows


@inner
def advance(me: int, request: int) -> int:
    """Advance a request to its next stage if possible; returns 1 if it was, else 0."""
    stage = load(request + REQUEST.stage)
    if stage == SENT:
        letter = load(request + REQUEST.letter)
        if peek(letter + LETTER.state) != ARRIVED:
            return 0
        put(letter + LETTER.state, FREE)
        store(request + REQUEST.stage, OVER)
        return 1
    if stage == FLAG:
        if peek(load(request + REQUEST.place)) < load(request + REQUEST.value):
            return 0
        store(request + REQUEST.stage, OVER)
        return 1
    if stage == SETTLE or stage == UNPACK:  # noqa: SIM109
        return _settle(me, request, stage)
    if stage == MATCH:
        _match(me, load(request + REQUEST.peer))
        stage = load(request + REQUEST.stage)
        if stage == MATCH:
            return 0
    # The others need this rank's queue.
    if load(me + ME.busy) != 0:
        return 0
    if stage == MATCHED:
        letter = load(request + REQUEST.letter)
        _copy_region(request + REQUEST.address, letter + LETTER.address)
        if _bytes_of(letter + LETTER.address) != load(request + REQUEST.bytes):
            store(request + REQUEST.failed, WRONG_SIZE)
            _end(me, request)
            return 1
    elif stage == LOCKING:
        lock = load(request + REQUEST.lock)
        if lock != 0 and (peek(lock) != 0 or swap_if(lock, 0, load(me + ME.rank) + 1) == 0):
            return 0
    else:
        return 0
    source, target = request + REQUEST.address, request + REQUEST.target
    if load(request + REQUEST.between) != 0 and not (is_whole(source) or is_whole(target)):
        _begin(me, request, source, request + REQUEST.between, UNPACK)
    else:
        _begin(me, request, source, target, SETTLE)
    return 1


@inner
def _begin(me: int, request: int, source: int, target: int, stage: int) -> None:
    """Divide this into chunks, and do those that nobody steals."""
    seat = load(me + ME.seat)
    store(me + ME.busy, request)
    set_active(me, 1)
    _copy_region(seat + SEAT.source, source)
    _copy_region(seat + SEAT.target, target)
    store(seat + SEAT.operation, load(request + REQUEST.operation))
    size = load(request + REQUEST.bytes)
    store(seat + SEAT.bytes, size)
    before = peek(seat + SEAT.done)
    stolen_chunks = 0
    if size > 0:
        stolen_chunks = offer(me, size)
    store(request + REQUEST.base, before + stolen_chunks)
    store(request + REQUEST.stage, stage)
    set_active(me, 0)


@inner
def _settle(me: int, request: int, stage: int) -> int:
    """Continue if the others have done the chunks that they took."""
    counter, looks = load(me + ME.seat) + SEAT.done, _NEAR_THE_END
    if load(me + ME.spins) >= 0:
        looks = min(looks, load(me + ME.spins))
    while peek(counter) < load(request + REQUEST.base):
        if looks <= 0:
            return 0
        looks -= 1
        pause()
    if stage == UNPACK:
        # The second half of a message that is packed completely.
        _begin(me, request, request + REQUEST.between, request + REQUEST.target, SETTLE)
    else:
        _end(me, request)
    return 1


@inner
def _end(me: int, request: int) -> None:
    letter, lock = load(request + REQUEST.letter), load(request + REQUEST.lock)
    if letter != 0:
        put(letter + LETTER.state, ARRIVED)
    if lock != 0:
        put(lock, 0)
    store(request + REQUEST.stage, OVER)
    store(me + ME.busy, 0)


@inner
def _progress(me: int) -> int:
    """Advance all started requests of this rank; returns 1 if anything changed, else 0."""
    before, request, has_moved = 0, load(me + ME.first), 0
    while request != 0:
        after = load(request + REQUEST.next)
        has_moved |= advance(me, request)
        if load(request + REQUEST.stage) != OVER:
            before = request
        elif before == 0:
            store(me + ME.first, after)
        else:
            store(before + REQUEST.next, after)
        request = after
    store(me + ME.end, before)
    return has_moved


def wait_all(me: int, requests: int, count: int, looks: int) -> int:
    """Wait for requests and help others meanwhile; returns the number left after some looks."""
    set_active(me, 0)
    left, spins = count, 0
    while True:
        left, has_moved = 0, _progress(me)
        for n in range(count):
            request = load(requests + 8 * n)
            stage = load(request + REQUEST.stage)
            if stage == SENT or stage == FLAG:  # noqa: SIM109
                has_moved |= advance(me, request)
            if load(request + REQUEST.stage) != OVER:
                left += 1
        if left == 0 or looks <= 0:
            break
        if has_moved != 0:
            continue
        if load(me + ME.busy) == 0 and help_others(me) != 0:
            spins = 0
            continue
        looks -= 1
        spins += 1
        if spins > load(me + ME.spins) >= 0:
            call_0(load(me + ME.yield_))
        else:
            pause()
    set_active(me, 1)
    return left


def arrive(me: int, request: int) -> None:
    """Enter the barrier; the request waits for the last one."""
    board = load(me + ME.board)
    size = load(me + ME.ranks)
    arrivals = add(board + BOARD.arrivals, 1)
    epoch = arrivals // size + 1
    store(request + REQUEST.place, board + BOARD.epoch)
    store(request + REQUEST.value, epoch)
    store(request + REQUEST.stage, FLAG)
    if (arrivals + 1) % size == 0:
        put(board + BOARD.epoch, epoch)
