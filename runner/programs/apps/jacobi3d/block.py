"""One rank's block of the grid: two fields with ghost cells and the kernels bound to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from runner.programs.apps.common.box import Box, box_of
from runner.programs.apps.common.grid import Shape
from runner.programs.apps.jacobi3d.problem import DEPTH, WEIGHTS, initial_field
from runner.runtimes.core.kernels import Kernels, load, scalars
from runner.runtimes.core.openmp import ParallelRegion

Call = Callable[[], None]


def kernels() -> Kernels:
    """The compiled kernel.  Raises :class:`runner.errors.RunnerError`."""
    return load("runner.programs.apps.jacobi3d.kernels")


class Block:
    """Cells ``start`` to ``stop`` (x, y, z; stop excluded) of a grid of ``size`` cells.

    ``fields`` are two arrays [z][y][x] of doubles with :data:`DEPTH` ghost cells on every side;
    ``fields[current]`` holds the newest values.
    """

    def __init__(self, size: Shape, start: Shape, stop: Shape, cache_block: int) -> None:
        self.size, self.start, self.stop = size, start, stop
        self.cells = tuple(b - a for a, b in zip(start, stop, strict=True))
        self._cache_block = cache_block
        self._kernels = kernels()
        self.weights = np.array(WEIGHTS)
        shape = tuple(n + 2 * DEPTH for n in reversed(self.cells))
        # Written, not only reserved, so that the timed part touches no page for the first time.
        self.fields = (np.full(shape, 0.0), np.full(shape, 0.0))
        self.current = 0
        self._step: tuple[Call, Call] = self.stencil(self.whole)

    @property
    def whole(self) -> Box:
        """All cells of the block without the ghosts."""
        return self.box_of(self.start, self.stop)

    def box_of(self, start: Shape, stop: Shape) -> Box:
        """Cells of the grid (x, y, z; stop excluded) as a box of the fields."""
        return box_of(start, stop, self.start, DEPTH)

    @property
    def interior(self) -> NDArray[np.float64]:
        """The newest values without the ghosts, a view [z][y][x]."""
        z0, z1, y0, y1, x0, x1 = self.whole
        return self.fields[self.current][z0:z1, y0:y1, x0:x1]

    def reset(self) -> None:
        """Set the start values, also in the ghosts; ghosts outside the grid stay zero."""
        self.fields[0][...] = initial_field(self.size, self.start, self.stop)
        self.fields[1].fill(0.0)
        self.current = 0

    def step(self) -> None:
        """Update the whole block once; the ghosts of the newest field are then out of date."""
        self._step[self.current]()
        self.current = 1 - self.current

    def share(self, boxes: Sequence[Box]) -> None:
        """Let OpenMP threads update these boxes at the same time in each :meth:`step`.

        Raises :class:`runner.errors.RunnerError` without an OpenMP run-time.
        """
        tables = [self.geometry(box) for box in boxes]
        a, b = self.fields
        first, second = (
            ParallelRegion(self._kernels, [("stencil", (*fields, t, self.weights)) for t in tables])
            for fields in ((a, b), (b, a))
        )
        self._step = first, second

    def square_sum(self) -> float:
        """Sum of the squares of the newest values."""
        return float(sum(np.sum(np.square(plane)) for plane in self.interior))

    def stencil(self, box: Box) -> tuple[Call, Call]:
        """The update of a box: from field 0 to 1, and from field 1 to 0."""
        geometry = self.geometry(box)
        a, b = self.fields
        return (
            self._kernels.bind("stencil", a, b, geometry, self.weights),
            self._kernels.bind("stencil", b, a, geometry, self.weights),
        )

    def geometry(self, box: Box) -> NDArray[np.uint64]:
        """The box in the form for :func:`runner.programs.apps.jacobi3d.stencil.update`."""
        planes, rows, row = self.fields[0].shape
        return scalars([row, row * rows, row * rows * planes, self._cache_block, *box])


def serial_block(size: Shape, iterations: int) -> Block:
    """The whole grid in one block after ``iterations`` updates; all variants must give it."""
    block = Block(size, (0, 0, 0), size, cache_block=max(size))
    block.reset()
    for _ in range(iterations):
        block.step()
    return block
