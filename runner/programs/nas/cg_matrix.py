"""One rank's block of the matrix of CG."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runner.programs.nas.cg_grid import Block
from runner.programs.nas.common.random import MULTIPLIER, SEED, jump
from runner.runtimes.core.kernels import load, scalars

CONDITION = 0.1
"""Reciprocal of the condition number of the matrix before the shift."""


@dataclass(frozen=True)
class Matrix:
    """Compressed rows of the block.

    ``columns`` (counted from the block's first) and ``values`` of row j are at ``starts[j]`` to
    ``starts[j + 1]``.
    """

    starts: NDArray[np.uint32]
    columns: NDArray[np.uint32]
    values: NDArray[np.float64]


def make_matrix(order: int, nonzeros: int, shift: float, block: Block) -> Matrix:
    """The block of the matrix of that order whose vectors have ``nonzeros`` random entries."""
    kernels = load("runner.programs.nas.cg_matrix_kernels")
    width = nonzeros + 1
    places, values = np.zeros(order * width, np.uint32), np.zeros(order * width)
    lengths = np.zeros(order, np.uint32)
    # The original also draws one number before it begins.
    seed, log2 = jump(SEED, 1), (order - 1).bit_length()
    drawing = scalars([seed, MULTIPLIER, order, nonzeros, log2])
    kernels.bind("draw_vectors", places, values, lengths, drawing)()

    rows = block.rows[1] - block.rows[0]
    starts = np.zeros(rows + 1, np.uint32)
    geometry = [order, width, *block.rows, *block.columns]
    kernels.bind("count_elements", places, lengths, starts, scalars(geometry))()

    count = int(starts[-1])
    columns, elements = np.zeros(count, np.uint32), np.zeros(count)
    factors = np.array([CONDITION ** (1.0 / order), CONDITION - shift])
    place = kernels.bind(
        "place_elements", places, values, lengths, starts[:-1].copy(), columns, elements, factors,
        scalars([*geometry, count]),
    )  # fmt: skip
    place()

    column_count = block.columns[1] - block.columns[0]
    sizes = scalars([rows, column_count, count])
    sums, column_order = np.zeros(column_count), np.zeros(column_count, np.uint32)
    kernels.bind("merge_rows", starts, columns, elements, sums, column_order, sizes)()
    left = int(sizes[2])
    return Matrix(starts, columns[:left].copy(), elements[:left].copy())
