"""The analysis of a matrix: order of elimination, supernodes, and which blocks are not zero.

It works on the pattern of A + A^T.  Blocks are dense; a block that becomes nonzero during the
factorization is there from the beginning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.apps.sparse_lu.matrices import Matrix

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Analysis:
    """``order``: which row (and column) of the matrix comes at each place.  ``starts``: the first
    place of each supernode, and the number of rows.  ``below``: for each supernode k those i > k
    whose blocks (i, k) and (k, i) are not zero."""

    order: Numbers
    starts: Numbers
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
        for k, below in enumerate(self.below):
            w, rest = self.width(k), sum(self.width(i) for i in below)
            total += 2 / 3 * w**3 + 2.0 * w * w * rest + 2.0 * w * rest * rest
        return total


def analyse(matrix: Matrix, width: int, relax: int) -> Analysis:
    """The analysis with supernodes of at most ``width`` columns; those of fewer than ``relax``
    columns are put together with their neighbours, at the cost of zeros."""
    order = elimination_order(matrix)
    pattern = _symmetric(matrix, order)
    _, parents = _columns(pattern)
    # Columns of a branch come one after the other: supernodes are then neighbours.
    order = order[_postorder(parents)]
    pattern = _symmetric(matrix, order)
    structure, parents = _columns(pattern)
    starts = _supernodes(structure, parents, width, relax)
    return Analysis(order, starts, _blocks(pattern, starts))


def _symmetric(matrix: Matrix, order: Numbers) -> Any:
    pattern = abs(matrix[order][:, order])
    return (pattern + pattern.T).tocsc()


def _postorder(parents: list[int]) -> Numbers:
    """The columns so that each comes right after those of its branches of the tree."""
    children: list[list[int]] = [[] for _ in parents]
    roots: list[int] = []
    for column, parent in enumerate(parents):
        (roots if parent < 0 else children[parent]).append(column)
    found: list[int] = []
    stack = roots[::-1]
    while stack:  # Parents before children, to be turned round.
        column = stack.pop()
        found.append(column)
        stack += children[column]
    return np.array(found[::-1], np.int64)


def elimination_order(matrix: Matrix) -> Numbers:
    """Minimum degree on A + A^T, as SuperLU finds it; a full matrix stays as it is."""
    from scipy.sparse.linalg import splu

    rows = matrix.shape[0]
    if matrix.nnz > 0.5 * rows * rows:
        return np.arange(rows)
    found = splu(
        matrix.tocsc(),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return np.argsort(found.perm_c).astype(np.int64)


def _columns(pattern: Any) -> tuple[list[set[int]], list[int]]:
    """The rows below the diagonal in each column of the factor, and its parent in the elimination
    tree (-1: none)."""
    rows = pattern.shape[0]
    structure: list[set[int]] = []
    parents: list[int] = []
    children: list[list[int]] = [[] for _ in range(rows)]
    for column in range(rows):
        own = pattern.indices[pattern.indptr[column] : pattern.indptr[column + 1]]
        found = set(own[own > column].tolist())
        for child in children[column]:
            found |= structure[child]
        found.discard(column)
        structure.append(found)
        parent = min(found, default=-1)
        parents.append(parent)
        if parent >= 0:
            children[parent].append(column)
    return structure, parents


def _supernodes(structure: list[set[int]], parents: list[int], width: int, relax: int) -> Numbers:
    """Columns with the same rows below them, cut at ``width``; small ones are put together."""
    starts = [0]
    for column in range(1, len(structure)):
        size = column - starts[-1]
        same = parents[column - 1] == column and len(structure[column - 1]) == 1 + len(
            structure[column]
        )
        near = size < relax and parents[column - 1] == column
        if size >= width or not (same or near):
            starts.append(column)
    return np.array([*starts, len(structure)], np.int64)


def _blocks(pattern: Any, starts: Numbers) -> tuple[tuple[int, ...], ...]:
    """The blocks that are not zero, with those that become so (elimination by blocks)."""
    count = len(starts) - 1
    of = np.searchsorted(starts, np.arange(pattern.shape[0]), side="right") - 1
    below: list[set[int]] = []
    children: list[list[int]] = [[] for _ in range(count)]
    for k in range(count):
        first, end = pattern.indptr[starts[k]], pattern.indptr[starts[k + 1]]
        found = {i for i in np.unique(of[pattern.indices[first:end]]).tolist() if i > k}
        for child in children[k]:
            found |= below[child]
        found.discard(k)
        below.append(found)
        if found:
            children[min(found)].append(k)
    return tuple(tuple(sorted(own)) for own in below)
