"""The blocks of one process, and the operations on them.

Block (i, j) is on process (i mod rows, j mod columns) of the mesh. Step k factors the diagonal
block (D), multiplies the panel below it (L) and the one beside it (U) with the inverses of its
factors, and subtracts their products from all blocks below and beside (LU).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.programs.apps.sparse_lu.matrices import Matrix
from runner.programs.apps.sparse_lu.symbolic import Analysis, Numbers
from runner.runtimes.core import kernels

Block = NDArray[np.float64]
KERNELS = ("factor", "gather", "scatter", "subtract")


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
        library = kernels.load("runner.programs.apps.sparse_lu.kernels")
        self._raw = {name: library.raw(name) for name in KERNELS}
        self._shapes = kernels.scalars(np.diff(analysis.starts).tolist())
        sorted_matrix = matrix[analysis.order][:, analysis.order].tocsr()
        self._start = {
            (i, j): self._start_block(sorted_matrix, i, j)
            for k, below in enumerate(analysis.below)
            for i, j in ((k, k), *((b, k) for b in below), *((k, b) for b in below))
            if mesh.process(i, j) == process
        }
        self.at = {place: block.copy() for place, block in self._start.items()}
        """The blocks; they never move, because tables hold their addresses."""
        starts = analysis.starts
        self._of = np.searchsorted(starts, np.arange(starts[-1]), side="right") - 1
        self._tables: dict[tuple[str, int], Numbers] = {}

    def reset(self) -> None:
        """Restore the initial blocks."""
        for place, block in self._start.items():
            self.at[place][:] = block

    def _start_block(self, sorted_matrix: Matrix, i: int, j: int) -> Block:
        starts = self.analysis.starts
        part = sorted_matrix[starts[i] : starts[i + 1], starts[j] : starts[j + 1]]
        return np.ascontiguousarray(part.toarray())

    def below(self, k: int) -> list[int]:
        """The block rows of panel L of step k on this row of the mesh."""
        return [i for i in self.analysis.below[k] if i % self.mesh.rows == self.row]

    def across(self, k: int) -> list[int]:
        """The block columns of panel U of step k on this column of the mesh."""
        return [j for j in self.analysis.below[k] if j % self.mesh.columns == self.column]

    def height(self, k: int) -> int:
        """Rows of panel L of step k on this row of the mesh."""
        return len(self._places(k, self.mesh.rows, self.row)[0])

    def length(self, k: int) -> int:
        """Columns of panel U of step k on this column of the mesh."""
        return len(self._places(k, self.mesh.columns, self.column)[0])

    def _places(self, k: int, every: int, own: int) -> tuple[Numbers, Numbers]:
        """The supernodes of the nonzero places in step k, and the places in these."""
        rows = self.analysis.rows[k]
        of = self._of[rows]
        mask = of % every == own
        return of[mask], (rows - self.analysis.starts[of])[mask]

    def factor(self, k: int) -> tuple[Block, Block]:
        """D: factor the diagonal block; returns the inverses of L and U."""
        block = self.at[k, k]
        lower, upper = np.empty_like(block), np.empty_like(block)
        shape = self._shapes[k : k + 1]
        self._raw["factor"](*map(_address, (block, lower, upper, shape)))
        return lower, upper

    def lower_panel(self, k: int, upper_inverse: Block) -> Block:
        """L: the rows below the diagonal times U^-1; returns them as one array."""
        table = self._table("L", k)
        panel = np.empty((int(table[0]), int(table[1])))
        self._copy("gather", panel, table)
        panel = panel @ upper_inverse
        self._copy("scatter", panel, table)
        return panel

    def upper_panel(self, k: int, lower_inverse: Block) -> Block:
        """U: L^-1 times the columns beside the diagonal; returns them as one array."""
        table = self._table("U", k)
        panel = np.empty((int(table[1]), int(table[0])))
        self._copy("gather", panel, table)
        panel = lower_inverse @ panel
        self._copy("scatter", panel, table)
        return panel

    def update(self, k: int, lower: Block, upper: Block) -> None:
        """LU: subtract the product of the panels from the blocks of this process."""
        if len(lower) and upper.shape[1]:
            self._copy("subtract", lower @ upper, self._table("LU", k))

    def _copy(self, kernel: str, panel: Block, table: Numbers) -> None:
        self._raw[kernel](_address(panel), _address(table))

    def _table(self, kind: str, k: int) -> Numbers:
        """The table of a task for the kernels; computed once."""
        table = self._tables.get((kind, k))
        if table is None:
            makers = {"L": self._lower_table, "U": self._upper_table, "LU": self._update_table}
            table = self._tables[kind, k] = np.array(makers[kind](k), np.int64)
        return table

    def _lower_table(self, k: int) -> list[int]:
        width = self.analysis.width(k)
        of, places = self._places(k, self.mesh.rows, self.row)
        table = [len(of), width, width, 1]
        for i, place in zip(of.tolist(), places.tolist(), strict=True):
            table += [self.at[i, k].ctypes.data + 8 * width * place, 8]
        return table

    def _upper_table(self, k: int) -> list[int]:
        of, places = self._places(k, self.mesh.columns, self.column)
        table = [len(of), self.analysis.width(k), 1, len(of)]
        for j, place in zip(of.tolist(), places.tolist(), strict=True):
            table += [self.at[k, j].ctypes.data + 8 * place, 8 * self.analysis.width(j)]
        return table

    def _update_table(self, k: int) -> list[int]:
        row_nodes, rows = self._places(k, self.mesh.rows, self.row)
        column_nodes, columns = self._places(k, self.mesh.columns, self.column)
        down, ends = np.unique(row_nodes, return_counts=True)
        across, widths = np.unique(column_nodes, return_counts=True)
        table = [len(rows), len(columns), len(down), len(across), *ends.cumsum().tolist()]
        for j, end in zip(across.tolist(), widths.cumsum().tolist(), strict=True):
            table += [end, 8 * self.analysis.width(j)]
        table += rows.tolist()
        table += (8 * columns).tolist()
        table += [self.at[i, j].ctypes.data for i in down.tolist() for j in across.tolist()]
        return table


def _address(array: NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


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
    unknowns = np.empty(len(right))
    unknowns[analysis.order] = np.concatenate(parts)
    return unknowns
