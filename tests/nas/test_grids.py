"""Who has what and who talks to whom, without MPI: every rank's view must fit the others'."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.nas.cg_grid import block
from runner.programs.nas.common.grid import log2_ranks, square_side, two_factors
from runner.programs.nas.common.kernel import Check
from runner.programs.nas.mg_grid import levels, origin, place_of, process_grid
from tests.case_table import case_table
from tests.refusals import refused

logs = st.integers(0, 7)


@given(st.integers(1, 5000))
def test_only_powers_of_two_and_squares(ranks: int) -> None:
    if ranks in {1 << n for n in range(13)}:
        assert 1 << log2_ranks("x", ranks) == ranks
    else:
        with refused(AppUsageError, "app_option.ranks"):
            log2_ranks("x", ranks)
    if ranks in {n * n for n in range(71)}:
        assert square_side("x", ranks) ** 2 == ranks
    else:
        with refused(AppUsageError, "app_option.ranks"):
            square_side("x", ranks)


@given(st.integers(0, 20))
def test_two_factors(log2: int) -> None:
    large, small = two_factors(log2)
    assert large * small == 1 << log2
    assert large in (small, 2 * small)


@given(st.integers(64, 400), logs)
@settings(max_examples=40)
def test_cg_blocks_tile_the_matrix(order: int, log2: int) -> None:
    area = 0
    starts = set()
    for rank in range(1 << log2):
        here = block(order, log2, rank)
        area += (here.rows[1] - here.rows[0]) * (here.columns[1] - here.columns[0])
        starts.add((here.rows[0], here.columns[0]))
        assert 0 <= here.rows[0] < here.rows[1] <= order
        assert 0 <= here.columns[0] < here.columns[1] <= order
    assert area == order * order
    assert len(starts) == 1 << log2


@given(st.integers(64, 400), logs)
@settings(max_examples=40)
def test_cg_messages_fit_their_receivers(order: int, log2: int) -> None:
    blocks = [block(order, log2, rank) for rank in range(1 << log2)]
    for rank, here in enumerate(blocks):
        for n, step in enumerate(here.steps):
            there = blocks[step.partner].steps[n]
            assert there.partner == rank
            assert there.send == step.receive
            assert blocks[step.partner].rows == here.rows
        assert [blocks[p].partners[n] for n, p in enumerate(here.partners)] == [rank] * len(
            here.partners
        )
        other = blocks[here.transpose]
        assert other.transpose == rank
        if here.steps:
            piece = tuple(here.rows[0] + n for n in here.piece)
            assert piece == other.columns


@given(st.integers(5, 6), logs)
@settings(max_examples=20)
def test_mg_levels_fit_together(log2_points: int, log2: int) -> None:
    everyone = [levels(log2_points, log2, rank) for rank in range(1 << log2)]
    for n in range(log2_points):
        here = [ranks[n] for ranks in everyone]
        points = sum(math.prod(size - 2 for size in level.size) for level in here)
        assert points == (2 << n) ** 3
        for rank, level in enumerate(here):
            for axis in range(3):
                low, high = level.neighbours[axis]
                if not level.dead:
                    assert here[low].neighbours[axis][1] == rank
                    assert here[high].neighbours[axis][0] == rank
                if level.takes[axis]:
                    assert here[low].gives[axis]
                    assert here[high].gives[axis]
                    assert not level.gives[axis]


def test_mg_on_64_ranks_has_six_partners_10_5_ranks_away() -> None:
    """A 4 x 4 x 4 torus: distances 1.5, 6 and 24 along its axes."""
    distances = []
    for rank in range(64):
        finest = levels(8, 6, rank)[-1]
        partners = {peer for pair in finest.neighbours for peer in pair}
        assert len(partners) == 6
        distances += [abs(peer - rank) for peer in partners]
    assert sum(distances) / len(distances) == 10.5


@given(logs)
def test_mg_ranks_are_numbered_with_x_first(log2: int) -> None:
    grid = process_grid(log2)
    assert math.prod(grid) == 1 << log2
    assert grid[0] <= grid[1] <= grid[2]
    for rank in range(1 << log2):
        x, y, z = place_of(rank, grid)
        assert x + grid[0] * (y + grid[1] * z) == rank
        assert origin(256, grid, (x, y, z)) == tuple(
            c * 256 // p for c, p in zip((x, y, z), grid, strict=True)
        )


@case_table(
    ("value", "expected", "right"),
    [
        (1.0, 1.0, True),
        (1.0 + 1e-9, 1.0, True),
        (1.0 + 1e-7, 1.0, False),
        (-1.0, 1.0, False),
        (math.nan, 1.0, False),
        (math.inf, 1.0, False),
    ],
)
def test_a_check(value: float, expected: float, right: bool) -> None:
    assert Check("Norm", value, expected, 1e-8).right is right
