"""The records of the library in words of 8 bytes, as :mod:`runner.runtimes.core.words` describes
them.

``SEAT``, ``CHANNEL`` and ``BOARD`` are in shared memory, at the same addresses in all ranks of a
node; ``ME`` and ``REQUEST`` belong to one rank.  A region is a ``REGION``: rows of ``run`` bytes,
``n0`` of them ``s0`` bytes apart, ``n1`` of those groups ``s1`` apart, and so on.
"""

from __future__ import annotations

from runner.runtimes.core.words import record

REGION = record("address run n0 s0 n1 s1 n2 s2", "Region")

SEAT = record(
    """domain
    | active
    | queue
    | done
    | helpers
    | lock
    | operation chunk bytes count descending
    | source run n0 s0 n1 s1 n2 s2
    | target t_run t_n0 t_s0 t_n1 t_s1 t_n2 t_s2
    | channels""",
    "Seat",
)
"""A rank.  ``domain``: the number of its memory domain.

``active``: 1 if it uses the memory; 0 only while it waits and works for nobody. ``queue``: both
ends of its queue (:mod:`.stealing`). ``done``: total number of chunks that others have finished for
it. ``helpers``: ranks that work on its chunks, counted only if their number is limited. ``lock``:
number + 1 of the rank that accumulates into its memory. ``operation`` to ``t_s2``: the work divided
into chunks; they do not change while a chunk is queued or under way. ``channels``: the channel from
each rank.
"""

BOARD = record("arrivals | epoch", "Board")
"""The barrier: arrivals in all, and how many barriers are over."""

LETTER = record("state tag | address run n0 s0 n1 s1 n2 s2", "Letter")
"""A message: the memory of its sender."""

CHANNEL = record("posted | taken | letters", "Channel")
"""Messages from one rank to another.

``posted``: number of messages sent (written by the sender); ``taken``: number matched (by the
receiver). The letter of message n is number n % ``PLACES``.
"""
PLACES = 64
"""Messages under way from one rank to another."""
CHANNEL_SIZE = CHANNEL.letters + PLACES * LETTER.size
"""Bytes of a channel with its letters."""

ME = record(
    """rank ranks seat board seats busy steals
    strategy saturate stealers flags threshold low high small medium large descending
    near nears far fars last dice
    yield_ spins bounce first end
    own given stolen""",
    "Me",
)
"""A rank's own view.  ``seats``: addresses of all seats.  ``busy``: the request that has the queue.

``low``, ``high``: bytes from which messages are medium and large; ``small`` to ``large``: their
chunks. ``near``, ``far``: seats of this domain and of others. ``spins``: looks before the core is
yielded, -1 for never. ``own``, ``given``, ``stolen``: chunks that it did for itself, that others
did for it, and that it did for others. ``first``, ``end``: the first and the last request that this
rank has to work on.
"""

REQUEST = record(
    """stage operation peer tag letter lock place value base failed bytes
    | address run n0 s0 n1 s1 n2 s2
    | target t_run t_n0 t_s0 t_n1 t_s1 t_n2 t_s2
    | between b_run b_n0 b_s0 b_n1 b_s1 b_n2 b_s2
    | itself next""",
    "Request",
)
"""``address`` to ``s2``: the source (a receive gets it from the letter).

``target`` to ``t_s2``: the destination. ``between`` to ``b_s2``: shared memory for packing before
unpacking; its address is 0 if chunks are packed and unpacked in one step. ``place``, ``value``: an
awaited flag. ``itself``: a table with only this request. ``next``: the request started after it.
"""

OVER, SENT, MATCH, MATCHED, LOCKING, SETTLE, UNPACK, FLAG = range(8)
"""Stages of a request."""
FREE, POSTED, TAKEN, ARRIVED = range(4)
"""States of a letter."""
MOVE, ADD_REALS, ADD_WORDS, PACK = range(4)
"""Operations on a chunk; the last one only between a region and a buffer (:mod:`.moves`)."""
LOCALIZED, MIXED, THROUGHPUT = range(3)
"""Strategies."""
WRONG_SIZE = 1
"""Why a request failed."""
BOUNCE = 32768
"""Bytes of a rank's private buffer between packing and unpacking."""
BITS = 24
"""Bits of an end of a queue: no message is cut in 2^24 chunks or more."""
