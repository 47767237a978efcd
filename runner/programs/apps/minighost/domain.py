"""One process's part of the grid: two fields with ghost cells, and the operations on its boxes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from runner.programs.apps.common.box import Box, bounds_of, box_of, face_of
from runner.programs.apps.common.faces import Copies, Faces, Field
from runner.programs.apps.common.grid import Shape
from runner.programs.apps.minighost.problem import DEPTH, initial_field
from runner.runtimes.core.kernels import load, scalars

Tables = tuple[NDArray[np.uint64], NDArray[np.uint64], Field]
"""``geometry``, ``walls`` and ``lost`` of a box, in the form for :mod:`.stencil`."""


_CELLS = 1 << 18
"""Number of cells whose start values are computed at once."""


class Domain:
    """Cells ``start`` to ``stop`` (x, y, z; stop excluded) of a grid of ``size`` cells.

    ``fields`` are two arrays [variable][z][y][x] of doubles with :data:`DEPTH` ghost cells on every
    side; ``fields[current]`` holds the newest values. Ghosts outside the grid are zero and stay so:
    that is the boundary condition.

    A box (:data:`runner.programs.apps.common.box.Box`) is the whole domain or any block of it, in
    indices of a variable's array; ``variables`` are consecutive numbers of variables. ``make``
    creates the fields: an array of doubles of a shape. Raises :class:`runner.errors.RunnerError` if
    there are no kernels.
    """

    def __init__(
        self,
        size: Shape,
        start: Shape,
        stop: Shape,
        variables: int,
        make: Callable[[tuple[int, ...]], Field] = np.empty,
    ) -> None:
        self.size, self.start, self.stop, self.variables = size, start, stop, variables
        self.cells = tuple(b - a for a, b in zip(start, stop, strict=True))
        self._kernels = load("runner.programs.apps.minighost.kernels")
        shape = (variables, *(n + 2 * DEPTH for n in reversed(self.cells)))
        # Written, not only reserved, so that the timed part touches no page for the first time.
        self.fields = (make(shape), make(shape))
        for field in self.fields:
            field.fill(0.0)
        self.current = 0
        self._losses: list[tuple[range, Field]] = []

    @property
    def whole(self) -> Box:
        """All cells of the domain without the ghosts."""
        return self.box_of(self.start, self.stop)

    def box_of(self, start: Shape, stop: Shape) -> Box:
        """Cells of the grid (x, y, z; stop excluded) as a box of the domain."""
        return box_of(start, stop, self.start, DEPTH)

    @property
    def stack(self) -> tuple[Field, Field]:
        """The fields as arrays [plane][y][x]: the variables follow each other along z."""
        _, _, rows, row = self.fields[0].shape
        a, b = self.fields
        return a.reshape(-1, rows, row), b.reshape(-1, rows, row)

    def planes_of(self, variables: range) -> list[int]:
        """The first plane of each of these variables in :attr:`stack`."""
        return [variable * self.fields[0].shape[1] for variable in variables]

    @property
    def interior(self) -> Field:
        """The newest values without the ghosts, a view [variable][z][y][x]."""
        z0, z1, y0, y1, x0, x1 = self.whole
        return self.fields[self.current][:, z0:z1, y0:y1, x0:x1]

    def reset(self) -> None:
        """Set the start values, and let no heat be lost; ghosts are zero until an exchange."""
        for field in self.fields:
            field.fill(0.0)
        self.current = 0
        many = max(1, _CELLS // math.prod(self.cells))
        for first in range(0, self.variables, many):
            group = range(first, min(first + many, self.variables))
            values = initial_field(self.size, self.start, self.stop, group)
            self.interior[group.start : group.stop] = values
        for _, heat in self._losses:
            heat.fill(0.0)

    def advance(self, box: Box, variables: range) -> Copies:
        """A step of a box: from field 0 to 1, and from field 1 to 0.

        The ghosts that the box reads must be new. Calls of different boxes or variables may run at
        the same time.
        """
        return self.calls(*self.tables(box, variables))

    def calls(
        self, geometry: NDArray[np.uint64], table: NDArray[np.uint64], losses: Field
    ) -> Copies:
        """Like :meth:`advance`, with the tables of a box."""
        a, b = self.fields
        return (
            self._kernels.bind("advance", a, b, geometry, table, losses),
            self._kernels.bind("advance", b, a, geometry, table, losses),
        )

    def tables(self, box: Box, variables: range) -> Tables:
        """The tables of a box for the kernels.

        From now on :meth:`lost_heat` includes ``losses``.
        """
        _, planes, rows, row = self.fields[0].shape
        length, total = row * rows * planes, self.fields[0].size
        geometry = scalars(
            [row, row * rows, length, variables.start, variables.stop, total, *box],
        )
        walls = self.walls(box)
        table = scalars([len(walls), *(bound for wall in walls for bound in wall)])
        losses = np.zeros(len(variables))
        self._losses.append((variables, losses))
        return geometry, table, losses

    def walls(self, box: Box) -> list[Box]:
        """The layers of cells of a box beside the boundary of the grid."""
        layers = []
        for axis, (low, high) in enumerate(bounds_of(box)):
            origin = self.start[axis] - DEPTH
            if origin + low == 0:
                layers.append(face_of(box, axis, 0, False, DEPTH))
            if origin + high == self.size[axis]:
                layers.append(face_of(box, axis, 1, False, DEPTH))
        return layers

    def faces(
        self, box: Box, remote: Sequence[tuple[int, int, int]], variables: range, tag: int = 0
    ) -> Faces:
        """The messages of a box over ``remote`` faces (axis, side, other rank).

        A message holds its face of each variable, variable after variable. Tags are ``tag`` to
        ``tag + 5``.
        """
        return Faces(self.stack, box, remote, DEPTH, planes=self.planes_of(variables), tag=tag)

    def heat(self) -> list[float]:
        """The sum of the newest values of each variable."""
        return [math.fsum(rows.ravel().tolist()) for rows in self.interior.sum(axis=-1)]

    def lost_heat(self) -> list[float]:
        """The heat of each variable that has left through the grid's boundary since the reset."""
        parts: list[list[float]] = [[] for _ in range(self.variables)]
        for variables, losses in self._losses:
            for variable, heat in zip(variables, losses.tolist(), strict=True):
                parts[variable].append(heat)
        return [math.fsum(heats) for heats in parts]


def serial_domain(size: Shape, steps: int, variables: int) -> Domain:
    """The whole grid in one domain after ``steps``; all variants must give its bits."""
    domain = Domain(size, (0, 0, 0), size, variables)
    domain.reset()
    calls = domain.advance(domain.whole, range(variables))
    for _ in range(steps):
        calls[domain.current]()
        domain.current = 1 - domain.current
    return domain
