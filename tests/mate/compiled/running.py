"""Run compiled regions without a scheduler, and in Python beside."""

from __future__ import annotations

import copy
import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from runner.runtimes import mate
from runner.runtimes.core.words import COMPUTE
from runner.runtimes.mate.compiled import Block, compiled_graph
from runner.runtimes.mate.compiled.block import Messages

HEAD = """\
import math
import numpy as np
from runner.runtimes import mate
graph = mate.Graph("test")
"""
"""The first lines of every program."""


def no_messages(_context: Any) -> tuple[int, ...]:
    raise AssertionError("no context here")


class Recorder:
    """Stands for the message layer, and writes down what compiled code starts."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, ...]] = []
        """(record, incoming, address, count, kind, peer, tag) of each call that starts a message,
        (record, kind of time) of each one that counts time, (record,) of each look at the clock;
        the CPU time is 0.125 s.
        """
        self.kind = COMPUTE
        self._places = (ctypes.c_int64 * 4)()
        prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 7)
        self._start = prototype(lambda *words: self.calls.append(words))
        prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 2)
        self._count_as = prototype(self._switch)
        self._seconds = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64)(self._read)
        self._cpu_seconds = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64)(lambda _: 0.125)

    def _switch(self, record: int, kind: int) -> int:
        self.calls.append((record, kind))
        before, self.kind = self.kind, kind
        return before

    def _read(self, record: int) -> float:
        self.calls.append((record,))
        return 0.5 * len(self.calls)

    def __call__(self, context: Any) -> tuple[int, ...]:
        start, count_as, seconds, cpu_seconds = (
            ctypes.cast(f, ctypes.c_void_p).value or 0
            for f in (self._start, self._count_as, self._seconds, self._cpu_seconds)
        )
        assert all((start, count_as, seconds, cpu_seconds))
        self._places[:] = start, count_as, seconds, cpu_seconds
        places = [ctypes.addressof(self._places) + 8 * n for n in range(4)]
        # No region here waits for messages.
        return (1000 + context.rank, *places, 0, 0, 0, 0)


def run(
    graph: mate.Graph, state: Any, iterations: int = 1, messages: Messages = no_messages
) -> Block:
    """Run the compiled regions in their order, as a scheduler would for a chain."""
    block = compiled_graph(graph).bind(state, messages)
    for i in range(iterations):
        for region in graph.regions:
            call = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_int64)
            call(block.entry(region.index))(block.address, i)
    block.check()
    return block


def run_both(graph: mate.Graph, state: Any, iterations: int = 1) -> None:
    """Run compiled and in Python, and compare every array of the state to the last bit."""
    plain = copy.deepcopy(state)
    run(graph, state, iterations)
    with np.errstate(all="ignore"):
        for i in range(iterations):
            for region in graph.regions:
                region.body(plain, i)
    for name, value in vars(state).items():
        kept = value if isinstance(value, list) else [value]
        wanted = getattr(plain, name)
        for a, b in zip(kept, wanted if isinstance(value, list) else [wanted], strict=True):
            assert np.array_equal(a, b, equal_nan=True), name


class Part:
    """A state with any attributes."""


def state(**attributes: Any) -> Any:
    part = Part()
    vars(part).update(attributes)
    return part


def in_rank(check: Callable[[mate.Context], None], ranks: int = 1) -> None:
    """Run a check in every rank of a process."""

    async def main(ctx: mate.Context) -> None:
        check(ctx)

    mate.run(main, mate.Config(ranks_per_process=ranks))
