"""The product of matrices as a loop, for a numpy without a BLAS library."""

from __future__ import annotations

from runner.runtimes.core.atomic import inner, load_real, store_real

FUNCTIONS = {
    "dgemm": (
        "void(int64, int64, int64, int64, int64, int64, float64, int64, int64, int64, int64, "
        "float64, int64, int64)"
    )
}
_BLOCK = 64
"""Rows of B that stay in the cache while a block of columns of C is updated."""


def dgemm(
    order: int,
    transposed_a: int,
    transposed_b: int,
    rows: int,
    columns: int,
    depth: int,
    alpha: float,
    a: int,
    a_pitch: int,
    b: int,
    b_pitch: int,
    beta: float,
    c: int,
    c_pitch: int,
) -> None:
    """C = alpha A B + beta C, row by row, with matrices at addresses; pitches in elements.

    Only for C order, and for matrices that are not transposed.
    """
    for i in range(rows):
        row = c + 8 * i * c_pitch
        for j in range(columns):
            store_real(row + 8 * j, beta * load_real(row + 8 * j) if beta != 0.0 else 0.0)
    first = 0
    while first < depth:
        last = min(first + _BLOCK, depth)
        for i in range(rows):
            row = c + 8 * i * c_pitch
            k = first
            while k < last:
                one = b + 8 * k * b_pitch
                x = alpha * load_real(a + 8 * (i * a_pitch + k))
                _add_row(row, one, x, columns)
                k += 1
        first = last


@inner
def _add_row(target: int, source: int, factor: float, count: int) -> None:
    for j in range(count):
        at = target + 8 * j
        store_real(at, load_real(at) + factor * load_real(source + 8 * j))
