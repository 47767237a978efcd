"""Cutting a box into blocks, and the orders of blocks."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.runtimes.tpod import ORDERS, Blocks, ordered, over_decompose

GRIDS = st.tuples(*[st.integers(1, 4)] * 3)
FACES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), unique=True)


@given(st.tuples(*[st.integers(1, 60)] * 3), st.tuples(*[st.integers(0, 70)] * 3))
def test_every_cell_is_in_one_block(
    cells: tuple[int, int, int], edge: tuple[int, int, int]
) -> None:
    blocks = over_decompose(cells, edge)
    sizes = [math.prod(b - a for a, b in blocks.bounds(n)) for n in range(blocks.count)]
    assert sum(sizes) == math.prod(cells)
    for axis in range(3):
        ends = sorted({bound for n in range(blocks.count) for bound in blocks.bounds(n)[axis]})
        assert (ends[0], ends[-1]) == (0, cells[axis])
        assert len(ends) == blocks.grid[axis] + 1
        widths = {b - a for a, b in pairwise(ends)}
        assert max(widths) - min(widths) <= 1


def test_an_edge_that_divides_is_kept() -> None:
    blocks = over_decompose((96, 48, 32), (16, 0, 8))
    assert blocks.grid == (6, 1, 4)
    assert blocks.bounds(7) == ((16, 32), (0, 48), (8, 16))


@given(GRIDS)
def test_neighbours_name_each_other(grid: tuple[int, int, int]) -> None:
    blocks = Blocks(grid, grid)
    for number in range(blocks.count):
        assert blocks.number(blocks.place(number)) == number
        for other in blocks.neighbours(number):
            assert number in blocks.neighbours(other)
            apart = zip(blocks.place(number), blocks.place(other), strict=True)
            assert sum(abs(a - b) for a, b in apart) == 1


@given(GRIDS)
def test_across_a_border_and_back(grid: tuple[int, int, int]) -> None:
    blocks = Blocks(grid, grid)
    for number in range(blocks.count):
        for axis in range(3):
            for side in (0, 1):
                if blocks.neighbour(number, axis, side) is None:
                    other = blocks.across(number, axis, side)
                    assert blocks.across(other, axis, 1 - side) == number


@given(GRIDS, FACES, st.sampled_from(sorted(ORDERS)), st.integers(0, 9))
def test_an_order_names_each_block_once(
    grid: tuple[int, int, int], faces: list[tuple[int, int]], order: str, seed: int
) -> None:
    blocks = Blocks(grid, grid)
    found = ordered(blocks, faces, order, seed)
    assert sorted(found) == list(range(blocks.count))
    assert found == ordered(blocks, faces, order, seed)


def messages(blocks: Blocks, number: int, faces: list[tuple[int, int]]) -> int:
    return sum(blocks.neighbour(number, axis, side) is None for axis, side in faces)


def test_what_each_order_means() -> None:
    blocks, faces = Blocks((8, 8, 8), (4, 4, 4)), [(2, 0), (1, 1)]

    def met(order: str) -> list[int]:
        return [messages(blocks, n, faces) for n in ordered(blocks, faces, order, 1)]

    assert ordered(blocks, faces, "cart", 1) == list(range(64))
    assert ordered(blocks, faces, "random", 1) != ordered(blocks, faces, "random", 2)
    assert [n > 0 for n in met("comm_first")] == [True] * 28 + [False] * 36
    assert [n > 0 for n in met("comm_last")] == [False] * 36 + [True] * 28
    assert [n > 0 for n in met("comm_first_rand")] == [True] * 28 + [False] * 36
    assert met("wtdag")[:4] == [2] * 4
    depths = [blocks.depth(n, faces) for n in ordered(blocks, faces, "tdag", 1)]
    assert depths == sorted(depths)
    halves = [sum(n > 0 for n in met("interleaved")[32 * k : 32 * k + 32]) for k in (0, 1)]
    assert abs(halves[0] - halves[1]) <= 1


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(KeyError):
        ordered(Blocks((1, 1, 1), (1, 1, 1)), [], "none", 1)
