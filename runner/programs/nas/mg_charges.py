"""The right-hand side of MG: charges +1 and -1 at the extremes of random numbers.

There are as many random numbers as points. The charge is +1 at the points of the ten largest, -1 at
those of the ten smallest, and zero elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.programs.nas.common.random import MODULUS, MULTIPLIER, SEED, jump, power
from runner.programs.nas.mg_grid import Triple
from runner.runtimes.core.kernels import load, scalars

COUNT = 10


class Charges:
    """The charges of one rank's block of a grid of ``points`` points per axis.

    ``grid`` has ghosts, which do not change; its first own point is ``first``.
    """

    def __init__(self, comm: Any, grid: NDArray[np.float64], first: Triple, points: int) -> None:
        self._comm, self._grid = comm, grid
        self._inside = grid[1:-1, 1:-1, 1:-1]
        depth, height, width = self._inside.shape
        x, y, z = first
        seed = jump(SEED, x + points * (y + points * z))
        rows, planes = power(points), power(points * points)
        state = scalars([seed, MULTIPLIER, rows, planes, width, height, depth])
        # The ten largest numbers, then the ten smallest, each from the most extreme on.
        self._values = scalars([0] * 2 * COUNT)
        self._places = scalars([0] * 2 * COUNT)
        kernels = load("runner.programs.nas.mg_charges_kernels")
        self._find = kernels.bind("find_extremes", self._values, self._places, state)

    def find(self) -> NDArray[np.uint64]:
        """The extremes of this block: ten largest numbers, then ten smallest."""
        self._values[:COUNT], self._values[COUNT:] = 0, MODULUS - 1
        self._find()
        return self._values

    def place(self) -> None:
        """Set the grid to zero except for the charges. Collective."""
        everyone = np.zeros((self._comm.size, 2, COUNT), np.uint64)
        self._comm.Allgather(self.find(), everyone)
        self.place_among(everyone)

    def place_among(self, everyone: NDArray[np.uint64]) -> None:
        """Place the charges of this block; ``everyone`` = the extremes of all ranks."""
        least = np.sort(everyone[:, 0].reshape(-1))[-COUNT]
        most = np.sort(everyone[:, 1].reshape(-1))[COUNT - 1]
        self._grid.fill(0.0)
        for n, (value, place) in enumerate(zip(self._values, self._places, strict=True)):
            if value >= least if n < COUNT else value <= most:
                point = np.unravel_index(int(place), self._inside.shape)
                self._inside[point] = 1.0 if n < COUNT else -1.0
