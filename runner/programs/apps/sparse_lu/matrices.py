"""The matrices: each is diagonally dominant, so that no pivoting is needed.

A matrix is a scipy CSR array. Rules define it, so every process creates the same one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Matrix = Any
"""scipy.sparse.csr_array of doubles."""


def dense(rows: int) -> Matrix:
    """A full matrix: perfectly balanced, the control of the thesis."""
    from scipy import sparse

    draw = np.random.default_rng(1)
    full = draw.uniform(-1.0, 1.0, (rows, rows))
    full[np.arange(rows), np.arange(rows)] += rows
    return sparse.csr_array(full)


def poisson(side: int) -> Matrix:
    """The 7-point stencil of Poisson's equation on ``side``^3 cells."""
    from scipy import sparse

    line = sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    return sparse.csr_array(_in_space(line, side) + 0.1 * sparse.eye_array(side**3))


def convection(side: int) -> Matrix:
    """Convection and diffusion with upwind differences on ``side``^3 cells: unsymmetric values."""
    from scipy import sparse

    line = sparse.diags_array([-3.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    return sparse.csr_array(_in_space(line, side) + 0.1 * sparse.eye_array(side**3))


def band(rows: int) -> Matrix:
    """A band with random entries outside of it: an unsymmetric pattern, as of a circuit."""
    from scipy import sparse

    draw = np.random.default_rng(2)
    count = 4 * rows
    row = draw.integers(0, rows, count)
    reach = np.maximum(1, (draw.pareto(1.5, count) * 4).astype(np.int64))
    column = np.clip(row + np.where(draw.random(count) < 0.7, reach, -reach), 0, rows - 1)
    values = draw.uniform(-1.0, 1.0, count)
    pattern = sparse.coo_array((values, (row, column)), shape=(rows, rows)).tocsr()
    weight = np.abs(pattern).sum(axis=1) + np.abs(pattern).sum(axis=0) + 1.0
    return sparse.csr_array(pattern + sparse.diags_array(weight))


def _in_space(line: Any, side: int) -> Any:
    from scipy import sparse

    one = sparse.eye_array(side)
    kron = sparse.kron
    return kron(kron(line, one), one) + kron(kron(one, line), one) + kron(kron(one, one), line)


MATRICES: dict[str, tuple[Callable[[int], Matrix], int, str]] = {
    "tiny": (poisson, 5, "Poisson, 125 rows: for tests"),
    "dense": (dense, 1500, "full, 1500 rows"),
    "poisson": (poisson, 18, "Poisson in space, 5832 rows"),
    "convection": (convection, 18, "convection in space, 5832 rows, unsymmetric"),
    "band": (band, 6000, "a band with stray entries, 6000 rows, unsymmetric pattern"),
}
"""The constructor of a matrix, its size, and its description."""
