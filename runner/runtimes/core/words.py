"""The records of the core: one table of offsets for compiled and Python code.

A record is a row of 8-byte words at an address; a field's value is its offset in bytes. ``|`` in a
table begins a new cache line, so that words of different writers do not share one, ``||`` a new
page, which may be private to a process (:mod:`runner.runtimes.core.arena`). Addresses, counts and
flags are signed 64-bit integers; times are seconds as doubles. All records are written by compiled
code; :mod:`runner.runtimes.core.core` allocates them.
"""

from __future__ import annotations

import platform
from collections import namedtuple
from typing import Protocol, cast

LINE = 64
"""Bytes of a cache line."""
PAGE = 4096 if platform.machine() == "x86_64" else 65536
"""A multiple of the bytes of a page of memory on this processor."""


class Record(Protocol):
    """Offsets of the fields of a record, and its ``size``."""

    def __getattr__(self, field: str) -> int: ...


def record(table: str, name: str) -> Record:
    """A named tuple of offsets; its field ``size`` is the length in bytes, in whole lines."""
    at = 0
    fields: dict[str, int] = {}
    for word in table.split():
        if word in ("|", "||"):
            whole = LINE if word == "|" else PAGE
            at = -(-at // whole) * whole
            continue
        fields[word] = at
        at += 8
    if "size" in fields:
        raise ValueError(f"{name}: a field cannot be called size, which is the record's length")
    fields["size"] = -(-at // LINE) * LINE
    return cast(Record, namedtuple(name, list(fields))(**fields))


CORE = record(
    """workers ranks worker0 rank0 process total locations
    call body syscall futex yield_ clock_gettime realloc
    tick0 second0 tick_s spin_s sleep_s crowded stealing random looks ordered service
    isend irecv testsome communicator kinds handle_size undefined direct tag_bits tag_top
    serial log log_space log_ends traffic
    start count_as seconds cpu_seconds wait transfer post take
    swapcontext patience funnel
    private others place guest0 entries
    || live | idle | sleeping watcher | turns | stop
    | pending outside
    | mpi_lock
    | poll_lock next_poll next_deep count space requests owners infos indices
      statuses status_size outcount done
    | post_lock incoming incoming_space incoming_count chunks
    | failed failed_rank failed_a failed_b failed_c
    | log_count
    | open guests""",
    "Core",
)
"""A process. ``total``: ranks of the whole job. ``call``, ``body``: callbacks into Python.
``kinds``: MPI datatypes by element type.

If ranks are stolen between processes, the records are at the same addresses in all processes of a
node, except for the private words before ``live``. ``start`` to ``take``: functions for compiled
regions. ``private``: the flag of a futex within one process, or
0. ``others``: a table of the cores of the other processes (their number, then their addresses) or
0. A worker of another process, a guest, has the record at ``guest0`` whose number is its own and
its core's ``place``. ``entries``: a table of the regions' code in this process: their number and a
word, then for each ``shared`` of NODE and an address. ``open``: 1 if guests may enter; ``guests``:
number of guests inside.

``looks``: calls of a deep poll; 1 where all processes are on one node.

``patience``: looks for its messages before a region leaves its stack. ``funnel``: the record of the
one worker that makes MPI calls, or 0 if each makes its own.

``ordered``: 1 if ready ranks wait in order of ``priority``. ``service``: the record of a thread
that only polls, or 0.

``log_ends``: 1 if recording ends when the log is full, and leaves out what a time line does not
need, else a full log is an error. ``traffic``: a table of the messages and bytes that each of its
ranks sent to each rank of the job, or 0.

``idle``: workers without a rank. ``sleeping``: those of them that sleep. ``watcher``: the sleeper
that wakes by itself to poll. ``turns``: ranks taken by workers that were idle. ``pending``:
messages under way in MPI; ``outside``: 1 if Python code has some. ``failed``: code of the first
error and its arguments.
"""

WORKER = record(
    """core number rank turn kind since
    compute mpi buffering waiting scheduling
    regions messages bytes stolen waiting_cpu dice time0 time1 context
    | lock head tail ring mask
    | asleep""",
    "Worker",
)
"""``turn``: the difference between ``compute`` and the seconds of the rank that it runs.

``since``: when the present ``kind`` of time began; then the seconds of the five kinds. ``stolen``:
those of its ``regions`` that belonged to ranks of other processes.

``context``: its own stack while it runs on a fiber's.

``ring``: the ranks ready for this worker, from ``head`` to ``tail``. ``asleep``: the futex word.
"""

RANK = record(
    """core local number home mode part owner worker compute waited priority
    places0 places1 places2 places3
    | state
    | mail_lock sends last_send receives last_receive free sent""",
    "Rank",
)
"""``mode``: what a worker does with the rank. ``owner``: the running region. ``waited``: seconds
that its regions have waited for messages on their stacks.

``places``: bits of the workers that ran it. The mail holds messages of this process to this rank
without a partner; ``sent`` is the size of the last message that got one.
"""

PART = record(
    """rank nodes count words bodies_left here total lazy mark
    | away""",
    "Part",
)
"""A rank's part of a graph; ``words`` words of ready bits follow, each in a separate cache line.

``here``, ``away``: executions finished by the rank's worker and by others, of ``total``.
"""

NODE = record(
    """part rank number word bit entry state remaining iteration step posted urgent shared fiber
    | lock done inputs outputs fan_in gate
    | unmet
    | pending""",
    "Node",
)
"""A region of a rank. ``entry``: its compiled code, 0 for Python. ``state``: the argument of that
code.

``shared``: the number of the code in all processes; 0 if only its own may run it. ``fiber``: the
record of its own stack, or 0.

``unmet``: dependencies that the next execution waits for, plus 1 while the region runs or its rank
is not in the graph. ``pending``: messages under way (negative while the body runs, with ``WAITS``
while it waits).
"""

FIBER = record("context node single ahead ended", "Fiber")
"""A stack and its region. ``single``: a node for a message that the region waits for separately;
``ahead``: one for those that it posts for a later execution. ``ended``: 1 if the region's function
has just returned.
"""

EDGE = record("value source target next_input next_output", "Edge")
"""``value``: done(source) - done(target) - lead; the dependency is met while it is not negative."""

POSTED = record("request node info address count datatype process wire", "Posted")
"""A message that is not tested yet: a started request, with ``wire`` -1, or a call left to the only
worker that makes MPI calls.
"""

LETTER = record("peer tag address bytes owner next", "Letter")
"""A message within the process without a partner yet."""

EVENT = record("kind time rank node execution worker posted", "Event")
"""``kind``: one of the events below; 0 while it is being written."""

PARKED, QUEUED, RUNNING, WOKEN, ENDED = range(5)
"""States of a rank; ``WOKEN``: it is running, and an event that it may wait for has happened."""
COROUTINE, GRAPH, REGION, SUSPENDED = range(4)
"""Modes of a rank: resume its function, run regions, resume an ``async`` region, or a fiber."""
WAITS = 1 << 32
"""Added to a region's messages under way while it waits for them."""
OPEN, CLOSING, CLOSED = range(3)
"""Gate of a region: the entry has executions left, the last one runs, the last one has finished."""
COMPUTE, MPI, BUFFERING, WAITING, SCHEDULING = range(5)
"""Kinds of time, in the order of :mod:`runner.runtimes.workers.timers`."""
RESUME, POLL, DEADLOCK, FAIL, DELIVERED, COPY = range(6)
"""Requests of the core to Python."""
YIELDED, RAN_TO_END, RAISED = range(3)
"""Answers of Python.

Added are the number of messages that a region started, times 4, and the number already complete,
times 2^34.
"""
START, BODY, REQUEST, FINISH, LAPSE = range(1, 6)
"""Events of a region, and a lapse: the time during which a worker ran a rank or (-1) waited.

A lapse's end is in the word ``execution``, as a double.
"""
BITS = 62
"""Regions in one word of ready bits."""
NO_RANK, NO_TAG, TRUNCATED, MPI_FAILED, NO_MEMORY, LOG_FULL, NO_COPY = range(1, 8)
"""Errors of the core."""
FIRST_PAUSE_S, GROWTH = 20e-6, 1.25
"""Pauses of a polling worker: each is longer than the previous one, up to ``sleep_s``.

The delay in noticing a message is at most a fifth of the time waited for it.
"""
LATE, LONGEST = 0.05, 4.0
"""In a long wait a pause may be this share of the elapsed wait, up to this multiple of ``sleep_s``.

A pause costs 35 to 70 us of CPU time if Python code polls: by default at most 0.6 %.
"""
LOOKS = 10
"""Polls after each pause, and calls in a deep poll: Open MPI checks TCP in every eighth call."""
POLL_GAP_S, POLL_SHARE, DEEP_SHARE = 4e-6, 2.0, 20.0
"""A busy worker polls no sooner than this pause and this multiple of the last poll's time.

The next deep poll comes no sooner than ``DEEP_SHARE`` times the length of the last one.
"""
PATIENCE_S = 1e-6
"""Time before the last rank of another worker's queue is stolen.

Usually its home takes it sooner, and moving a rank to another core costs about as much.
"""
VISIT_S = 5e-6
"""Time that a worker waits for its own work before it looks at other processes' queues."""
KINDS = (
    *("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"),
    *("float32", "float64", "complex64", "complex128", "bool"),
)
"""Element types that compiled code may send, by their number."""
