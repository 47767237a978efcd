"""One rank's cells: 14 fields with ghosts, the kernels bound to them, and their halo."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from runner.apps.cloverleaf3d.problem import (
    COUNT,
    DEPTH,
    DT_DX,
    FLUXES,
    GAMMA,
    NUMBER,
    STATE,
    numbers,
    reflection,
    start_values,
)
from runner.apps.common_grid import Shape
from runner.native.kernels import load, scalars

Fields = NDArray[np.float64]
PHASES: tuple[tuple[tuple[str, ...], tuple[int, ...]], ...] = (
    (
        ("ideal_gas",),
        numbers("density", "energy", "pressure", "velocity_x", "velocity_y", "velocity_z"),
    ),
    (("viscosity",), numbers("viscosity")),
    (("accelerate", "take_room"), STATE),
    (("fluxes",), FLUXES),
    (("advect", "take_room"), numbers("density", "energy")),
)
"""The kernels of one step with the fields whose halo is exchanged after each of them."""


class Block:
    """Cells ``start`` to ``stop`` (x, y, z; stop excluded) of a grid of ``size`` cells."""

    def __init__(self, size: Shape, start: Shape, stop: Shape) -> None:
        self.size, self.start, self.stop = size, start, stop
        self.cells = tuple(b - a for a, b in zip(start, stop, strict=True))
        shape = tuple(n + 2 * DEPTH for n in reversed(self.cells))
        self.fields: Fields = np.zeros((COUNT, *shape))
        self._room = np.zeros((5, *shape))
        _, rows, row = shape
        geometry = scalars([row, row * rows, int(np.prod(shape)), *self.cells])
        factors = np.array([GAMMA, DT_DX])
        kernels = load("runner.apps.cloverleaf3d.kernels")
        self._calls: dict[str, Callable[[], None]] = {
            name: kernels.bind(name, self.fields, self._room, geometry, factors)
            for name in ("ideal_gas", "viscosity", "accelerate", "fluxes", "advect", "take_room")
        }
        self.reset()

    def reset(self) -> None:
        """Set the start values, also in the ghosts."""
        self.fields[...] = start_values(self.size, self.start, self.stop)

    def run(self, kernels: Sequence[str]) -> None:
        """Run some kernels one after the other."""
        for name in kernels:
            self._calls[name]()

    @property
    def interior(self) -> Fields:
        """The state without the ghosts: [5][z][y][x]."""
        inner = slice(DEPTH, -DEPTH)
        return self.fields[list(STATE)][:, inner, inner, inner]

    def mass(self) -> float:
        """The sum of the density."""
        inner = slice(DEPTH, -DEPTH)
        return float(np.sum(self.fields[NUMBER["density"], inner, inner, inner]))

    def energy(self) -> float:
        """Internal and kinetic energy of all cells."""
        density, energy, u, v, w = self.interior
        return float(np.sum(density * (energy + 0.5 * (u * u + v * v + w * w))))

    def slab(self, axis: int, side: int, ghost: bool) -> tuple[slice, slice, slice]:
        """The layer of cells at a face, or just outside it, in indices [z][y][x].

        The layer has its full extent across the axes: cells received along earlier axes are passed
        on with it, so edges and corners travel too.
        """
        near = {(0, True): slice(0, 1), (0, False): slice(1, 2)}
        far = {(1, True): slice(-1, None), (1, False): slice(-2, -1)}
        place = (near | far)[side, ghost]
        found = [slice(None)] * 3
        found[2 - axis] = place
        return found[0], found[1], found[2]

    def reflect(self, fields: Sequence[int], axis: int, side: int) -> None:
        """Fill the ghosts beyond a wall."""
        inside, outside = self.slab(axis, side, False), self.slab(axis, side, True)
        for field in fields:
            np.multiply(
                self.fields[field][inside], reflection(field, axis), out=self.fields[field][outside]
            )

    def pack(self, fields: Sequence[int], axis: int, side: int, buffer: Fields) -> None:
        """Copy the layer at a face into a buffer."""
        layer = self.slab(axis, side, False)
        for place, field in enumerate(fields):
            buffer[place] = self.fields[field][layer]

    def unpack(self, fields: Sequence[int], axis: int, side: int, buffer: Fields) -> None:
        """Copy a buffer into the ghosts beyond a face."""
        layer = self.slab(axis, side, True)
        for place, field in enumerate(fields):
            self.fields[field][layer] = buffer[place]

    def push(self, fields: Sequence[int], axis: int, side: int, other: Block) -> None:
        """Copy the layer at a face directly into the ghosts of the block behind it."""
        mine, theirs = self.slab(axis, side, False), other.slab(axis, 1 - side, True)
        for field in fields:
            other.fields[field][theirs] = self.fields[field][mine]

    def buffer(self, fields: int, axis: int) -> Fields:
        """A buffer for one layer of this number of fields."""
        return np.empty((fields, *self.fields[0][self.slab(axis, 0, False)].shape))


def serial(size: Shape, steps: int) -> Block:
    """The whole grid in one block after this number of steps; all variants must give its bits."""
    block = Block(size, (0, 0, 0), size)
    fill_walls(block, STATE)
    for _ in range(steps):
        for kernels, fields in PHASES:
            block.run(kernels)
            fill_walls(block, fields)
    return block


def fill_walls(block: Block, fields: Sequence[int]) -> None:
    """The halo of a block that is the whole grid."""
    for axis in range(3):
        for side in (0, 1):
            block.reflect(fields, axis, side)
