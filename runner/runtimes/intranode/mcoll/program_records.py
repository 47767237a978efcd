"""The records of a program of a collective, in words of 8 bytes
(:mod:`runner.runtimes.core.words`).
"""

from __future__ import annotations

from runner.runtimes.core.words import record

STEP = record("kind to_base to a_base a b_base b count code", "Step")
"""One step.  An address is an offset (``to``, ``a``, ``b``) from a base of ``ME``.

COPY: ``count`` bytes. COMBINE: ``to`` = ``a`` op ``b`` for ``count`` elements; ``code`` is kind and
operation. ARRIVE: at the barrier ``to``. AWAIT: until the counter ``to`` is ``count``; 0: the value
set by ARRIVE. SIGNAL: add 1 to the counter. CLEAR: ``count`` counters become 0. START, WAIT:
``count`` requests of MPI, whose handles are at ``to``; START counts ``a`` messages of ``b`` bytes.
"""
END, COPY, COMBINE, ARRIVE, AWAIT, SIGNAL, CLEAR, START, WAIT = range(9)

COUNTER = record("count sleepers", "Counter")
"""A word that only grows while ranks wait for a value, and the number of sleeping ones."""

ME = record(
    """zero send recv ranks target
    spins sleeps yield_ syscall futex seconds nanoseconds
    startall waitall testall statuses flag active active_count
    messages bytes""",
    "Me",
)
"""A rank's own view.  ``zero``, ``send``, ``recv``: the bases of addresses.

``ranks``: of the node; ``target``: awaited value of the barrier's counter. ``spins``: looks before
it gives its core away, -1 for never; ``sleeps``: 1 if it then sleeps, 0 if it yields. ``seconds``,
``nanoseconds``: length of a sleep. ``active``, ``active_count``: started requests. ``messages``,
``bytes``: sent by this rank to other nodes.
"""
BASES = {"work": ME.zero, "send": ME.send, "recv": ME.recv}
