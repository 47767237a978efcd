"""The blocks of one process, and what is done with them.

Block (i, j) is on process (i mod rows, j mod columns) of the mesh.  Step k factors the diagonal
block (D), multiplies the panel below it (L) and the one beside it (U) with the inverses of its
factors, and takes their products off all blocks below and beside (LU).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.apps.sparse_lu.matrices import Matrix
from runner.apps.sparse_lu.symbolic import Analysis
from runner.native import kernels

Block = NDArray[np.float64]


@dataclass(frozen=True)
class Mesh:
    """``rows`` x ``columns`` processes, numbered row by row."""

    rows: int
    columns: int

    def process(self, i: int, j: int) -> int:
        """The process of block (i, j)."""
        return i % self.rows * self.columns + j % self.columns

    def place(self, process: int) -> tuple[int, int]:
        """Row and column of a process."""
        return divmod(process, self.columns)


class Blocks:
    """The blocks of one process of the mesh."""

    def __init__(self, matrix: Matrix, analysis: Analysis, mesh: Mesh, process: int) -> None:
        self.analysis, self.mesh = analysis, mesh
        self.row, self.column = mesh.place(process)
        self.process = process
        self._kernels = kernels.load("runner.apps.sparse_lu.kernels")
        ordered = matrix[analysis.order][:, analysis.order].tocsr()
        self._start = {
            (i, j): self._filled(ordered, i, j)
            for k, below in enumerate(analysis.below)
            for i, j in ((k, k), *((b, k) for b in below), *((k, b) for b in below))
            if mesh.process(i, j) == process
        }
        self.at: dict[tuple[int, int], Block] = {}
        self.reset()

    def reset(self) -> None:
        """The blocks as they were at the start."""
        self.at = {place: block.copy() for place, block in self._start.items()}

    def _filled(self, ordered: Matrix, i: int, j: int) -> Block:
        starts = self.analysis.starts
        part = ordered[starts[i] : starts[i + 1], starts[j] : starts[j + 1]]
        return np.ascontiguousarray(part.toarray())

    def below(self, k: int) -> list[int]:
        """The block rows of panel L of step k on this row of the mesh."""
        return [i for i in self.analysis.below[k] if i % self.mesh.rows == self.row]

    def beside(self, k: int) -> list[int]:
        """The block columns of panel U of step k on this column of the mesh."""
        return [j for j in self.analysis.below[k] if j % self.mesh.columns == self.column]

    def height(self, blocks: list[int]) -> int:
        """Rows of a panel."""
        return sum(map(self.analysis.width, blocks))

    def factor(self, k: int) -> tuple[Block, Block]:
        """D: factor the diagonal block; returns the inverses of L and U."""
        block = self.at[k, k]
        lower, upper = np.empty_like(block), np.empty_like(block)
        self._kernels.bind("factor", block, lower, upper, kernels.scalars([len(block)]))()
        return lower, upper

    def lower_panel(self, k: int, upper_inverse: Block) -> Block:
        """L: the blocks below the diagonal times U^-1; returns them as one array."""
        rows = self.below(k)
        panel: Block = np.concatenate([self.at[i, k] for i in rows]) @ upper_inverse
        at = 0
        for i in rows:
            height = self.analysis.width(i)
            self.at[i, k][:] = panel[at : at + height]
            at += height
        return panel

    def upper_panel(self, k: int, lower_inverse: Block) -> Block:
        """U: L^-1 times the blocks beside the diagonal; returns them as one array."""
        columns = self.beside(k)
        panel: Block = lower_inverse @ np.concatenate([self.at[k, j] for j in columns], axis=1)
        at = 0
        for j in columns:
            width = self.analysis.width(j)
            self.at[k, j][:] = panel[:, at : at + width]
            at += width
        return panel

    def update(self, k: int, lower: Block, upper: Block) -> None:
        """LU: take the product of the panels off the blocks of this process."""
        if not len(lower) or not upper.shape[1]:
            return
        product = lower @ upper
        top = 0
        for i in self.below(k):
            height, left = self.analysis.width(i), 0
            for j in self.beside(k):
                width = self.analysis.width(j)
                self.at[i, j] -= product[top : top + height, left : left + width]
                left += width
            top += height

    def touches(self, k: int) -> bool:
        """Whether step k changes blocks of this process."""
        return bool(self.below(k) and self.beside(k))


def solution(analysis: Analysis, blocks: dict[tuple[int, int], Block], right: Block) -> Block:
    """Solve with all blocks of the factors: L y = b by blocks from the top, U x = y from the
    bottom."""
    starts, count = analysis.starts, analysis.count
    parts: list[Any] = [
        right[analysis.order][starts[k] : starts[k + 1]].copy() for k in range(count)
    ]
    for k in range(count):
        square = blocks[k, k]
        lower = np.tril(square, -1) + np.eye(len(square))
        parts[k] = np.linalg.solve(lower, parts[k])
        for i in analysis.below[k]:
            parts[i] -= blocks[i, k] @ parts[k]
    for k in reversed(range(count)):
        for j in analysis.below[k]:
            parts[k] -= blocks[k, j] @ parts[j]
        parts[k] = np.linalg.solve(np.triu(blocks[k, k]), parts[k])
    found = np.empty(len(right))
    found[analysis.order] = np.concatenate(parts)
    return found
