"""The steps of one rank in a collective, before they become a program.

Algorithms write plans. :mod:`.program` turns a plan into a program of addresses; the tests also run
plans of many ranks in one process, in any order that the plans allow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from runner.runtimes.core.words import LINE
from runner.runtimes.intranode.mcoll.topology import Seat

_BLOCK = 32768
"""Bytes of a block that is reduced over all sources before the next one, so that it stays in
cache."""


class Place(NamedTuple):
    """Bytes from ``offset`` on of ``base``: this rank's ``send`` or ``recv``, the node's ``work``.

    ``work`` begins with a counter for each node, which :meth:`Plan.clear` sets to 0.
    """

    base: str
    offset: int

    def at(self, more: int) -> Place:
        """The place ``more`` bytes after this one."""
        return Place(self.base, self.offset + more)


SEND, RECV = Place("send", 0), Place("recv", 0)


@dataclass(frozen=True)
class Message:
    """To or from a rank; ``place`` is in ``work``."""

    sends: bool
    peer: int
    place: Place
    size: int


@dataclass(frozen=True)
class Step:
    """One step; see :data:`runner.runtimes.intranode.mcoll.program_records.STEP` for the kinds."""

    kind: str
    to: Place = SEND
    a: Place = SEND
    b: Place = SEND
    count: int = 0
    messages: tuple[Message, ...] = ()


class Plan:
    """The steps of one rank (``seat``) for elements of ``item`` bytes; ``size`` bytes of work."""

    def __init__(self, seat: Seat, item: int = 1) -> None:
        self.seat, self.item = seat, item
        self.steps: list[Step] = []
        self.size = seat.nodes * LINE
        self._messages: list[Message] = []

    def room(self, size: int) -> Place:
        """``size`` bytes of the node's memory, the same for all its ranks."""
        at = self.size
        self.size += -(-size // LINE) * LINE
        return Place("work", at)

    def copy(self, to: Place, source: Place, size: int) -> None:
        """Copy bytes."""
        if size:
            self.steps.append(Step("copy", to, source, count=size))

    def copies(self, pieces: Iterable[tuple[Place, Place, int]]) -> None:
        """Copy pieces (to, source, size), merging adjacent ones."""
        last: tuple[Place, Place, int] | None = None
        for to, source, size in pieces:
            if last and (last[0].at(last[2]), last[1].at(last[2])) == (to, source):
                last = last[0], last[1], last[2] + size
                continue
            if last:
                self.copy(*last)
            last = to, source, size
        if last:
            self.copy(*last)

    def fold(self, to: Place, sources: Sequence[Place], count: int) -> None:
        """``to`` = the sources combined in this order; only the first of them may be ``to``."""
        if len(sources) == 1:
            if sources[0] != to:
                self.copy(to, sources[0], count * self.item)
            return
        block = count if len(sources) == 2 else max(_BLOCK // self.item, 1)
        for begin in range(0, count, block or 1):
            at, number = begin * self.item, min(block, count - begin)
            first = sources[0]
            for source in sources[1:]:
                self.steps.append(Step("combine", to.at(at), first.at(at), source.at(at), number))
                first = to

    def barrier(self) -> None:
        """Wait for all ranks of the node."""
        if self.seat.locals > 1:
            self.steps += [Step("arrive"), Step("await")]

    def clear(self) -> None:
        """Set the counters to 0; before the first barrier."""
        if self.seat.local == 0:
            self.steps.append(Step("clear", Place("work", 0), count=self.seat.nodes))

    def signal(self, number: int) -> None:
        """Add 1 to a counter."""
        self.steps.append(Step("signal", Place("work", number * LINE)))

    def await_signals(self, number: int, count: int) -> None:
        """Wait until a counter is ``count``."""
        self.steps.append(Step("await", Place("work", number * LINE), count=count))

    def send(self, node: int, local: int, place: Place, size: int) -> None:
        """Send with the next :meth:`start`; nothing for 0 bytes."""
        self._add(True, node, local, place, size)

    def recv(self, node: int, local: int, place: Place, size: int) -> None:
        """Receive with the next :meth:`start`; nothing for 0 bytes."""
        self._add(False, node, local, place, size)

    def _add(self, sends: bool, node: int, local: int, place: Place, size: int) -> None:
        if size:
            self._messages.append(Message(sends, self.seat.rank(node, local), place, size))

    def start(self) -> tuple[Message, ...]:
        """Start the messages added since the last call; returns them for :meth:`wait`."""
        messages, self._messages = tuple(self._messages), []
        if messages:
            self.steps.append(Step("start", messages=messages))
        return messages

    def wait(self, messages: tuple[Message, ...]) -> None:
        """Wait for the messages returned by :meth:`start`."""
        if messages:
            self.steps.append(Step("wait", messages=messages))

    def exchange(self) -> None:
        """Start and wait."""
        self.wait(self.start())
