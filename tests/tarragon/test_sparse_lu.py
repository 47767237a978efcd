"""The analysis and the blocks of the sparse factorization, in one process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from runner.programs.apps.sparse_lu.matrices import MATRICES, band, convection, dense, poisson
from runner.programs.apps.sparse_lu.mesh import Blocks, Mesh, solution
from runner.programs.apps.sparse_lu.symbolic import analyse


def drawn(rows: int, share: float, seed: int) -> Any:
    """A matrix with a dominant diagonal and an unsymmetric pattern."""
    draw = np.random.default_rng(seed)
    full = draw.uniform(-1, 1, (rows, rows)) * (draw.random((rows, rows)) < share)
    return sparse.csr_array(full + np.diag(np.abs(full).sum(axis=1) + np.abs(full).sum(axis=0) + 1))


def factored(matrix: Any) -> Any:
    """L and U without pivoting, in one array."""
    full = matrix.toarray()
    for k in range(len(full)):
        full[k + 1 :, k] /= full[k, k]
        full[k + 1 :, k + 1 :] -= np.outer(full[k + 1 :, k], full[k, k + 1 :])
    return full


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 40),
    st.floats(0.01, 0.4),
    st.integers(1, 12),
    st.integers(1, 12),
    st.integers(0, 10**6),
)
def test_the_rows_of_a_supernode_are_all_that_is_not_zero(
    rows: int, share: float, width: int, relax: int, seed: int
) -> None:
    matrix = drawn(rows, share, seed)
    found = analyse(matrix, width, min(relax, width))
    assert sorted(found.order.tolist()) == list(range(rows))
    widths = np.diff(found.starts)
    assert found.starts[0] == 0
    assert found.starts[-1] == rows
    assert widths.min() >= 1
    assert widths.max() <= width
    factors = factored(matrix[found.order][:, found.order])
    for k in range(found.count):
        first, end = found.starts[k], found.starts[k + 1]
        below = factors[end:, first:end].any(axis=1) | factors[first:end, end:].any(axis=0)
        assert set((end + np.flatnonzero(below)).tolist()) <= set(found.rows[k].tolist())
        of = np.searchsorted(found.starts, found.rows[k], side="right") - 1
        assert found.below[k] == tuple(np.unique(of).tolist())


def solved(matrix: Any, width: int, relax: int) -> float:
    """The relative residual of a solution by one process."""
    found = analyse(matrix, width, relax)
    blocks = Blocks(matrix, found, Mesh(1, 1), 0)
    for _ in range(2):  # The second time with tables that are known.
        blocks.reset()
        for k in range(found.count):
            lower, upper = blocks.factor(k)
            if found.below[k]:
                blocks.update(k, blocks.lower_panel(k, upper), blocks.upper_panel(k, lower))
    right = np.linspace(-1, 1, matrix.shape[0])
    left = solution(found, blocks.at, right)
    return float(np.abs(matrix @ left - right).max() / np.abs(right).max())


@pytest.mark.parametrize(("width", "relax"), [(1, 1), (7, 1), (7, 7), (64, 1), (64, 16)])
def test_the_solution_is_right(width: int, relax: int) -> None:
    for matrix in (dense(60), poisson(6), convection(6), band(300), drawn(80, 0.1, 3)):
        assert solved(matrix, width, relax) < 1e-10


def test_supernodes_are_wide_enough_for_products() -> None:
    """Minimum degree alone leaves supernodes of two columns."""
    found = analyse(poisson(12), 64, 16)
    assert np.diff(found.starts).mean() > 6
    assert analyse(dense(100), 64, 16).count == 2


def test_every_matrix_has_a_name() -> None:
    assert {make for make, _, _ in MATRICES.values()} == {dense, poisson, convection, band}
