"""The problem of miniGhost: weights of the stencil, start values, largest number of steps."""

from __future__ import annotations

import math
import random

import numpy as np
from numpy.typing import NDArray

from runner.apps.common_decay import check_updates, most_updates
from runner.apps.common_grid import Shape

DEPTH = 1
"""Ghost cells on every side: the reach of the 7-point star."""

CENTRE, NEAR = 0.25, 0.125
"""Weights of a cell and of each of its 6 neighbours.

Their sum is 1, so a step moves heat and makes none. They are powers of two, so products are exact.
The shortest wave shrinks by 1 - 12 * NEAR = -0.5 in each step: the update is stable.
"""

SPIKES, SPIKE = 8, 512.0
"""Number of spikes of each variable, and the heat that each puts into a cell."""

_SEED = 20150801


def spikes(size: Shape, variable: int) -> list[Shape]:
    """The cells (x, y, z) of a variable's spikes; a cell may have several."""
    draw = random.Random(_SEED + variable)
    return [tuple(draw.randrange(n) for n in size) for _ in range(SPIKES)]


def initial_field(size: Shape, start: Shape, stop: Shape, variable: int) -> NDArray[np.float64]:
    """Start values of the cells ``start`` to ``stop`` (stop excluded), array [z][y][x].

    A value depends only on the variable and the global cell. It is a multiple of 1/256, so sums
    are exact. The ground is between 0 and 1 and without any symmetry, so that a swapped face shows;
    spikes are added to it.
    """
    x, y, z = (np.arange(a, b, dtype=np.uint32) for a, b in zip(start, stop, strict=True))
    across = (x * np.uint32(2654435761))[None, :] + (y * np.uint32(2246822519))[:, None]
    field = np.empty((len(z), len(y), len(x)))
    for k, plane in enumerate(z.tolist()):
        mixed = across + np.uint32((plane * 3266489917 + variable * 668265263) % 2**32)
        mixed = (mixed ^ (mixed >> np.uint32(15))) * np.uint32(2246822519)
        field[k] = ((mixed >> np.uint32(24)) + 1) / 256.0
    for cell in spikes(size, variable):
        if all(a <= n < b for a, n, b in zip(start, cell, stop, strict=True)):
            i, j, k = (n - a for n, a in zip(cell, start, strict=True))
            field[k, j, i] += SPIKE
    return field


def check_size(size: Shape, steps: int) -> None:
    """Refuse a run whose field would vanish.

    Raises :class:`runner.apps.common_errors.AppUsageError`.
    """
    check_updates("--steps", steps, most_steps(size), size)


def most_steps(size: Shape) -> int:
    """Steps after which the slowest wave has decayed to about 1e-140."""
    slowest = sum(2 * NEAR * math.cos(math.pi / (n + 1)) for n in size)
    return most_updates(CENTRE + slowest)
