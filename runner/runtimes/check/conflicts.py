"""Conflicts: pairs of pieces that touch the same bytes, at least one of them with a write.

The functions of one rank's regions never overlap in time: each begins after the end of the other.
So what such a function writes and then reads itself concerns no other function of the rank. Ranks
overlap, and a message is under way while other regions run.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.runtimes.check.journal import BODY, Journal, Piece
from runner.runtimes.check.memory import EXPOSED, READ_AFTER, WRITTEN, Runs


@dataclass(frozen=True)
class Conflicts:
    """Pairs of pieces: ``earlier[n]`` ran before ``later[n]``; ``atoms[n]`` is one common place."""

    earlier: NDArray[np.int64]
    later: NDArray[np.int64]
    spots: list[tuple[int, int, int]]
    """Block, first byte, end of the common bytes of each pair."""


def find(journal: Journal) -> Conflicts:
    """For each piece, its conflicts with the last pieces of all other chains.

    Earlier pieces of a chain are ordered if its last one is.
    """
    by_block: dict[int, list[tuple[Piece, Runs]]] = defaultdict(list)
    for piece in journal.pieces:
        for block, runs in piece.runs.items():
            by_block[block].append((piece, runs))
    pairs: dict[tuple[int, int], tuple[int, int, int]] = {}
    for block, touches in by_block.items():
        if any((runs.flags & WRITTEN).any() for _, runs in touches):
            _find(block, touches, pairs)
    return Conflicts(
        np.array([a for a, _ in pairs], np.int64),
        np.array([b for _, b in pairs], np.int64),
        list(pairs.values()),
    )


def _find(
    block: int,
    touches: list[tuple[Piece, Runs]],
    pairs: dict[tuple[int, int], tuple[int, int, int]],
) -> None:
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
    for (piece, _), (atoms, flags) in zip(touches, columns, strict=True):
        apart = (owner == piece.rank) & is_body & (piece.kind == BODY)
        others = np.array(chains) != piece.chain
        reads = flags & (EXPOSED | READ_AFTER) > 0
        exposed, writes = flags & EXPOSED > 0, flags & WRITTEN > 0
        both = np.maximum(last[EXPOSED], last[READ_AFTER])
        for rows, own_reads, other_reads, own_writes in (
            (np.flatnonzero(others & ~apart), reads, both, writes),
            (np.flatnonzero(others & apart), exposed, last[EXPOSED], writes),
        ):
            if not len(rows):
                continue
            kept = ~is_private[atoms] if rows is not None and apart[rows[0]] else None
            own = own_writes if kept is None else own_writes & kept
            _pair(pairs, block, bounds, piece, rows, last[WRITTEN], atoms[own_reads])
            _pair(pairs, block, bounds, piece, rows, other_reads, atoms[own_writes])
            _pair(pairs, block, bounds, piece, rows, last[WRITTEN], atoms[own])
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


def _pair(
    pairs: dict[tuple[int, int], tuple[int, int, int]],
    block: int,
    bounds: NDArray[Any],
    piece: Piece,
    rows: NDArray[np.int64],
    last: NDArray[np.int64],
    atoms: NDArray[np.int64],
) -> None:
    """Add the latest piece of each of these chains that touched one of the intervals."""
    if not len(atoms):
        return
    table = last[np.ix_(rows, atoms)]
    latest = table.max(axis=1)
    for number in np.flatnonzero(latest >= 0).tolist():
        key = int(latest[number]), piece.number
        if key not in pairs:
            common = atoms[table[number] == latest[number]]
            ends = bounds[common.max() + 1] if common.max() + 1 < len(bounds) else bounds[-1]
            pairs[key] = block, int(bounds[common.min()]), int(ends)
