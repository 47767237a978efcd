"""LU, SP and BT without MPI: who has which points and which neighbours; fields."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.nas import bt, ft, lu, sp
from runner.programs.nas.cfd_cells import Partition, partition
from runner.programs.nas.cfd_exact import exact, start_values
from runner.programs.nas.lu_domain import domain, rank_grid
from runner.runtimes.core.kernels import load, scalars
from tests.case_table import case_table
from tests.refusals import refusal


def everyone(size: int, side: int) -> list[Partition]:
    return [partition("bt", size, side * side, rank) for rank in range(side * side)]


@given(st.integers(1, 6), st.integers(0, 20))
def test_cells_fill_the_cube_and_meet_at_their_neighbours(side: int, more: int) -> None:
    size = 3 * side + more
    ranks = everyone(size, side)
    owner = {cell.place: rank for rank, p in enumerate(ranks) for cell in p.cells}
    assert set(owner) == set(product(range(side), repeat=3))
    points = sum(np.prod(cell.points) for p in ranks for cell in p.cells)
    assert points == size**3
    for rank, own in enumerate(ranks):
        for axis in range(3):
            order = [own.cells[n].place[axis] for n in own.sweep(axis)]
            assert order == list(range(side))
            for cell in own.cells:
                after = list(cell.place)
                after[axis] = (after[axis] + 1) % side
                assert owner[after[0], after[1], after[2]] == own.successors[axis]
            assert ranks[own.successors[axis]].predecessors[axis] == rank


def test_64_ranks_have_6_partners_at_a_mean_distance_of_9_9167() -> None:
    distances = []
    for rank, own in enumerate(everyone(64, 8)):
        partners = {*own.successors, *own.predecessors}
        assert len(partners) == 6
        distances += [abs(partner - rank) for partner in partners]
    assert sum(distances) / len(distances) == pytest.approx(9.9167, abs=5e-5)


@given(st.sampled_from([1, 2, 4, 6, 8, 9, 12, 16, 20]), st.integers(15, 40))
def test_columns_of_lu_fill_the_square(ranks: int, size: int) -> None:
    taken = np.zeros((size, size), dtype=int)
    for rank in range(ranks):
        own = domain(size, ranks, rank)
        (x, y), (nx, ny) = own.start, own.points
        taken[y : y + ny, x : x + nx] += 1
        if own.south is not None:
            assert domain(size, ranks, own.south).north == rank
            assert domain(size, ranks, own.south).start == (x + nx, y)
        if own.east is not None:
            assert domain(size, ranks, own.east).west == rank
            assert domain(size, ranks, own.east).start == (x, y + ny)
        assert (own.south is None) == (x + nx == size)
        assert (own.east is None) == (y + ny == size)
    assert (taken == 1).all()


def test_rank_grids_of_lu() -> None:
    assert [rank_grid(n) for n in (1, 2, 4, 8, 6)] == [(1, 1), (2, 1), (2, 2), (4, 2), (3, 2)]


def test_ranks_that_do_not_fit(snapshot: SnapshotAssertion) -> None:
    rows: list[tuple[Any, int]] = [
        *((lu, 7), (lu, 64), (bt, 2), (sp, 8), (bt, 25), (ft, 3), (ft, 8192)),
    ]
    assert [
        refusal(
            AppUsageError, kernel.build, SimpleNamespace(size=ranks, rank=0), kernel.PROBLEMS["S"]
        )
        for kernel, ranks in rows
    ] == snapshot


def test_start_values_are_exact_on_the_faces_only() -> None:
    t = np.linspace(0.0, 1.0, 6)
    field = start_values(t, t, t)
    solution = exact(t[None, None, :], t[None, :, None], t[:, None, None])
    assert field.shape == (6, 6, 6, 5)
    inner = (slice(1, -1),) * 3
    assert not np.isclose(field[inner], solution[inner]).all()
    field[inner] = solution[inner]
    assert np.array_equal(field, solution)
    # The constant, and the sum of all coefficients.
    assert solution[0, 0, 0] == pytest.approx([2.0, 1.0, 2.0, 2.0, 5.0])
    assert solution[-1, -1, -1] == pytest.approx([15.76, 8.26, 10.32, 9.72, 15.52])


@case_table("axis", range(3))
def test_even_flow_changes_only_at_walls(axis: int) -> None:
    n = 8
    shape = (n, n, n, 5)
    field = np.broadcast_to([1.0, 0.3, -0.2, 0.5, 2.0], shape).copy()
    strides = (5, 5 * n, 5 * n * n)
    others = [a for a in range(3) if a != axis]
    numbers = np.array([3.5, 7.0, 49.0, 0.75, 0.25])
    for walls in (0, 1):
        change = np.zeros(shape)
        # Without walls two layers on both sides are ghosts.
        first, end = (1, n - 1) if walls else (2, n - 2)
        state = [
            field.size,
            *(v for a in others for v in (1, n - 1, strides[a])),
            *(first, end, strides[axis], axis + 1, *(a + 1 for a in others), walls, walls),
        ]
        load("runner.programs.nas.cfd_flux_kernels").bind(
            "add_fluxes", field, change, np.zeros(20 * (n + 1)), numbers, scalars(state)
        )()
        # One-sided fourth differences of a constant: 5 - 4 + 1 and -4 + 6 - 4 + 1.
        expected = np.zeros(shape)
        if walls:
            expected[[1, -2], 1:-1, 1:-1] = -0.25 * 2 * field[0, 0, 0]
            expected[[2, -3], 1:-1, 1:-1] = 0.25 * field[0, 0, 0]
        np.testing.assert_allclose(np.moveaxis(change, 2 - axis, 0), expected, atol=1e-12)
