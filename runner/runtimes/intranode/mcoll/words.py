"""The records of a program of a collective, in words of 8 bytes
(:mod:`runner.runtimes.core.words`).
"""

from __future__ import annotations

from runner.runtimes.core.words import record

STEP = record("kind to_base to a_base a b_base b count code", "Step")
"""One step.  An address is an offset (``to``, ``a``, ``b``) from a base of ``ME``.

COPY: ``count`` bytes.  COMBINE: ``to`` = ``a`` op ``b`` for ``count`` elements; ``code`` is kind
and operation.  ARRIVE: at the barrier ``to``.  AWAIT: until the counter ``to`` is ``count``; 0: as
ARRIVE has said.  SIGNAL: add 1 to the counter.  CLEAR: ``count`` counters become 0.  START, WAIT:
``count`` requests of MPI, whose handles are at ``to``; START counts ``a`` messages of ``b`` bytes.
"""
END, COPY, COMBINE, ARRIVE, AWAIT, SIGNAL, CLEAR, START, WAIT = range(9)

COUNTER = record("count sleepers", "Counter")
"""A word that only grows while ranks wait for a value, and how many of them sleep."""

ME = record(
    """zero send recv ranks target
    spins sleeps yield_ syscall futex seconds nanoseconds
    startall waitall testall statuses flag active active_count
    messages bytes""",
    "Me",
)
"""A rank's own view.  ``zero``, ``send``, ``recv``: the bases of addresses.

``ranks``: of the node; ``target``: value of the barrier's counter that this rank waits for.
``spins``: looks before it gives its core away, -1 for never; ``sleeps``: whether it sleeps then or
yields.  ``seconds``, ``nanoseconds``: how long it sleeps.  ``active``, ``active_count``: requests
that are started.  ``messages``, ``bytes``: what this rank has sent to other nodes.
"""
BASES = {"work": ME.zero, "send": ME.send, "recv": ME.recv}
