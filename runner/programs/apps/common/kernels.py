"""Kernels shared by several applications: copies of boxes, and flags between threads.

See :mod:`runner.runtimes.core.kernels`. All integers are unsigned, so that an index needs no check
for negative values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, types
from numba.extending import intrinsic

from runner.runtimes.core import library
from runner.runtimes.core.atomic import inner

KERNELS = {
    "pack": ("float64", "float64", "uint64"),
    "unpack": ("float64", "float64", "uint64"),
    "raise_flag": ("uint64", "uint64"),
    "await_flag": ("uint64", "uint64", "uint64"),
}

ZERO = np.uint64(0)
ONE = np.uint64(1)
FIVE = np.uint64(5)
SEVEN = np.uint64(7)

_pack = inner(library.pack)
_unpack = inner(library.unpack)


def pack(field: Any, buffer: Any, table: Any) -> None:
    """Copy boxes of a field [z][y][x] of doubles into the buffer.

    ``table`` = extents of the field, length of the buffer, number of boxes, then for every box its
    start in the buffer and its six bounds.
    """
    head = carray(table, (5,))
    u = carray(field, (head[0], head[1], head[2]))
    b = carray(buffer, head[3])
    t = carray(table, FIVE + head[4] * SEVEN)
    at = FIVE
    n = ZERO
    while n < head[4]:
        _pack(u, t[at + ONE : at + SEVEN], b[t[at] :])
        at += SEVEN
        n += ONE


def unpack(field: Any, buffer: Any, table: Any) -> None:
    """The inverse of :func:`pack`: fill boxes of a field from the buffer."""
    head = carray(table, (5,))
    u = carray(field, (head[0], head[1], head[2]))
    b = carray(buffer, head[3])
    t = carray(table, FIVE + head[4] * SEVEN)
    at = FIVE
    n = ZERO
    while n < head[4]:
        _unpack(u, t[at + ONE : at + SEVEN], b[t[at] :])
        at += SEVEN
        n += ONE


@intrinsic
def _load(typing: Any, pointer: Any) -> Any:
    """Read a 64-bit flag that another thread writes, and everything that it wrote before."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(arguments[0], ordering="acquire", align=8)

    return types.uint64(pointer), generate


@intrinsic
def _store(typing: Any, pointer: Any, value: Any) -> Any:
    """Write a 64-bit flag after everything that this thread wrote before."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[1], arguments[0], ordering="release", align=8)
        return context.get_dummy_value()

    return types.void(pointer, types.uint64), generate


def raise_flag(flag: Any, level: Any) -> None:
    """Set a flag to ``level``."""
    _store(flag, carray(level, (1,))[0])


def await_flag(flag: Any, geometry: Any, last_value: Any) -> None:
    """Wait until a flag has reached a level; ``geometry`` = level, largest number of looks.

    ``last_value`` receives the flag's last value.
    """
    g = carray(geometry, (2,))
    s = carray(last_value, (1,))
    left = g[1]
    value = _load(flag)
    while value < g[0] and left > ZERO:
        value = _load(flag)
        left -= ONE
    s[0] = value
