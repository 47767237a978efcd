"""The parts of IS that its flat form does in Python, and the sum that it leaves to MPI."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

KERNELS = {
    "mark_keys": ("uint32", "uint64"),
    "hide_tested_keys": ("uint32", "uint32", "uint64", "uint64"),
    "copy_counts": ("uint32", "uint32", "uint64"),
    "add_counts": ("uint32", "uint32", "uint64"),
    "place_messages": ("uint32", "uint32", "int64", "int64", "int64", "uint64"),
    "copy_own_keys": ("uint32", "uint32", "int64"),
    "set_range": ("uint32", "uint64", "uint64"),
    "test_ranks": ("uint32", "uint32", "uint64", "int64", "int64", "uint64"),
}

ZERO = np.uint64(0)
ONE = np.uint64(1)
TWO = np.uint64(2)
THREE = np.uint64(3)
FOUR = np.uint64(4)
KEY = np.uint64(4)
"""Bytes of a key."""


def mark_keys(keys: Any, state: Any) -> None:
    """Begin an iteration; rank 0 changes two keys in each.

    ``state`` = the last iteration, iterations in all, end of the range of keys, 1 on rank 0.
    """
    s = carray(state, (4,))
    s[0] += ONE
    if s[3] == ONE:
        key = carray(keys, s[0] + s[1] + ONE)
        key[s[0]] = np.uint32(s[0])
        key[s[0] + s[1]] = np.uint32(s[2] - s[0])


def hide_tested_keys(keys: Any, sizes: Any, places: Any, state: Any) -> None:
    """Append the tested keys of this rank to the bucket sizes, and 0 for those of others.

    ``places`` = for each tested key whether it is here, and its index; ``state`` = buckets, tests.
    """
    s = carray(state, (2,))
    place = carray(places, TWO * s[1])
    size = carray(sizes, s[0] + s[1])
    for n in range(ZERO, s[1]):
        at = place[TWO * n + ONE]
        key = carray(keys, at + ONE)
        size[s[0] + n] = key[at] if place[TWO * n] == ONE else np.uint32(0)


def copy_counts(source: Any, target: Any, state: Any) -> None:
    """Copy 32-bit numbers; ``state`` = how many."""
    count = carray(state, (1,))[0]
    one, other = carray(source, count), carray(target, count)
    for n in range(ZERO, count):
        other[n] = one[n]


def add_counts(total: Any, summand: Any, state: Any) -> None:
    """Add 32-bit numbers to others; ``state`` = how many."""
    count = carray(state, (1,))[0]
    values, more = carray(total, count), carray(summand, count)
    for n in range(ZERO, count):
        values[n] += more[n]


def place_messages(
    send_counts: Any, receive_counts: Any, sends: Any, receives: Any, own: Any, state: Any
) -> None:
    """Where the keys for and from each rank are: first byte and bytes of each piece of a message.

    Rows of the messages begin with the rank after this one (sends) and before it (receives).
    ``own`` = the keys that stay: first one of the outgoing and of the incoming ones, how many.
    ``state`` = ranks, this rank, pieces of a message.
    """
    s = carray(state, (3,))
    ranks, me, pieces = s[0], s[1], s[2]
    out, come = carray(send_counts, ranks), carray(receive_counts, ranks)
    rows = (ranks - ONE) * pieces
    outgoing, incoming = carray(sends, TWO * rows), carray(receives, TWO * rows)
    stay = carray(own, (3,))
    out_at = come_at = ZERO
    for rank in range(ZERO, ranks):
        going, coming = np.uint64(out[rank]), np.uint64(come[rank])
        if rank == me:
            stay[0], stay[1], stay[2] = np.int64(out_at), np.int64(come_at), np.int64(going)
        else:
            ahead, behind = (rank + ranks - me) % ranks - ONE, (me + ranks - rank) % ranks - ONE
            for n in range(ZERO, pieces):
                first, end = going * n // pieces, going * (n + ONE) // pieces
                row = TWO * (ahead * pieces + n)
                outgoing[row] = np.int64(KEY * (out_at + first))
                outgoing[row + ONE] = np.int64(KEY * (end - first))
                first, end = coming * n // pieces, coming * (n + ONE) // pieces
                row = TWO * (behind * pieces + n)
                incoming[row] = np.int64(KEY * (come_at + first))
                incoming[row + ONE] = np.int64(KEY * (end - first))
        out_at += going
        come_at += coming


def copy_own_keys(outgoing: Any, incoming: Any, own: Any) -> None:
    """Copy the keys that stay on this rank; ``own`` as in :func:`place_messages`."""
    stay = carray(own, (3,))
    out_at, come_at, count = np.uint64(stay[0]), np.uint64(stay[1]), np.uint64(stay[2])
    one, other = carray(outgoing, out_at + count), carray(incoming, come_at + count)
    for n in range(ZERO, count):
        other[come_at + n] = one[out_at + n]


def set_range(spans: Any, range_: Any, state: Any) -> None:
    """Number of this rank's keys, its lowest possible key, and how many there are.

    ``state`` = this rank, shift from key to bucket, on return the keys in lower buckets.
    """
    s = carray(state, (3,))
    span = carray(spans, FOUR * (s[0] + ONE))
    at = FOUR * s[0]
    first, end = np.uint64(span[at]), np.uint64(span[at + ONE])
    r = carray(range_, (4,))
    r[0] = np.uint64(span[at + THREE])
    r[1] = first << s[1]
    r[2] = (end << s[1]) - (first << s[1])
    s[2] = np.uint64(span[at + TWO])


def test_ranks(
    totals: Any, ranks: Any, range_: Any, expected: Any, passes: Any, state: Any
) -> None:
    """Count the tested keys of this rank that have their known ranks.

    ``expected`` = rank, sign and lag of each test. ``passes`` = how many were right so far.
    ``state`` = buckets, tests, iteration, keys in lower buckets.
    """
    s = carray(state, (4,))
    r = carray(range_, (4,))
    key = carray(totals, s[0] + s[1])
    known = carray(expected, THREE * s[1])
    rank = carray(ranks, r[2])
    for n in range(ZERO, s[1]):
        k = np.uint64(key[s[0] + n])
        if r[1] <= k < r[1] + r[2]:
            place = k - r[1]
            smaller = np.int64(rank[place - ONE]) if place > ZERO else np.int64(0)
            right = known[THREE * n] + known[THREE * n + ONE] * (
                np.int64(s[2]) + known[THREE * n + TWO]
            )
            if np.int64(s[3]) + smaller == right:
                carray(passes, (1,))[0] += np.int64(1)
