"""The order that is certain: which piece ends before another one begins in every schedule."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.runtimes.check.journal import FINISH, START, Label, Piece, Token


class Cycle(Exception):
    """With these dependencies some pieces would wait for each other."""


@dataclass(frozen=True)
class Needed:
    """A dependency that could be declared: region ``target`` waits for region ``source``.

    ``delay`` 1: of the iteration before; ``neighbours``: of the registered neighbours.
    """

    graph: int
    target: int
    source: int
    delay: int
    neighbours: bool


@dataclass(frozen=True)
class Skeleton:
    """The pieces of a process without their accesses, and its ranks' neighbours."""

    pieces: Sequence[Piece]
    chains: int
    neighbours: Sequence[Sequence[int]]


class Order:
    """Vector clocks of the pieces of all processes.

    ``without``: declared dependencies (graph, number) that are left out; ``extra``: added ones;
    ``messages`` False: messages and global operations order nothing between ranks.
    """

    def __init__(
        self,
        processes: Sequence[Skeleton],
        without: Collection[tuple[int, int]] = (),
        extra: Collection[Needed] = (),
        messages: bool = True,
    ) -> None:
        firsts = np.cumsum([0, *(len(p.pieces) for p in processes)])
        chain_firsts = np.cumsum([0, *(p.chains for p in processes)])
        self._firsts = firsts
        count = int(firsts[-1])
        before: list[list[int]] = []
        chains, positions = np.zeros(count, np.int64), np.zeros(count, np.int32)
        givers: dict[Token, list[int]] = {}
        needs: list[tuple[int, Token]] = []
        for number, process in enumerate(processes):
            first = int(firsts[number])
            for piece in process.pieces:
                own = [first + n for n in piece.before]
                own += [first + n for graph, d, n in piece.declared if (graph, d) not in without]
                before.append(own)
                chains[first + piece.number] = chain_firsts[number] + piece.chain
                positions[first + piece.number] = piece.position
                if messages:
                    for token in piece.gives:
                        givers.setdefault(token, []).append(first + piece.number)
                    needs += [(first + piece.number, token) for token in piece.needs]
            if extra:
                self._add(process, first, extra, before)
        for piece_number, token in needs:
            before[piece_number] += givers.get(token, [])
        self._chains, self._positions = chains, positions
        self._clocks = _clocks(before, chains, positions, int(chain_firsts[-1]))

    @staticmethod
    def _add(
        process: Skeleton, first: int, extra: Collection[Needed], before: list[list[int]]
    ) -> None:
        ends = {_key(p.label): p.number for p in process.pieces if p.label and p.kind == FINISH}
        for piece in process.pieces:
            if piece.kind != START or piece.label is None:
                continue
            label = piece.label
            for needed in extra:
                if (needed.graph, needed.target) != (label.graph, label.region):
                    continue
                ranks = process.neighbours[label.rank] if needed.neighbours else [label.rank]
                for rank in ranks:
                    key = (label.graph, needed.source, rank, label.execution - needed.delay)
                    end = ends.get(key)
                    if end is not None:
                        before[first + piece.number].append(first + end)

    def holds(
        self, process: int, earlier: NDArray[np.int64], later: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """For each pair of pieces of a process: True if the first one ends before the second."""
        a, b = earlier + int(self._firsts[process]), later + int(self._firsts[process])
        return np.asarray(self._clocks[b, self._chains[a]] >= self._positions[a])


def _key(label: Label) -> tuple[int, int, int, int]:
    return label.graph, label.region, label.rank, label.execution


def _clocks(
    before: list[list[int]], chains: NDArray[Any], positions: NDArray[Any], width: int
) -> NDArray[np.int32]:
    """Raises :class:`Cycle`."""
    count = len(before)
    after: list[list[int]] = [[] for _ in range(count)]
    last: dict[int, int] = {}
    order = np.lexsort((positions, chains))
    for number in order.tolist():
        chain = int(chains[number])
        if chain in last:
            before[number].append(last[chain])
        last[chain] = number
    missing = [0] * count
    for number, sources in enumerate(before):
        before[number] = sources = list(set(sources))
        missing[number] = len(sources)
        for source in sources:
            after[source].append(number)
    clocks = np.zeros((count, width), np.int32)
    ready = [number for number in range(count) if not missing[number]]
    done = 0
    while ready:
        number = ready.pop()
        done += 1
        row = clocks[number]
        for source in before[number]:
            np.maximum(row, clocks[source], out=row)
        row[chains[number]] = positions[number]
        for target in after[number]:
            missing[target] -= 1
            if not missing[target]:
                ready.append(target)
    if done < count:
        raise Cycle
    return clocks
