"""A message layer for compiled regions that writes down what it is asked to start.

A rank's record is an array of int64: the number of calls, then seven numbers for each.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
from numpy.typing import NDArray

CALLS = 50


def install() -> None:
    """Take the place of the message layer, in this process and before anything is compiled."""
    import numba
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba.core import types as numba_types
    from numba.extending import intrinsic

    word, int64 = ir.IntType(64), numba_types.int64

    def type_load(_typing: Any, _address: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            return builder.load(builder.inttoptr(values[0], word.as_pointer()))

        return int64(int64), generate

    def type_store(_typing: Any, _address: Any, _value: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            builder.store(values[1], builder.inttoptr(values[0], word.as_pointer()))
            return context.get_dummy_value()

        return numba_types.void(int64, int64), generate

    load: Any = intrinsic(type_load)
    store: Any = intrinsic(type_store)

    def start(
        rank: int, incoming: int, address: int, count: int, kind: int, peer: int, tag: int
    ) -> None:
        at = rank + 8 + 56 * load(rank)
        store(at, rank)
        store(at + 8, incoming)
        store(at + 16, address)
        store(at + 24, count)
        store(at + 32, kind)
        store(at + 40, peer)
        store(at + 48, tag)
        store(rank, load(rank) + 1)

    module = types.ModuleType("runner.native.message")
    module.start = numba.njit(error_model="numpy", _nrt=False)(start)  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module


def record() -> NDArray[np.int64]:
    """The record of a rank without calls."""
    return np.zeros(1 + 7 * CALLS, dtype=np.int64)


def calls(words: NDArray[np.int64]) -> list[list[int]]:
    """[incoming, address, count, kind, peer, tag] of each call."""
    return [row[1:] for row in words[1:].reshape(CALLS, 7)[: words[0]].tolist()]
