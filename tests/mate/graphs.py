"""Graphs and message layers that several tests use."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from random import Random
from typing import Any

from runner.runtimes import mate
from runner.runtimes.mate.task import Request
from runner.runtimes.mate.transport import Transport
from runner.runtimes.mate.transport_mpi import MpiTransport

STENCIL = {
    "compute": ["pack*", "unpack*", "compute*@"],
    "receive": ["unpack*"],
    "pack": ["compute", "send*"],
    "send": ["pack"],
    "unpack": ["compute", "receive"],
}
"""Fig. 3.15 of Martin 2018."""


def graph_of(table: dict[str, list[str]], body: Any) -> mate.Graph:
    """A graph whose regions call ``body(name, state, i)``."""
    graph = mate.Graph("test")
    for name, depends in table.items():
        graph.region(name, depends)(lambda state, i, name=name: body(name, state, i))
    return graph


def chain(ctx: mate.Context) -> None:
    """Register the local ranks before and after."""
    for other in (ctx.local_rank - 1, ctx.local_rank + 1):
        if 0 <= other < ctx.local_count:
            ctx.add_local_neighbor(other)


@contextlib.contextmanager
def refused(kind: type[Exception], words: str) -> Iterator[None]:
    """As ``pytest.raises``, in a process that starts without pytest."""
    told = None
    try:
        yield
    except kind as error:
        told = str(error)
    assert told is not None, f"no {kind.__name__}: {words}"
    assert re.search(words, told), told


class DelayedTransport(Transport):
    """Without MPI: a message completes some polls after it was delivered."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = Random(seed)
        self._held: list[Request] = []

    @property
    def pending(self) -> bool:
        return bool(self._held)

    def deliver(self, *requests: Request) -> None:
        self._held.extend(requests)

    def poll(self) -> None:
        with self.scheduler.lock:
            for request in list(self._held):
                if self._random.random() < 0.3:
                    self.scheduler.complete((request,))
                    self._held.remove(request)


class DelayedMpi(MpiTransport):
    """A message is seen as complete some polls after it is."""

    def __init__(self, comm: Any, seed: int, serialized: bool = False) -> None:
        super().__init__(comm, serialized, direct=False)
        self._random = Random(seed)
        self._known: set[Any] = set()

    def test(self, raw: list[Any]) -> list[int]:
        self._known.update(id(self._requests[i]) for i in super().test(raw))
        seen = [
            i
            for i, request in enumerate(self._requests)
            if id(request) in self._known and self._random.random() < 0.3
        ]
        self._known.difference_update(id(self._requests[i]) for i in seen)
        return seen
