"""The blocks of CG's matrix and the partners of each rank (NPB 3.4-MPI, ``setup_submatrix_info``).

Ranks form a grid of ``rows`` x ``columns`` blocks, numbered along the rows. There are as many
columns as rows, or twice as many. Vectors are cut by columns.
"""

from __future__ import annotations

from dataclasses import dataclass

from runner.programs.apps.common.grid import split
from runner.programs.nas.common.grid import two_factors


@dataclass(frozen=True)
class Exchange:
    """One step of the sum along a row of ranks.

    It has the other rank, the part of the product to send, and the part to receive and add (start,
    end).
    """

    partner: int
    send: tuple[int, int]
    receive: tuple[int, int]


@dataclass(frozen=True)
class Block:
    """The part of one rank: its rows and columns of the matrix (first, end).

    ``steps`` are the exchanges that sum the product along a row of ranks, in order. ``piece`` is
    the part of the product that this rank then has and sends to ``transpose``, the rank that needs
    it for the next vector. ``partners`` are those of scalar sums, in order.
    """

    rows: tuple[int, int]
    columns: tuple[int, int]
    steps: tuple[Exchange, ...]
    piece: tuple[int, int]
    transpose: int
    partners: tuple[int, ...]


def block(order: int, log2: int, rank: int) -> Block:
    """The block of ``rank``, one of 2^log2, for a matrix of ``order`` rows."""
    columns, rows = two_factors(log2)
    row, column = divmod(rank, columns)
    square = columns == rows
    own_rows = split(order, rows, row)
    count = own_rows[1] - own_rows[0]
    half = (count + 1) // 2
    if square:
        own_columns = split(order, columns, column)
        piece, rest = (0, count), (0, count)
        transpose = column * rows + row
    else:
        # A column of ranks has half of a row's part: the first half, perhaps the larger one, or the
        # rest.
        whole = split(order, rows, column // 2)
        middle = whole[0] + (whole[1] - whole[0] + 1) // 2
        halves = ((whole[0], middle), (middle, whole[1]))
        own_columns = halves[column % 2]
        pieces = ((0, half), (half, count))
        piece, rest = pieces[column % 2], pieces[1 - column % 2]
        transpose = 2 * (column // 2 * rows + row) + column % 2
    partners = _partners(columns, row, column)
    steps = tuple(
        Exchange(partner, rest if n == 0 else piece, piece)
        for n, partner in enumerate(reversed(partners))
    )
    return Block(own_rows, own_columns, steps, piece, transpose, partners)


def _partners(columns: int, row: int, column: int) -> tuple[int, ...]:
    """The other rank of each of log2(columns) pairwise exchanges along the row, farthest first."""
    partners = []
    group = columns
    while group > 1:
        partner = (column + group // 2) % group + column // group * group
        partners.append(row * columns + partner)
        group //= 2
    return tuple(partners)
