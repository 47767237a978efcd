"""The records of the library in words of 8 bytes, as :mod:`runner.runtimes.core.words` describes
them.

All but ``ME`` and its ``pollfd`` are in shared memory, at the same addresses in all ranks of a
node, so that any of them can continue the work of another one. A region in a record is eight words
from ``address`` on, as in :data:`runner.runtimes.intranode.cab_records.REGION`.
"""

from __future__ import annotations

from runner.runtimes.core.words import record
from runner.runtimes.intranode.cab_records import MOVE

OWNER = record(
    """rank local done seen links inboxes slots beats
    | in_progress
    | net_avail | shm_avail | unsent
    | own given lost first last sequence""",
    "Owner",
)
"""A rank whose progress may be made by others (Ouyang 3.3).  ``rank``: its number in the job.

``in_progress``: who makes its progress now (the number on the node + 1, or 0); the following words
belong to that one. ``net_avail``, ``shm_avail``: reasons to expect a message from another node or
from this one. ``unsent``: minus the number of queued parcels. ``own``, ``given``: steps of progress
made by itself, and by others for it. ``lost``: 1 if a connection was closed. ``first``, ``last``:
its receives without a message. ``sequence``: messages that arrived before their receive.

Tables: ``done``, ``seen``: operations and messages that each rank of the job has answered;
``links``: connections, one for each rank of other nodes; ``inboxes``: letters from each rank of
the node; ``slots``: messages without a receive, by rank of the job; ``beats``: counts of barriers.
"""

MESSAGE = record(
    """kind bytes source tag request value
    | address run n0 s0 n1 s1 n2 s2
    | o_address o_run o_n0 o_s0 o_n1 o_s1 o_n2 o_s2""",
    "Message",
)
"""An active message, and the header of a parcel on a connection.

``bytes``: of the data. ``request``: the request that the receiver of this message has to complete.
``value``: an operand or result; for a send's data, the request that is over when they are sent.
``address`` to ``s2``: the region that the receiver writes, or reads for a get. ``o_address`` to
``o_s2``: the data in the sender's memory; for a get, the destination of the answer.
"""

LINK = record(
    """peer lost head body moved action receive
    | first end sent packed
    | in_stage out_stage ring
    | message""",
    "Link",
)
"""A connection to a rank of another node.

``head``, ``body``: received bytes of a header and of its data; ``moved``: bytes taken out of
``in_stage``; ``action``: their treatment; ``receive``: their request or slot. ``first``, ``end``:
numbers of parcels sent, and queued; number n is at ``ring`` + n % ``RING``; ``sent``: sent bytes of
the first one; ``packed``: the end of its data in ``out_stage``. ``message``: the incoming header.
"""
LINK_SIZE = LINK.message + MESSAGE.size
"""Bytes of a link with its header."""

INBOX = record("posted | taken | letters", "Inbox")
"""Letters from one rank of the node to another: ``posted`` by whoever makes the progress of the
one, ``taken`` by whoever makes that of the other.  Number n is at ``letters`` + n % ``RING``.
"""

SLOT = record("state sequence claim buffer | message", "Slot")
"""A message without a receive. ``sequence``: its number among those of the owner. ``claim``: the
receive that it was assigned to while its data arrived.
"""
SLOT_SIZE = SLOT.message + MESSAGE.size

REQUEST = record(
    """stage peer tag bytes failed net next
    | address run n0 s0 n1 s1 n2 s2""",
    "Request",
)
"""A send or receive. ``failed``: bytes of the message + 1 if they differ from the receive's.

``net``: 1 if its peer is on another node.
"""

ME = record(
    """number locals remotes ranks owner owners polls index
    recv send poll errno yield_ clock_gettime
    steals order filter gap spins
    dice stolen helper bounce time0 time1 next
    | stop""",
    "Me",
)
"""One thread's view of a rank. ``number``: its rank on the node. ``locals``, ``remotes``,
``ranks``: ranks of the node, of other nodes, of the job. ``owner``: its own record; ``owners``: the
addresses of those of the node. ``polls``: the sockets, for each owner one ``pollfd`` for each link.
``index``: for each rank of the job the number of its link, or -1 minus its number on the node.

``gap``: seconds between attempts to steal (a double), 0 for none. ``spins``: looks before the core
is yielded, -1 for never. ``stolen``: steps made for others. ``helper``: 1 for a thread beside its
rank. ``next``: time of the next attempt (a double).
"""

PUT, REPLY, EAGER, DATA = MOVE, 3, 4, 5
"""Messages with data, like ``ADD_REALS`` and ``ADD_WORDS`` of
:mod:`runner.runtimes.intranode.cab_records`.
"""
GET, FETCH, ANSWER, OFFER, READY, DONE, SEEN, BEAT = range(6, 14)
"""Messages without data. ``OFFER``: a send whose data wait for ``READY``; ``DONE``: an operation is
over; ``SEEN``: a message has a receive; ``BEAT``: a rank has reached a barrier.
"""
FREE, FILLING, FULL, OFFERED, LENT = range(5)
"""States of a slot.  ``OFFERED``: the data are on another node; ``LENT``: on this one."""
DROP = -1
"""Treatment of incoming data, besides the operations of
:mod:`runner.runtimes.intranode.cab_records`.
"""
STARTED, OVER = 1, 9
"""Stages of a request."""
POLLFD_SIZE = 8
"""Bytes of a ``struct pollfd``."""

PLACES = 64
"""Unfinished operations from one rank to another, and messages without a receive."""
BUFFERS = 16
"""The number of these messages whose data may be in the receiver's memory."""
SLOTS = PLACES + BUFFERS
RING = 6 * PLACES
"""Parcels of a link: own operations, messages, their data, answers to the peer's, and barriers."""
ROUNDS = 24
"""Rounds of a barrier."""
STAGE = 32768
"""Bytes of a buffer between a connection and a region with gaps; :data:`.BOUNCE` is the same."""
