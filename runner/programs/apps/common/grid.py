"""Divides a box of cells into one block per rank.

Sizes, grids and coordinates are tuples with one entry per axis; the contiguous axis x is first.
Ranks are numbered with x running fastest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from runner.programs.apps.common.errors import AppUsageError

Shape = tuple[int, ...]


def parse_shape(text: str, option: str, axes: int) -> Shape:
    """``4x2x1`` as (4, 2, 1); raises :class:`AppUsageError` that names the option."""
    parts = text.lower().split("x")
    if len(parts) != axes or not all(p.isascii() and p.isdigit() and int(p) > 0 for p in parts):
        form = "x".join("XYZ"[:axes])
        raise AppUsageError(
            f"{option} {text}: expected {axes} whole numbers above 0 as {form}, "
            f"for example {'x'.join(['2'] * axes)}",
            code="app_option.invalid",
        )
    return tuple(int(p) for p in parts)


def parse_size(text: str) -> Shape:
    """``--size 8x7x6`` as (8, 7, 6), and ``8`` as (8, 8, 8); raises :class:`AppUsageError`."""
    return parse_shape(text if "x" in text.lower() else f"{text}x{text}x{text}", "--size", 3)


def show_shape(shape: Shape) -> str:
    """(4, 2, 1) as ``4x2x1``."""
    return "x".join(str(n) for n in shape)


def split(cells: int, parts: int, index: int) -> tuple[int, int]:
    """First cell and end of part ``index``; the first ``cells % parts`` parts have one more."""
    small, larger = divmod(cells, parts)
    start = index * small + min(index, larger)
    return start, start + small + (index < larger)


def grids(ranks: int, axes: int) -> Iterator[Shape]:
    """Every way to write ``ranks`` as an ordered product of ``axes`` factors."""
    if axes == 1:
        yield (ranks,)
        return
    for first in range(1, ranks + 1):
        if ranks % first == 0:
            for rest in grids(ranks // first, axes - 1):
                yield (first, *rest)


def cut_surface(size: Shape, grid: Shape) -> int:
    """Cells on all inner cutting planes; a halo exchange moves this number times a factor."""
    volume = math.prod(size)
    return sum(volume // n * (p - 1) for n, p in zip(size, grid, strict=True))


def fits(size: Shape, grid: Shape, least: int) -> bool:
    """True if every part of a cut axis has at least ``least`` cells (uncut axes always fit)."""
    return all(p == 1 or n // p >= least for n, p in zip(size, grid, strict=True))


def choose_grid(size: Shape, ranks: int, least: int) -> Shape:
    """The process grid with the smallest cut surface.

    Of equal grids, the one that divides later axes is used: x is contiguous in memory, and dividing
    it gives short rows and strided faces. Raises :class:`AppUsageError` if no grid fits.
    """
    possible = [g for g in grids(ranks, len(size)) if fits(size, g, least)]
    if not possible:
        raise AppUsageError(
            f"{ranks} ranks are too many for {show_shape(size)} cells: every part of a cut axis "
            f"needs at least {least} cells; use fewer ranks or a larger size",
            code="app_option.ranks",
        )
    return min(possible, key=lambda grid: (cut_surface(size, grid), grid))


def checked_grid(size: Shape, ranks: int, least: int, request: Shape | None) -> Shape:
    """``request`` if it fits the ranks and the size; the chosen grid if ``request`` is None.

    Raises :class:`AppUsageError`.
    """
    if request is None:
        return choose_grid(size, ranks, least)
    parts = math.prod(request)
    if parts != ranks:
        raise AppUsageError(
            f"--grid {show_shape(request)} has {parts} parts, but the program runs on {ranks} "
            f"rank{'s' * (ranks != 1)}: start it with -n {parts}, or leave --grid out",
            code="app_option.ranks",
        )
    if not fits(size, request, least):
        raise AppUsageError(
            f"--grid {show_shape(request)} cuts {show_shape(size)} cells too finely: every part of "
            f"a cut axis needs at least {least} cells",
            code="app_option.not_applicable",
        )
    return request


def coordinates(rank: int, grid: Shape) -> Shape:
    """Place of a rank in the grid."""
    place = []
    for parts in grid:
        rank, position = divmod(rank, parts)
        place.append(position)
    return tuple(place)


def rank_at(place: Shape, grid: Shape) -> int:
    """Inverse of :func:`coordinates`; ``place`` must be inside the grid."""
    rank = 0
    for position, parts in zip(reversed(place), reversed(grid), strict=True):
        rank = rank * parts + position
    return rank


def neighbour(place: Shape, grid: Shape, axis: int, step: int) -> int | None:
    """Rank of the next block along an axis (``step`` -1 or +1); None at the edge of the grid."""
    position = place[axis] + step
    if not 0 <= position < grid[axis]:
        return None
    return rank_at((*place[:axis], position, *place[axis + 1 :]), grid)
