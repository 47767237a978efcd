"""Conflicts: pairs of pieces that touch the same bytes, at least one of them with a write.

The functions of one rank's regions never overlap in time: each begins after the end of the other.
So what such a function writes and then reads itself concerns no other function of the rank. Ranks
overlap, and a message is under way while other regions run.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.runtimes.check.journal import BODY, Journal, Piece
from runner.runtimes.check.memory import EXPOSED, READ_AFTER, WRITTEN, Runs


class Spot(NamedTuple):
    """Bytes ``starts[n]`` to ``stops[n]`` (excluded) of a block."""

    block: int
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]


Pair = tuple[int, int]


@dataclass(frozen=True)
class Conflicts:
    """Pairs of pieces: ``earlier[n]`` ran before ``later[n]``."""

    earlier: NDArray[np.int64]
    later: NDArray[np.int64]
    spots: list[Spot]
    """The common bytes of each pair."""


def find(journal: Journal) -> Conflicts:
    """For each piece, its conflicts with the last pieces of all other chains.

    Earlier pieces of a chain are ordered if its last one is.
    """
    by_block: dict[int, list[tuple[Piece, Runs]]] = defaultdict(list)
    for piece in sorted(journal.pieces, key=lambda piece: piece.stamp):
        for block, runs in piece.runs.items():
            by_block[block].append((piece, runs))
    spots: dict[Pair, Spot] = {}
    for block, touches in by_block.items():
        if any((runs.flags & WRITTEN).any() for _, runs in touches):
            _find(block, touches, spots)
    return Conflicts(
        np.array([a for a, _ in spots], np.int64),
        np.array([b for _, b in spots], np.int64),
        list(spots.values()),
    )


def _find(block: int, touches: list[tuple[Piece, Runs]], spots: dict[Pair, Spot]) -> None:
    bounds = np.unique(np.concatenate([np.r_[r.starts, r.stops] for _, r in touches]))
    chains = sorted({piece.chain for piece, _ in touches})
    row = {chain: n for n, chain in enumerate(chains)}
    shape = len(chains), len(bounds)
    last = {flag: np.full(shape, -1, np.int64) for flag in (EXPOSED, READ_AFTER, WRITTEN)}
    owner = np.full(len(chains), -1)
    is_body = np.zeros(len(chains), bool)
    for piece, _ in touches:
        owner[row[piece.chain]] = piece.rank
        is_body[row[piece.chain]] = piece.kind == BODY
    columns = [_atoms(bounds, runs) for _, runs in touches]
    is_private = _private(touches, columns, len(bounds))
    pairs = _Pairs(block, bounds, spots)
    for (piece, _), (atoms, flags) in zip(touches, columns, strict=True):
        others = np.array(chains) != piece.chain
        alone = (owner == piece.rank) & is_body & (piece.kind == BODY)
        exposed = flags & EXPOSED > 0
        writes = flags & WRITTEN > 0
        # Functions that never overlap: values within one of them concern it alone.
        rows = np.flatnonzero(others & alone)
        pairs.add(piece, rows, last[WRITTEN], atoms[exposed])
        pairs.add(piece, rows, last[EXPOSED], atoms[writes])
        pairs.add(piece, rows, last[WRITTEN], atoms[writes & ~is_private[atoms]])
        rows = np.flatnonzero(others & ~alone)
        pairs.add(piece, rows, last[WRITTEN], atoms[flags > 0])
        pairs.add(piece, rows, np.maximum(last[EXPOSED], last[READ_AFTER]), atoms[writes])
        at = row[piece.chain]
        for flag in (EXPOSED, READ_AFTER, WRITTEN):
            last[flag][at, atoms[flags & flag > 0]] = piece.number


def _atoms(bounds: NDArray[Any], runs: Runs) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """The numbers of the intervals between bounds, and the flags of each."""
    first = np.searchsorted(bounds, runs.starts)
    counts = np.searchsorted(bounds, runs.stops) - first
    total = int(counts.sum())
    offsets = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(first, counts) + offsets, np.repeat(runs.flags, counts)


def _private(
    touches: list[tuple[Piece, Runs]],
    columns: list[tuple[NDArray[np.int64], NDArray[np.uint8]]],
    count: int,
) -> NDArray[np.bool_]:
    """Intervals that only hold values within a function: each writes them before it reads them."""
    exposed, reused, bare = (np.zeros(count, bool) for _ in range(3))
    for (piece, _), (atoms, flags) in zip(touches, columns, strict=True):
        exposed[atoms[flags & EXPOSED > 0]] = True
        reused[atoms[flags & READ_AFTER > 0]] = True
        bare[atoms[(flags & WRITTEN > 0) & (flags & READ_AFTER == 0)]] = True
        if piece.kind != BODY:
            exposed[atoms] = True
    return reused & ~exposed & ~bare


class _Pairs:
    """The conflicts in a block, whose intervals begin at ``bounds``."""

    def __init__(self, block: int, bounds: NDArray[np.int64], spots: dict[Pair, Spot]) -> None:
        self._block, self._bounds, self._spots = block, bounds, spots

    def add(
        self,
        piece: Piece,
        rows: NDArray[np.int64],
        last: NDArray[np.int64],
        atoms: NDArray[np.int64],
    ) -> None:
        """Add the latest piece of each of these chains that touched one of the intervals."""
        if not len(atoms) or not len(rows):
            return
        table = last[np.ix_(rows, atoms)]
        latest = table.max(axis=1)
        for number in np.flatnonzero(latest >= 0).tolist():
            pair = int(latest[number]), piece.number
            if pair not in self._spots:
                common = atoms[table[number] == latest[number]]
                bounds = self._bounds
                self._spots[pair] = Spot(self._block, bounds[common], bounds[common + 1])
