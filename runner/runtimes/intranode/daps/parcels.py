"""Messages to other ranks: queued on a connection, or put into an inbox of the node; compiled.

All functions are called by whoever makes the progress of ``owner``, the sender.
"""

from __future__ import annotations

from runner.runtimes.core.atomic import add, copy, inner, load, peek, put, store
from runner.runtimes.intranode.daps.daps_records import DATA, INBOX, LINK, ME, MESSAGE, OWNER, RING

_REGION = 64
"""Bytes of a region in a record."""


@inner
def owner_of(me: int, local: int) -> int:
    """The record of a rank of this node."""
    return load(load(me + ME.owners) + 8 * local)


@inner
def place_of(me: int, rank: int) -> int:
    """The number of the link to a rank of the job, or -1 minus its number on this node."""
    return load(load(me + ME.index) + 8 * rank)


@inner
def link_of(me: int, owner: int, number: int) -> int:
    """The link of an owner with this number."""
    return load(load(owner + OWNER.links) + 8 * number)


@inner
def copy_region(target: int, source: int) -> None:
    """Copy the description of a region."""
    copy(target, source, _REGION)


@inner
def data_of(message: int) -> int:
    """Bytes of data that come with a message."""
    if load(message + MESSAGE.kind) > DATA:
        return 0
    return load(message + MESSAGE.bytes)


@inner
def new_parcel(me: int, owner: int, rank: int) -> int:
    """A place on the connection to a rank of another node, where the caller writes a message.

    There is always one: unfinished operations and messages are limited.
    """
    link = link_of(me, owner, place_of(me, rank))
    end = load(link + LINK.end)
    store(link + LINK.end, end + 1)
    add(owner + OWNER.unsent, -1)
    return load(link + LINK.ring) + MESSAGE.size * (end % RING)


@inner
def queue_short(
    me: int, owner: int, rank: int, kind: int, size: int, tag: int, request: int, value: int
) -> int:
    """Queue a message with these words; returns its place, where regions may be written."""
    message = new_parcel(me, owner, rank)
    store(message + MESSAGE.kind, kind)
    store(message + MESSAGE.bytes, size)
    store(message + MESSAGE.source, load(owner + OWNER.rank))
    store(message + MESSAGE.tag, tag)
    store(message + MESSAGE.request, request)
    store(message + MESSAGE.value, value)
    return message


@inner
def post_letter(me: int, owner: int, local: int, message: int) -> None:
    """Put a copy of a message into the inbox of a rank of this node; there is always room."""
    inbox = load(load(owner_of(me, local) + OWNER.inboxes) + 8 * load(owner + OWNER.local))
    count = peek(inbox + INBOX.posted)
    copy(inbox + INBOX.letters + MESSAGE.size * (count % RING), message, MESSAGE.size)
    put(inbox + INBOX.posted, count + 1)


@inner
def send_message(me: int, owner: int, rank: int, message: int) -> int:
    """Send a message to any rank; returns 1 if it is on another node, else 0."""
    place = place_of(me, rank)
    if place < 0:
        post_letter(me, owner, -1 - place, message)
        return 0
    copy(new_parcel(me, owner, rank), message, MESSAGE.size)
    return 1
