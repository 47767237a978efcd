"""The queue of a rank's chunks, and how the others steal from it; compiled.

A queue holds numbers of chunks of one message: its word has the first remaining one, and in the
upper bits the end. The owner takes from the end, others from the beginning, both by one
compare-and-exchange. So there is no lock that a killed rank could hold. A chunk's description is
read after it was taken: until it is done, the owner does not change the description.
"""

from __future__ import annotations

from runner.runtimes.core.atomic import add, inner, load, peek, put, store, swap_if
from runner.runtimes.core.dice import draw
from runner.runtimes.intranode.cab_records import (
    BITS,
    LOCALIZED,
    ME,
    MOVE,
    REGION,
    SEAT,
    THROUGHPUT,
)
from runner.runtimes.intranode.moves import add_to, move

_END = 1 << BITS
_FIRST = _END - 1


@inner
def seat_of(me: int, number: int) -> int:
    """The seat of a rank of the node."""
    return load(load(me + ME.seats) + 8 * number)


@inner
def chunk_of(me: int, size: int) -> int:
    """Bytes of a chunk of a message of this size."""
    chunk = load(me + ME.small)
    if size >= load(me + ME.high):
        chunk = load(me + ME.large)
    elif size >= load(me + ME.low):
        chunk = load(me + ME.medium)
    least = (size >> (BITS - 1)) + 64
    return max(chunk, (least // 64) * 64)


@inner
def offer(me: int, size: int) -> int:
    """Queue the chunks of the message that the seat describes, and do those that nobody steals.

    Returns the number of chunks that others have taken.
    """
    seat = load(me + ME.seat)
    chunk = chunk_of(me, size)
    if size < load(me + ME.threshold) or size <= chunk:
        store(seat + SEAT.chunk, size)
        store(seat + SEAT.count, 1)
        work(me, seat, 0)
        store(me + ME.own, load(me + ME.own) + 1)
        return 0
    count = (size + chunk - 1) // chunk
    store(seat + SEAT.chunk, chunk)
    store(seat + SEAT.count, count)
    store(seat + SEAT.descending, load(me + ME.descending))
    queue = seat + SEAT.queue
    put(queue, count << BITS)
    own = 0
    while True:
        word = peek(queue)
        last = (word >> BITS) - 1
        if last < (word & _FIRST):
            break
        if swap_if(queue, word, word - _END) != 0:
            work(me, seat, last)
            own += 1
    store(me + ME.own, load(me + ME.own) + own)
    store(me + ME.given, load(me + ME.given) + count - own)
    return count - own


@inner
def work(me: int, seat: int, number: int) -> None:
    """Do a chunk of a seat's message.

    The owner takes the last chunk first, and goes upwards through the memory, unless the reader
    begins low (``descending``); then it ends there, and the beginning is in its cache.
    """
    chunk, size = load(seat + SEAT.chunk), load(seat + SEAT.bytes)
    if load(seat + SEAT.descending) == 0:
        number = load(seat + SEAT.count) - 1 - number
    begin = chunk * number
    end = min(begin + chunk, size)
    source, target = seat + SEAT.source, seat + SEAT.target
    operation = load(seat + SEAT.operation)
    if operation == MOVE:
        move(target, source, begin, end, load(me + ME.bounce))
    else:
        # Neither region has gaps.
        to, of = load(target + REGION.address), load(source + REGION.address)
        add_to(to + begin, of + begin, end - begin, operation)


@inner
def steal_from(me: int, seat: int) -> int:
    """Do a chunk of another rank; returns 1 if there was one, else 0."""
    queue = seat + SEAT.queue
    word = peek(queue)
    if (word & _FIRST) >= (word >> BITS):
        return 0
    limit, helpers = load(me + ME.stealers), seat + SEAT.helpers
    if limit >= 0:
        if peek(helpers) >= limit:
            return 0
        if add(helpers, 1) >= limit:
            add(helpers, -1)
            return 0
    has_chunk = swap_if(queue, word, word + 1)
    if has_chunk != 0:
        set_active(me, 1)
        work(me, seat, word & _FIRST)
        add(seat + SEAT.done, 1)
        set_active(me, 0)
        store(me + ME.stolen, load(me + ME.stolen) + 1)
    if limit >= 0:
        add(helpers, -1)
    return has_chunk


@inner
def help_others(me: int) -> int:
    """One attempt of a waiting rank; returns 1 if it did a chunk, else 0.

    It tries the rank of this domain that had one the last time, then a random one, then one of
    another domain if the strategy allows it.
    """
    if load(me + ME.steals) == 0:
        return 0
    last = load(me + ME.last)
    if last != 0 and steal_from(me, last) != 0:
        return 1
    count = load(me + ME.nears)
    if count != 0:
        victim = load(load(me + ME.near) + 8 * draw(me + ME.dice, count))
        if steal_from(me, victim) != 0:
            store(me + ME.last, victim)
            return 1
    strategy, count = load(me + ME.strategy), load(me + ME.fars)
    if strategy == LOCALIZED or count == 0:
        return 0
    victim = load(load(me + ME.far) + 8 * draw(me + ME.dice, count))
    if strategy == THROUGHPUT and _users(me, load(victim + SEAT.domain)) >= load(me + ME.saturate):
        return 0
    return steal_from(me, victim)


@inner
def _users(me: int, domain: int) -> int:
    """Ranks of a domain that count as users of its memory: all that do not wait."""
    count, number = 0, 0
    while number < load(me + ME.ranks):
        seat = seat_of(me, number)
        if load(seat + SEAT.domain) == domain:
            count += peek(seat + SEAT.active)
        number += 1
    return count


@inner
def set_active(me: int, value: int) -> None:
    """Publish if this rank uses the memory."""
    if load(me + ME.flags) != 0:
        put(load(me + ME.seat) + SEAT.active, value)
