"""Messages within a process, in compiled code: handed over without MPI.

The later of two partners copies from the sender's buffer into the receiver's. The mail of a rank
holds the messages to it without a partner, in the order of their start.
"""

from __future__ import annotations

from runner.runtimes.core.atomic import (
    call_word_2,
    call_word_3,
    copy,
    inner,
    load,
    store,
)
from runner.runtimes.core.graph import fail, note, requests_done
from runner.runtimes.core.queue import lock, rank_of, unlock
from runner.runtimes.core.words import (
    COPY,
    CORE,
    DELIVERED,
    LETTER,
    NO_COPY,
    NO_MEMORY,
    RANK,
    REQUEST,
    TRUNCATED,
)

_CHUNK = 64
"""Letters allocated at once."""


@inner
def deliver(core: int, worker: int, rank: int, owner: int) -> None:
    """A message within the process is complete; an odd owner is a request of Python code."""
    if owner & 1:
        call_word_3(load(core + CORE.call), DELIVERED, load(rank + RANK.sent), owner >> 1)
    else:
        note(core, worker, REQUEST, owner, 0)
        requests_done(core, worker, owner, 1)


@inner
def hand_over(
    core: int,
    rank: int,
    incoming: int,
    address: int,
    size: int,
    peer: int,
    local: int,
    tag: int,
    owner: int,
) -> int:
    """Match a message with its partner and copy; returns the partner's owner.

    0 if there is no partner yet; the message then waits in the receiver's mail. An address of 0
    means data that only Python can copy.
    """
    target = rank if incoming != 0 else rank_of(core, local)
    source = peer if incoming != 0 else load(rank + RANK.number)
    others = target + (RANK.sends if incoming != 0 else RANK.receives)
    mine = target + (RANK.receives if incoming != 0 else RANK.sends)
    lock(core, target + RANK.mail_lock)
    before, letter = 0, load(others)
    while letter != 0 and (
        load(letter + LETTER.peer) != source or load(letter + LETTER.tag) != tag
    ):
        before, letter = letter, load(letter + LETTER.next)
    if letter == 0:
        _leave(core, target, mine, source, tag, address, size, owner)
        unlock(target + RANK.mail_lock)
        return 0
    following = load(letter + LETTER.next)
    if before == 0:
        store(others, following)
    else:
        store(before + LETTER.next, following)
    if following == 0:
        store(others + 8, before)
    other, its_size = load(letter + LETTER.address), load(letter + LETTER.bytes)
    partner = load(letter + LETTER.owner)
    store(letter + LETTER.next, load(target + RANK.free))
    store(target + RANK.free, letter)
    unlock(target + RANK.mail_lock)
    sent, room = (its_size, size) if incoming != 0 else (size, its_size)
    store(rank + RANK.sent, sent)
    if sent > room:
        fail(core, TRUNCATED, target, sent, room, (source << 32) | tag)
    elif address != 0 and other != 0:
        if incoming != 0:
            copy(address, other, sent)
        else:
            copy(other, address, sent)
    elif owner & 1 and partner & 1:
        give, get = (partner, owner) if incoming != 0 else (owner, partner)
        call_word_3(load(core + CORE.call), COPY, give >> 1, get >> 1)
    else:
        fail(core, NO_COPY, rank, peer, incoming, 0)
    return partner


@inner
def _leave(
    core: int, target: int, queue: int, peer: int, tag: int, address: int, size: int, owner: int
) -> None:
    """Append a letter to a queue of the mail, whose lock is held."""
    letter = load(target + RANK.free)
    if letter == 0:
        letter = _more_letters(core)
        if letter == 0:
            return
    store(target + RANK.free, load(letter + LETTER.next))
    store(letter + LETTER.peer, peer)
    store(letter + LETTER.tag, tag)
    store(letter + LETTER.address, address)
    store(letter + LETTER.bytes, size)
    store(letter + LETTER.owner, owner)
    store(letter + LETTER.next, 0)
    last = load(queue + 8)
    if load(queue) == 0:
        store(queue, letter)
    else:
        store(last + LETTER.next, letter)
    store(queue + 8, letter)


@inner
def _more_letters(core: int) -> int:
    """A chain of new letters; their memory is on the core's list of chunks."""
    size = LETTER.size * (_CHUNK + 1)
    chunk = call_word_2(load(core + CORE.realloc), 0, size)
    if chunk == 0:
        fail(core, NO_MEMORY, 0, size, 0, 0)
        return 0
    lock(core, core + CORE.post_lock)
    store(chunk, load(core + CORE.chunks))
    store(core + CORE.chunks, chunk)
    unlock(core + CORE.post_lock)
    number = 1
    while number <= _CHUNK:
        letter = chunk + number * LETTER.size
        store(letter + LETTER.next, letter + LETTER.size if number < _CHUNK else 0)
        number += 1
    return chunk + LETTER.size
