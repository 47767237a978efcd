"""The ghost points of MG: faces are exchanged axis by axis, so edges and corners are included."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.programs.nas.common.kernel import Stopwatch
from runner.programs.nas.mg_grid import Level

Grid = NDArray[np.float64]
LOW, HIGH = 0, 1


def _tag(axis: int, direction: int) -> int:
    """The tag of a message: its axis and its direction."""
    return 100 * (2 * direction + 1 + 10 * (axis + 1))


def _face(grid: Grid, axis: int, index: int) -> Grid:
    """The points of a face, without the ghosts of the axes that are exchanged later."""
    inner = slice(1, -1)
    return (grid[inner, inner, index], grid[inner, index, :], grid[index, :, :])[axis]


def _slab(grid: Grid, axis: int, part: slice) -> Grid:
    """Whole layers of points, with the ghosts of the other axes."""
    return (grid[:, :, part], grid[:, part, :], grid[part, :, :])[axis]


class Halo:
    """The exchange of one grid on one level; views and buffers are made once."""

    def __init__(self, comm: Any, grid: Grid, level: Level, mpi: Stopwatch) -> None:
        self._comm, self._grid, self._level, self._mpi = comm, grid, level, mpi
        # For each axis and direction of travel: the part to send, and the ghosts to fill.
        self._own = [(_face(grid, a, 1), _face(grid, a, -2)) for a in range(3)]
        self._ghosts = [(_face(grid, a, -1), _face(grid, a, 0)) for a in range(3)]
        self._outgoing = [[np.zeros(f.shape) for f in faces] for faces in self._own]
        self._incoming = [[np.zeros(f.shape) for f in faces] for faces in self._ghosts]

    def exchange(self) -> None:
        """Fill all ghosts; a rank without points on this level sets its grid to zero instead."""
        if self._level.dead:
            self._grid.fill(0.0)
        elif self._comm.size == 1:
            for (low, high), (above, below) in zip(self._own, self._ghosts, strict=True):
                above[...] = low
                below[...] = high
        else:
            for axis in range(3):
                self._exchange_axis(axis)

    def _exchange_axis(self, axis: int) -> None:
        comm, neighbours, mpi = self._comm, self._level.neighbours[axis], self._mpi
        outgoing, incoming = self._outgoing[axis], self._incoming[axis]
        with mpi:
            requests = [
                comm.Irecv(incoming[direction], neighbours[1 - direction], _tag(axis, direction))
                for direction in (LOW, HIGH)
            ]
        for direction in (HIGH, LOW):
            outgoing[direction][...] = self._own[axis][direction]
            with mpi:
                comm.Send(outgoing[direction], neighbours[direction], _tag(axis, direction))
        for direction in (LOW, HIGH):
            with mpi:
                requests[direction].Wait()
            self._ghosts[axis][direction][...] = incoming[direction]

    def spread(self) -> None:
        """Pass on interpolated points: ranks without coarse points get fine ones from others.

        They get a layer from above and two from below.
        """
        for axis in range(3):
            if self._level.takes[axis]:
                self._take(axis)
            if self._level.gives[axis]:
                self._give(axis)

    def _taken_layers(self, axis: int) -> tuple[Grid, Grid]:
        return (
            _slab(self._grid, axis, slice(-1, None)),
            _slab(self._grid, axis, slice(0, 2)),
        )

    def _given_layers(self, axis: int) -> tuple[Grid, Grid]:
        return (
            _slab(self._grid, axis, slice(1, 2)),
            _slab(self._grid, axis, slice(-2, None)),
        )

    def _take(self, axis: int) -> None:
        targets = self._taken_layers(axis)
        buffers = [np.zeros(target.shape) for target in targets]
        neighbours = self._level.neighbours[axis]
        with self._mpi:
            requests = [
                self._comm.Irecv(buffers[d], neighbours[1 - d], _tag(axis, d)) for d in (LOW, HIGH)
            ]
            for request in requests:
                request.Wait()
        for target, buffer in zip(targets, buffers, strict=True):
            target[...] = buffer

    def _give(self, axis: int) -> None:
        sources = self._given_layers(axis)
        neighbours = self._level.neighbours[axis]
        for direction in (HIGH, LOW):
            buffer = np.ascontiguousarray(sources[direction])
            with self._mpi:
                self._comm.Send(buffer, neighbours[direction], _tag(axis, direction))
