"""The journal of a process: what its ranks did, piece by piece, and what each piece waits for.

A piece is one of: the code of a rank outside of graphs between two waits (``root``), the start of a
region, a part of its function between two messages or waits (``body``), a message from its start to
its end (``message``), the finish of a region. Pieces of one chain follow each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from runner.runtimes.check.memory import Runs, WatchedMemory
from runner.runtimes.check.watch import Watch

ROOT, START, BODY, MESSAGE, FINISH = "root", "start", "body", "message", "finish"
LIMIT = 400_000
"""Most pieces of a process: more would fill the memory of a small machine."""
Token = tuple[Any, ...]
"""A signal between pieces of any process: of a message or a collective operation."""


class Label(NamedTuple):
    """An execution of a region; ``rank`` is its number in its process."""

    graph: int
    region: int
    rank: int
    execution: int
    iteration: int


@dataclass(slots=True)
class Piece:
    """See the module; ``before`` are pieces of this process that end before this one begins."""

    number: int
    chain: int
    position: int
    """In its chain, from 1."""
    kind: str
    rank: int
    label: Label | None
    before: list[int]
    declared: list[tuple[int, int, int]] = field(default_factory=list)
    """Graph, number of a dependency, and the piece that it waits for."""
    needs: list[Token] = field(default_factory=list)
    gives: list[Token] = field(default_factory=list)
    runs: dict[int, Runs] = field(default_factory=dict)
    stamp: int = 0
    """When it took effect: what must end before it has a smaller one."""
    touched: bool = False
    """True if it used an array, or wrote anything."""


class TooLong(Exception):
    """The run has more pieces than :data:`LIMIT`."""


class Journal:
    """The pieces of a process, in the order in which they began."""

    def __init__(self) -> None:
        self.memory = WatchedMemory()
        self.watch = Watch(self.memory)
        self.pieces: list[Piece] = []
        self._chains: dict[Token, int] = {}
        self._lengths: list[int] = []
        self._stamp = 0

    @property
    def chains(self) -> int:
        """Number of chains."""
        return len(self._lengths)

    def add(
        self,
        chain: Token,
        kind: str,
        rank: int,
        before: Iterable[int],
        label: Label | None = None,
    ) -> Piece:
        """Begin a piece.  Raises :class:`TooLong`."""
        if len(self.pieces) >= LIMIT:
            raise TooLong
        number = self._chains.setdefault(chain, len(self._lengths))
        if number == len(self._lengths):
            self._lengths.append(0)
        self._lengths[number] += 1
        piece = Piece(
            len(self.pieces), number, self._lengths[number], kind, rank, label, list(before)
        )
        self.pieces.append(piece)
        self.stamp(piece)
        return piece

    def stamp(self, piece: Piece) -> None:
        """Let the piece take effect now, after what it has waited for."""
        self._stamp += 1
        piece.stamp = self._stamp
