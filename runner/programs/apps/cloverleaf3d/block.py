"""One rank's cells: 14 fields and the advanced state with ghosts, and the operations on them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from runner.programs.apps.cloverleaf3d import halo
from runner.programs.apps.cloverleaf3d.problem import (
    ADVANCED_FIELDS,
    COUNT,
    DEPTH,
    DT_DX,
    EXCHANGES,
    GAMMA,
    NUMBER,
    STATE,
    STEP,
    reflection,
    start_values,
)
from runner.programs.apps.common.grid import Shape
from runner.runtimes.core.kernels import load, scalars

Fields = NDArray[np.float64]
Call = Callable[[], None]


class Block:
    """Cells ``start`` to ``stop`` (x, y, z; stop excluded) of a grid of ``size`` cells.

    A phase is the number of a kernel in :data:`STEP`, and of the exchange after it. A face is
    ``2 * axis + side``.
    """

    def __init__(self, size: Shape, start: Shape, stop: Shape) -> None:
        self.size, self.start, self.stop = size, start, stop
        self.cells = tuple(b - a for a, b in zip(start, stop, strict=True))
        shape = tuple(n + 2 * DEPTH for n in reversed(self.cells))
        every = COUNT + len(ADVANCED_FIELDS)
        self.fields: Fields = np.zeros((every, *shape))
        _, rows, row = shape
        self.geometry = scalars([row, row * rows, int(np.prod(shape)), *self.cells])
        self.factors = np.array([GAMMA, DT_DX])
        self.field_table = halo.table()
        self.own, self.ghosts = (halo.boxes(self.cells, ghost) for ghost in (False, True))
        self.signs = np.array([[reflection(f, axis) for axis in range(3)] for f in range(every)])
        self._kernels = load("runner.programs.apps.cloverleaf3d.kernels")
        self._calls = [
            self._kernels.bind("run", self.fields, self.geometry, self.factors, which(phase))
            for phase in range(len(STEP))
        ]
        self.reset()

    def reset(self) -> None:
        """Set the start values, also in the ghosts."""
        self.fields[:COUNT] = start_values(self.size, self.start, self.stop)
        self.fields[COUNT:] = 0.0

    def run(self, phase: int) -> None:
        """Run the kernel of a phase."""
        self._calls[phase]()

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

    def buffer(self, phase: int, face: int) -> Fields:
        """A buffer for the cells at a face."""
        return np.zeros(len(EXCHANGES[phase]) * halo.volume(self.own[face]))

    def packer(self, phase: int, face: int, buffer: Fields) -> Call:
        """A call that copies the layer at a face into a buffer."""
        selector = which(phase, face, len(buffer))
        return self._bind("pack", self.own, selector, buffer)

    def unpacker(self, phase: int, face: int, buffer: Fields) -> Call:
        """A call that copies a buffer into the ghosts behind a face."""
        selector = which(phase, face, len(buffer))
        return self._bind("unpack", self.ghosts, selector, buffer)

    def copier(self, phase: int, face: int, other: Block) -> Call:
        """A call that copies the layer at a face into the ghosts of the block behind it."""
        target_arrays = other.fields, other.geometry, other.ghosts
        return self._bind("copy", self.own, which(phase, face), *target_arrays)

    def reflector(self, phase: int, face: int) -> Call:
        """A call that fills the ghosts behind a wall."""
        return self._bind("reflect", self.own, self.ghosts, which(phase, face), self.signs)

    def _bind(self, kernel: str, *arrays: NDArray[np.generic]) -> Call:
        return self._kernels.bind(kernel, self.fields, self.geometry, self.field_table, *arrays)


def which(phase: int, face: int = 0, length: int = 0) -> NDArray[np.uint64]:
    """The argument of this name of the kernels."""
    return scalars([phase, face, length])


def serial(size: Shape, steps: int) -> Block:
    """The whole grid in one block after this number of steps; all variants must give its bits."""
    block = Block(size, (0, 0, 0), size)
    walls = [
        [block.reflector(phase, face) for face in range(halo.FACES)]
        for phase in range(len(EXCHANGES))
    ]
    for _ in range(steps):
        for phase, calls in enumerate(walls):
            block.run(phase)
            for call in calls:
                call()
        block.run(len(EXCHANGES))
    return block
