"""The analysis of a matrix: order of elimination, supernodes, and nonzero blocks.

It works on the pattern of A + A^T. Blocks are dense; a block that becomes nonzero during the
factorization exists from the beginning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.programs.apps.sparse_lu.matrices import Matrix

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Analysis:
    """``order``: the row (and column) of the matrix at each place. ``starts``: the first place of
    each supernode, and the number of rows. ``rows``: for each supernode the later places that are
    nonzero in its columns (and rows). ``below``: the supernodes of these places."""

    order: Numbers
    starts: Numbers
    rows: tuple[Numbers, ...]
    below: tuple[tuple[int, ...], ...]

    @property
    def count(self) -> int:
        """Number of supernodes."""
        return len(self.below)

    def width(self, k: int) -> int:
        """Columns of a supernode."""
        return int(self.starts[k + 1] - self.starts[k])

    @property
    def operations(self) -> float:
        """Multiplications and additions of the factorization with these blocks."""
        total = 0.0
        for k, rows in enumerate(self.rows):
            w, rest = self.width(k), len(rows)
            total += 2 / 3 * w**3 + 2.0 * w * w * rest + 2.0 * w * rest * rest
        return total


def analyse(matrix: Matrix, width: int, relax: int) -> Analysis:
    """The analysis with supernodes of at most ``width`` columns; branches and supernodes of at most
    ``relax`` columns are merged, at the cost of zeros."""
    order = elimination_order(matrix)
    structure, parents = _columns(_symmetric(matrix, order))
    # Columns of a branch are consecutive: supernodes are then adjacent.
    order = order[_postorder(parents, [len(rows) for rows in structure])]
    structure, parents = _columns(_symmetric(matrix, order))
    starts = _supernodes(structure, parents, width, relax)
    rows = tuple(np.array(sorted(structure[end - 1]), np.int64) for end in starts[1:].tolist())
    of = np.searchsorted(starts, np.arange(len(order)), side="right") - 1
    below = tuple(tuple(np.unique(of[own]).tolist()) for own in rows)
    return Analysis(order, starts, rows, below)


def _symmetric(matrix: Matrix, order: Numbers) -> Any:
    pattern = abs(matrix[order][:, order])
    return (pattern + pattern.T).tocsc()


def _postorder(parents: list[int], heights: list[int]) -> Numbers:
    """The columns, each right after those of its branches of the tree, the highest branch last: it
    can be merged with the column."""
    children: list[list[int]] = [[] for _ in parents]
    roots: list[int] = []
    for column in sorted(range(len(parents)), key=heights.__getitem__):
        parent = parents[column]
        (roots if parent < 0 else children[parent]).append(column)
    order: list[int] = []
    stack = roots[::-1]
    while stack:  # Parents before children, to be reversed.
        column = stack.pop()
        order.append(column)
        stack += children[column]
    return np.array(order[::-1], np.int64)


def elimination_order(matrix: Matrix) -> Numbers:
    """Minimum degree on A + A^T, by SuperLU; a full matrix keeps its order."""
    from scipy.sparse.linalg import splu

    rows = matrix.shape[0]
    if matrix.nnz > 0.5 * rows * rows:
        return np.arange(rows)
    factors = splu(
        matrix.tocsc(),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return np.argsort(factors.perm_c).astype(np.int64)


def _columns(pattern: Any) -> tuple[list[set[int]], list[int]]:
    """The rows below the diagonal in each column of the factor, and its parent in the elimination
    tree (-1: none)."""
    rows = pattern.shape[0]
    structure: list[set[int]] = []
    parents: list[int] = []
    children: list[list[int]] = [[] for _ in range(rows)]
    for column in range(rows):
        own = pattern.indices[pattern.indptr[column] : pattern.indptr[column + 1]]
        below = set(own[own > column].tolist())
        for child in children[column]:
            below |= structure[child]
        below.discard(column)
        structure.append(below)
        parent = min(below, default=-1)
        parents.append(parent)
        if parent >= 0:
            children[parent].append(column)
    return structure, parents


ZEROS = 0.1
"""Largest share of zeros in a supernode merged from larger ones."""


def _supernodes(structure: list[set[int]], parents: list[int], width: int, relax: int) -> Numbers:
    """The first column of each supernode, and the number of columns.

    Whole branches of at most ``relax`` columns form one. Otherwise columns with the same rows below
    them do, and a supernode joins the one above it if both have at most ``relax`` columns, or if
    this adds few zeros. None has more than ``width`` columns.
    """
    nodes: list[tuple[int, int, int]] = []
    """First column, end, zeros."""
    for first, end in _first_supernodes(structure, parents, width, relax):
        own, zeros = first, 0
        while nodes:
            start, middle, before = nodes[-1]
            columns, height = end - start, len(structure[end - 1])
            if middle != own or parents[middle - 1] < own or parents[middle - 1] >= end:
                break
            missing = end - own + height - len(structure[middle - 1])
            total = before + zeros + (middle - start) * missing
            entries = columns * (columns + 1) // 2 + columns * height
            if columns > width or (columns > relax and total > ZEROS * entries):
                break
            nodes.pop()
            own, zeros = start, total
        nodes.append((own, end, zeros))
    return np.array([*(first for first, _, _ in nodes), len(structure)], np.int64)


def _first_supernodes(
    structure: list[set[int]], parents: list[int], width: int, relax: int
) -> list[tuple[int, int]]:
    """Columns with the same rows below them, or a whole branch of at most ``relax`` columns."""
    size = [1] * len(parents)
    for column, parent in enumerate(parents):
        if parent >= 0:
            size[parent] += size[column]
    small = [n <= min(relax, width) for n in size]
    spans: list[tuple[int, int]] = []
    column = 0
    while column < len(parents):
        end = column + 1
        while (
            end < len(parents)
            and end - column < width
            and parents[end - 1] == end
            and len(structure[end - 1]) == 1 + len(structure[end])
        ):
            end += 1
        if small[column]:
            # The root of the branch that begins here.
            root = column
            while parents[root] >= 0 and small[parents[root]]:
                root = parents[root]
            end = max(end, root + 1)
        spans.append((column, end))
        column = end
    return spans
