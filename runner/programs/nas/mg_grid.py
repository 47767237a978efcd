"""The levels of MG on one rank (NPB 3.4-MPI, ``setup``): sizes and neighbours.

If a level is too coarse for all ranks, only some of them have points on it. Axes are x, y, z; x is
contiguous in memory, and its ranks are numbered first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

Triple = tuple[int, int, int]


@dataclass(frozen=True)
class Level:
    """One level on one rank.

    ``size`` counts its points per axis with one ghost at either end (2: no own points).
    ``neighbours[axis]`` = ranks below and above, periodic. A ``dead`` rank has no points on this
    level. ``takes[axis]``: the rank has points here but none on the next coarser level, so it
    receives the interpolated points; ``gives[axis]``: it sends them.
    """

    size: Triple
    neighbours: tuple[tuple[int, int], ...]
    dead: bool
    takes: tuple[bool, ...]
    gives: tuple[bool, ...]


def process_grid(log2: int) -> Triple:
    """2^log2 ranks as a grid along x, y, z; the last axis gets most."""
    x = log2 // 3
    y = (log2 - x) // 2
    return 1 << x, 1 << y, 1 << (log2 - x - y)


def place_of(rank: int, grid: Triple) -> Triple:
    """Coordinates of a rank in the process grid."""
    return rank % grid[0], rank // grid[0] % grid[1], rank // (grid[0] * grid[1])


def origin(points: int, grid: Triple, place: Triple) -> Triple:
    """First own point of a rank on the finest level of ``points`` points per axis."""
    x, y, z = (c * points // p for c, p in zip(place, grid, strict=True))
    return x, y, z


class _Axis(NamedTuple):
    """One axis of a level.

    It has the points with ghosts, the coordinates of the neighbours, and flags if the rank takes or
    gives.
    """

    size: int
    low: int
    high: int
    takes: bool = False
    gives: bool = False


def levels(log2_points: int, log2_ranks: int, rank: int) -> list[Level]:
    """The levels from the coarsest (2 points per axis) to the finest (2^log2_points)."""
    grid = process_grid(log2_ranks)
    place = place_of(rank, grid)
    axes = [_axis(log2_points, p, c) for p, c in zip(grid, place, strict=True)]
    return [_level((x, y, z), place, grid) for x, y, z in zip(*axes, strict=True)]


def _level(axes: tuple[_Axis, _Axis, _Axis], place: Triple, grid: Triple) -> Level:
    return Level(
        size=(axes[0].size, axes[1].size, axes[2].size),
        neighbours=tuple(
            (_rank_along(place, grid, n, axis.low), _rank_along(place, grid, n, axis.high))
            for n, axis in enumerate(axes)
        ),
        dead=any(axis.size == 2 for axis in axes),
        takes=tuple(axis.takes for axis in axes),
        gives=tuple(axis.gives for axis in axes),
    )


def _axis(log2_points: int, parts: int, place: int) -> list[_Axis]:
    """One axis of all levels, the coarsest first.

    The step to the next neighbour with points doubles whenever there are fewer points than ranks.
    Each level decides which ranks take and give on the next finer one.
    """
    step = 1
    levels: list[_Axis] = []
    for log2 in range(log2_points, 0, -1):
        mine = _points(place, parts, 1 << log2)
        next_one = _points(place + step, parts, 1 << log2)
        if 0 in (mine, next_one):
            step *= 2
        if levels:
            levels[-1] = levels[-1]._replace(
                takes=mine == 0 and next_one == 1, gives=mine == 1 and next_one == 0
            )
        levels.append(_Axis(mine + 2, (place - step) % parts, (place + step) % parts))
    return levels[::-1]


def _points(place: int, parts: int, points: int) -> int:
    return (place + 1) * points // parts - place * points // parts


def _rank_along(place: Triple, grid: Triple, axis: int, coordinate: int) -> int:
    """The rank with another coordinate on one axis."""
    x, y, z = (coordinate if n == axis else c for n, c in enumerate(place))
    return x + grid[0] * (y + grid[1] * z)
