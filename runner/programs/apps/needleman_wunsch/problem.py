"""The problem: two sequences, divided into blocks, and the expected score."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.runtimes.core import kernels

MATCH, MISMATCH, GAP = 1, -1, -1
Bases = NDArray[np.uint8]
Scores = NDArray[np.int32]


def sequences(length: int, seed: int) -> tuple[Bases, Bases]:
    """Two sequences of ``length`` bases (0 to 3); the second is the first with every fifth base
    redrawn."""
    draw = np.random.default_rng(seed)
    first = draw.integers(0, 4, length, dtype=np.uint8)
    second = first.copy()
    mask = draw.random(length) < 0.2
    second[mask] = draw.integers(0, 4, int(mask.sum()), dtype=np.uint8)
    return first, second


def reference(first: Bases, second: Bases) -> int:
    """The score of the alignment, row by row with vectors: a different algorithm from the kernel's.

    In a row the gaps of the second sequence are a running maximum of A[i, j] + j.
    """
    places = np.arange(len(second) + 1, dtype=np.int32)
    row = -places
    for number, base in enumerate(first, 1):
        same = np.where(second == base, np.int32(MATCH), np.int32(MISMATCH))
        new = np.empty_like(row)
        new[0] = -number
        np.maximum(row[:-1] + same, row[1:] + np.int32(GAP), out=new[1:])
        row = np.maximum.accumulate(new + places) - places
    return int(row[-1])


class Block:
    """One block of the matrix: rows ``top`` to ``bottom``, columns ``left`` to ``right``."""

    def __init__(self, first: Bases, second: Bases, rows: range, columns: range) -> None:
        self.down = np.ascontiguousarray(first[rows.start : rows.stop])
        self.along = np.ascontiguousarray(second[columns.start : columns.stop])
        self._shape = kernels.scalars([len(rows), len(columns)])
        self.rows, self.columns = rows, columns

    def first_line(self) -> Scores:
        """The row above the block, if it is in the first row of blocks; with the corner."""
        return -np.arange(self.columns.start, self.columns.stop + 1, dtype=np.int32)

    def first_column(self) -> Scores:
        """The column before the block, if it is in the first column of blocks."""
        return -np.arange(self.rows.start + 1, self.rows.stop + 1, dtype=np.int32)

    def sweep(self, line: Scores, left: Scores, right: Scores) -> None:
        """Compute the block: ``line`` becomes its last row, ``right`` its last column."""
        _kernels().bind("sweep", self.down, self.along, line, left, right, self._shape)()


def _kernels() -> kernels.Kernels:
    return kernels.load("runner.programs.apps.needleman_wunsch.kernels")


def prepare() -> Any:
    """Load the kernel; before the clock starts."""
    return _kernels()


def cut(length: int, block: int) -> list[range]:
    """The parts of a sequence; the last one may be shorter."""
    return [range(start, min(start + block, length)) for start in range(0, length, block)]
