"""The arithmetic of IS (see :mod:`runner.runtimes.core.kernels`).

Keys and counts are 32 bits wide, as in the original; here unsigned.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

KERNELS = {
    "make_keys": ("uint32", "uint64"),
    "fill_buckets": ("uint32", "uint32", "uint32", "uint32", "uint64"),
    "divide_buckets": ("uint32", "uint32", "uint32", "uint32", "uint64"),
    "rank_keys": ("uint32", "uint32", "uint64"),
    "sort_keys": ("uint32", "uint32", "uint32", "uint64"),
}

ZERO = np.uint64(0)
ONE = np.uint64(1)
MASK = np.uint64((1 << 46) - 1)
ZERO32 = np.uint32(0)
ONE32 = np.uint32(1)


def make_keys(keys: Any, state: Any) -> None:
    """Generate the keys; each is the mean of four random numbers, scaled.

    ``state`` = seed, multiplier, number of keys, number of bits by which the sum of four is too
    long for a key.
    """
    s = carray(state, (4,))
    x, a, count, excess = s[0], s[1], s[2], s[3]
    key = carray(keys, count)
    for i in range(ZERO, count):
        total = ZERO
        for _ in range(4):
            x = (x * a) & MASK
            total += x
        key[i] = np.uint32(total >> excess)


def fill_buckets(keys: Any, sorted_keys: Any, sizes: Any, places: Any, state: Any) -> None:
    """Count the keys of each bucket (``sizes``) and put the keys in order of buckets.

    ``state`` = number of keys, number of buckets, shift from key to bucket.
    """
    s = carray(state, (3,))
    count, buckets, shift = s[0], s[1], s[2]
    key = carray(keys, count)
    target = carray(sorted_keys, count)
    size = carray(sizes, buckets)
    place = carray(places, buckets)
    for b in range(ZERO, buckets):
        size[b] = ZERO32
    for i in range(ZERO, count):
        b = np.uint64(key[i]) >> shift
        size[b] += ONE32
    at = ZERO32
    for b in range(ZERO, buckets):
        place[b] = at
        at += size[b]
    for i in range(ZERO, count):
        k = key[i]
        b = np.uint64(k) >> shift
        to = place[b]
        place[b] = to + ONE32
        target[np.uint64(to)] = k


def divide_buckets(sizes: Any, totals: Any, send_counts: Any, spans: Any, state: Any) -> None:
    """Give every rank consecutive buckets with about equally many keys.

    ``send_counts`` = own keys that go to each rank. ``spans`` = for each rank its first bucket, the
    end of its buckets, and the numbers of keys in lower buckets and in its own. A rank without
    remaining buckets has an empty span. ``state`` = number of buckets, ranks, keys per rank.
    """
    s = carray(state, (3,))
    buckets, ranks, per_rank = s[0], s[1], s[2]
    size = carray(sizes, buckets)
    total = carray(totals, buckets)
    send = carray(send_counts, ranks)
    span = carray(spans, ranks * np.uint64(4))
    for n in range(ZERO, ranks):
        send[n] = ZERO32
    for n in range(ZERO, ranks * np.uint64(4)):
        span[n] = ZERO32
    j = first = below = keys = ZERO
    mine = ZERO32
    for b in range(ZERO, buckets):
        keys += np.uint64(total[b])
        mine += size[b]
        if keys >= (j + ONE) * per_rank and j < ranks:
            send[j] = mine
            span[np.uint64(4) * j] = np.uint32(first)
            span[np.uint64(4) * j + ONE] = np.uint32(b + ONE)
            span[np.uint64(4) * j + np.uint64(2)] = np.uint32(below)
            span[np.uint64(4) * j + np.uint64(3)] = np.uint32(keys - below)
            first, below, mine = b + ONE, keys, ZERO32
            j += ONE


def rank_keys(keys: Any, ranks: Any, state: Any) -> None:
    """``ranks[k - low]`` = the number of keys that are at most k.

    ``state`` = number of keys, lowest possible key, number of possible keys.
    """
    s = carray(state, (3,))
    count, low, width = s[0], s[1], s[2]
    key = carray(keys, count)
    rank = carray(ranks, width)
    for k in range(ZERO, width):
        rank[k] = ZERO32
    for i in range(ZERO, count):
        rank[np.uint64(key[i]) - low] += ONE32
    running = ZERO32
    for k in range(ZERO, width):
        running += rank[k]
        rank[k] = running


def sort_keys(keys: Any, ranks: Any, target: Any, state: Any) -> None:
    """Put the keys in order by their ranks, which are used up.

    ``state`` as in rank_keys; its fourth number becomes the number of neighbours out of order.
    """
    s = carray(state, (4,))
    count, low, width = s[0], s[1], s[2]
    key = carray(keys, count)
    rank = carray(ranks, width)
    result = carray(target, count)
    for i in range(ZERO, count):
        k = np.uint64(key[i]) - low
        rank[k] -= ONE32
        result[np.uint64(rank[k])] = key[i]
    wrong = ZERO
    for i in range(ONE, count):
        if result[i - ONE] > result[i]:
            wrong += ONE
    s[3] = wrong
