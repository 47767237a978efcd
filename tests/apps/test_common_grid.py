"""Decomposition: every cell exactly once, the chosen grid the best one."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.grid import (
    checked_grid,
    choose_grid,
    coordinates,
    cut_surface,
    fits,
    grids,
    neighbour,
    parse_shape,
    rank_at,
    split,
)
from runner.programs.apps.common.layout import local_grid
from runner.programs.apps.minighost.options import parse
from runner.programs.apps.minighost.variants import layout_of
from tests.case_table import case_table
from tests.refusals import refusal, refused

shapes = st.tuples(*[st.integers(1, 5)] * 3)


@given(st.integers(1, 500), st.integers(1, 40))
def test_parts_cover_all_cells_without_overlap(cells: int, parts: int) -> None:
    ranges = [split(cells, parts, index) for index in range(parts)]
    assert [c for a, b in ranges for c in range(a, b)] == list(range(cells))
    lengths = {b - a for a, b in ranges}
    assert max(lengths) - min(lengths) <= 1


@given(shapes)
def test_ranks_and_places_are_one_to_one(grid: tuple[int, ...]) -> None:
    places = [coordinates(rank, grid) for rank in range(math.prod(grid))]
    assert len(set(places)) == len(places)
    assert [rank_at(place, grid) for place in places] == list(range(len(places)))


@given(shapes)
def test_neighbours_know_each_other(grid: tuple[int, ...]) -> None:
    for rank in range(math.prod(grid)):
        place = coordinates(rank, grid)
        for axis in range(3):
            for step in (-1, 1):
                other = neighbour(place, grid, axis, step)
                inside = 0 <= place[axis] + step < grid[axis]
                assert (other is not None) == inside
                if other is not None:
                    assert neighbour(coordinates(other, grid), grid, axis, -step) == rank


@given(st.integers(1, 64), st.integers(1, 3))
def test_grids_are_all_factorisations(ranks: int, axes: int) -> None:
    found = list(grids(ranks, axes))
    assert len(set(found)) == len(found)
    assert all(math.prod(g) == ranks and len(g) == axes for g in found)
    if axes == 2:
        assert len(found) == sum(ranks % d == 0 for d in range(1, ranks + 1))


@given(st.tuples(*[st.integers(2, 60)] * 3), st.integers(1, 16))
def test_chosen_grid_has_least_surface(size: tuple[int, ...], ranks: int) -> None:
    possible = [g for g in grids(ranks, 3) if fits(size, g, 2)]
    if not possible:
        with refused(AppUsageError, "app_option.ranks"):
            choose_grid(size, ranks, 2)
        return
    chosen = choose_grid(size, ranks, 2)
    assert chosen in possible
    assert all(cut_surface(size, chosen) <= cut_surface(size, g) for g in possible)


@case_table(
    ("size", "ranks", "grid"),
    [
        ((64, 64, 64), 2, (1, 1, 2)),  # the contiguous axis last to be cut
        ((64, 64, 64), 4, (1, 2, 2)),
        ((64, 64, 64), 8, (2, 2, 2)),
        ((200, 16, 16), 4, (4, 1, 1)),
        ((7, 40, 3), 4, (1, 4, 1)),
    ],
)
def test_known_grids(size: tuple[int, ...], ranks: int, grid: tuple[int, ...]) -> None:
    assert choose_grid(size, ranks, 2) == grid


def test_impossible_grids_are_refused(snapshot: SnapshotAssertion) -> None:
    grids = [(2, 2, 1), (3, 1, 1)]
    found = {g: refusal(AppUsageError, checked_grid, (5, 8, 8), 3, 2, g) for g in grids}
    assert found == snapshot


@case_table("text", ["2x2", "2x2x2x2", "0x1x1", "axbxc", "", "2x-1x1", "2x 2x1", "²x1x1"])
def test_malformed_grids_are_refused(text: str) -> None:
    with pytest.raises(AppUsageError, match="--grid"):
        parse_shape(text, "--grid", 3)


def test_faces_between_processes_stay_below_a_limit() -> None:
    size, outer = (64, 32, 32), (1, 1, 2)
    assert local_grid(size, outer, 8, 1) == (1, 4, 2)
    assert local_grid(size, outer, 8, 1, 64 * 32) == (1, 4, 2)
    assert local_grid(size, outer, 8, 1, 64 * 32 // 8) == (1, 8, 1)
    assert local_grid(size, outer, 8, 1, 1) == (1, 8, 1)


def test_a_published_layout_counts_where_the_command_line_says_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MATE_FACTOR", "8")
    monkeypatch.setenv("MATE_CHUNK", "4096")
    monkeypatch.setenv("TPOD_FACTOR", "4")
    variant = ["--size", "32x32x64", "--variant"]
    assert parse([*variant, "mate"]).config.ranks_per_process == 8
    assert parse([*variant, "mate", "--ranks-per-process", "2"]).config.ranks_per_process == 2
    assert parse([*variant, "mpi"]).config.ranks_per_process == 1
    assert parse([*variant, "tarragon"]).config.ranks_per_process == 1
    assert parse([*variant, "tpod"]).tpod.parts == 4
    assert parse([*variant, "tpod", "--block-edge", "0"]).tpod.parts == 0
    two: Any = SimpleNamespace(rank=0, size=2)
    # A face has 32 x 32 cells of 8 bytes: half of it is 4 KiB, which is not below the chunk.
    assert layout_of(two, parse([*variant, "mate"])).local == (1, 4, 2)
    monkeypatch.delenv("MATE_CHUNK")
    assert layout_of(two, parse([*variant, "mate"])).local == (1, 2, 4)
    monkeypatch.setenv("MATE_FACTOR", "many")
    with refused(AppUsageError, "layout.variable"):
        parse([*variant, "mate"])
