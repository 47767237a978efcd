"""The columns of LU's grid and the messages between them (NPB 3.4-MPI).

The original's routines are ``proc_grid``, ``neighbors``, ``exchange_1`` and ``exchange_3``. x is
divided from north to south, y from west to east; z is not divided. Ranks are numbered along x
first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.grid import split
from runner.programs.nas.common.kernel import Stopwatch

GHOSTS = 2
SMALLEST = 3
"""Smallest number of points of a rank along x and y."""
FROM_SOUTH, FROM_NORTH, FROM_EAST, FROM_WEST = 1, 2, 3, 4
Field = NDArray[np.float64]


def rank_grid(ranks: int) -> tuple[int, int]:
    """Ranks along x and y: the two factors that differ least, the larger one first.

    Raises :class:`AppUsageError` if one is more than twice the other, as for a prime number.
    """
    along_y = next(n for n in range(math.isqrt(ranks), 0, -1) if ranks % n == 0)
    if ranks > 2 * along_y * along_y:
        low = 1 << (ranks.bit_length() - 1)
        raise AppUsageError(
            f"nas lu runs on ranks that form a rectangle whose sides differ by at most a factor "
            f"of 2, not on {ranks}: start it with -n {low} or -n {2 * low}",
            code="app_option.ranks",
        )
    return ranks // along_y, along_y


@dataclass(frozen=True)
class Domain:
    """The column of one rank.

    ``start`` and ``points`` are its own points along x and y. ``north`` etc. are ranks, or None at
    the end of the cube. Fields are [z][y][x][5] with ghosts along x and y.
    """

    size: int
    start: tuple[int, int]
    points: tuple[int, int]
    north: int | None
    south: int | None
    west: int | None
    east: int | None

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return self.size, self.points[1] + 2 * GHOSTS, self.points[0] + 2 * GHOSTS, 5

    @property
    def inner_x(self) -> tuple[int, int]:
        """First and end index, in a field, of points that are not on the cube's faces."""
        nx = self.points[0]
        return GHOSTS + (self.north is None), GHOSTS + nx - (self.south is None)

    @property
    def inner_y(self) -> tuple[int, int]:
        ny = self.points[1]
        return GHOSTS + (self.west is None), GHOSTS + ny - (self.east is None)

    def coordinates(self) -> tuple[Field, Field, Field]:
        """Coordinates of all points of a field, ghosts included: x, y and z from 0 to 1."""
        steps = self.size - 1
        x = np.arange(-GHOSTS, self.points[0] + GHOSTS) + self.start[0]
        y = np.arange(-GHOSTS, self.points[1] + GHOSTS) + self.start[1]
        return x / steps, y / steps, np.arange(self.size) / steps


def domain(size: int, ranks: int, rank: int) -> Domain:
    """The column; raises :class:`AppUsageError` if ranks form no grid or a column is too thin."""
    xdim, ydim = rank_grid(ranks)
    if size // xdim < SMALLEST:
        raise AppUsageError(
            f"nas lu on {ranks} ranks cuts {size} points into {xdim} parts of less than "
            f"{SMALLEST}: use fewer ranks or a larger class",
            code="app_option.ranks",
        )
    column, row = divmod(rank, xdim)
    x, y = split(size, xdim, row), split(size, ydim, column)
    return Domain(
        size,
        (x[0], y[0]),
        (x[1] - x[0], y[1] - y[0]),
        north=rank - 1 if row > 0 else None,
        south=rank + 1 if row < xdim - 1 else None,
        west=rank - xdim if column > 0 else None,
        east=rank + xdim if column < ydim - 1 else None,
    )


class Messages:
    """All messages of one rank; tags name the side they come from."""

    def __init__(self, comm: Any, domain: Domain, mpi: Stopwatch) -> None:
        self._comm, self._domain, self._mpi = comm, domain, mpi
        nz, ey, ex, _ = domain.shape
        # A buffer per kind of message: a layer of a plane, or two of a side of the column.
        self._line = np.zeros((domain.points[1], 5))
        self._x_out, self._x_in = np.zeros((2, nz, ey - 4, 5)), np.zeros((2, nz, ey - 4, 5))
        self._y_out, self._y_in = np.zeros((2, nz, ex - 4, 5)), np.zeros((2, nz, ex - 4, 5))
        self._rows = slice(*domain.inner_y)
        self._columns = slice(*domain.inner_x)

    def before_lower(self, field: Field, plane: int) -> None:
        """Receive the layers that the lower sweep needs in a plane."""
        self._receive_line(field[plane], self._domain.north, 1, GHOSTS - 1, FROM_NORTH)
        self._receive_line(field[plane], self._domain.west, 0, GHOSTS - 1, FROM_WEST)

    def after_lower(self, field: Field, plane: int) -> None:
        self._send_line(field[plane], self._domain.south, 1, -GHOSTS - 1, FROM_NORTH)
        self._send_line(field[plane], self._domain.east, 0, -GHOSTS - 1, FROM_WEST)

    def before_upper(self, field: Field, plane: int) -> None:
        self._receive_line(field[plane], self._domain.south, 1, -GHOSTS, FROM_SOUTH)
        self._receive_line(field[plane], self._domain.east, 0, -GHOSTS, FROM_EAST)

    def after_upper(self, field: Field, plane: int) -> None:
        self._send_line(field[plane], self._domain.north, 1, GHOSTS, FROM_SOUTH)
        self._send_line(field[plane], self._domain.west, 0, GHOSTS, FROM_EAST)

    def _receive_line(
        self, plane: Field, rank: int | None, axis: int, index: int, tag: int
    ) -> None:
        if rank is None:
            return
        if axis == 0:
            with self._mpi:
                self._comm.Recv(plane[index, self._columns], rank, tag)
        else:
            buffer = self._line[: self._rows.stop - self._rows.start]
            with self._mpi:
                self._comm.Recv(buffer, rank, tag)
            plane[self._rows, index] = buffer

    def _send_line(self, plane: Field, rank: int | None, axis: int, index: int, tag: int) -> None:
        if rank is None:
            return
        if axis == 0:
            buffer = plane[index, self._columns]
        else:
            buffer = self._line[: self._rows.stop - self._rows.start]
            buffer[...] = plane[self._rows, index]
        with self._mpi:
            self._comm.Send(buffer, rank, tag)

    def exchange_x(self, field: Field) -> None:
        """Exchange two layers of ghosts along x: first southwards, then northwards."""
        inner = field.transpose(2, 0, 1, 3)[:, :, GHOSTS:-GHOSTS]
        north, south = self._domain.north, self._domain.south
        buffers = self._x_out, self._x_in
        self._move(inner[-4:-2], inner[:2], buffers, south, north, FROM_NORTH)
        self._move(inner[2:4], inner[-2:], buffers, north, south, FROM_SOUTH)

    def exchange_y(self, field: Field) -> None:
        """Exchange two layers of ghosts along y: first eastwards, then westwards."""
        inner = field.transpose(1, 0, 2, 3)[:, :, GHOSTS:-GHOSTS]
        west, east = self._domain.west, self._domain.east
        buffers = self._y_out, self._y_in
        self._move(inner[-4:-2], inner[:2], buffers, east, west, FROM_WEST)
        self._move(inner[2:4], inner[-2:], buffers, west, east, FROM_EAST)

    def _move(
        self, own: Field, ghosts: Field, buffers: tuple[Field, Field],
        to: int | None, source: int | None, tag: int,
    ) -> None:  # fmt: skip
        """Send own layers in one direction and fill the ghosts on the other side."""
        outgoing, incoming = buffers
        if source is not None:
            with self._mpi:
                request = self._comm.Irecv(incoming, source, tag)
        if to is not None:
            outgoing[...] = own
            with self._mpi:
                self._comm.Send(outgoing, to, tag)
        if source is not None:
            with self._mpi:
                request.Wait()
            ghosts[...] = incoming
