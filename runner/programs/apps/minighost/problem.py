"""The problem of miniGhost: weights of the stencil, start values, largest number of steps."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from runner.programs.apps.common.decay import check_updates, most_updates
from runner.programs.apps.common.grid import Shape

DEPTH = 1
"""Ghost cells on every side: the reach of the 7-point star."""

CENTRE, NEAR = 0.25, 0.125
"""Weights of a cell and of each of its 6 neighbours.

Their sum is 1, so a step moves heat without creating any. They are powers of two, so products are
exact. The shortest wave shrinks by 1 - 12 * NEAR = -0.5 in each step: the update is stable.
"""

SPIKES, SPIKE = 8, 512.0
"""Number of spikes of each variable, and the heat that each puts into a cell."""

_SEED = 20150801


def spikes(size: Shape, variables: range) -> NDArray[np.int64]:
    """The cells of the variables' spikes, array [variable][spike][x, y, z]; some may be equal.

    The numbers are SplitMix64's (Steele et al., 2014), so each is computed without the earlier
    ones.
    """
    number = np.arange(variables.start, variables.stop, dtype=np.uint64)[:, None, None]
    place = np.arange(3 * SPIKES, dtype=np.uint64).reshape(SPIKES, 3)
    x = (number * np.uint64(3 * SPIKES) + place + np.uint64(_SEED)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((x >> np.uint64(33)) % np.array(size, np.uint64)).astype(np.int64)


def initial_field(size: Shape, start: Shape, stop: Shape, variables: range) -> NDArray[np.float64]:
    """Start values of the cells ``start`` to ``stop`` (stop excluded), array [variable][z][y][x].

    A value depends only on the variable and the global cell. It is a multiple of 1/256, so sums
    are exact. The ground is between 0 and 1 and without any symmetry, so that a swapped face shows;
    spikes are added to it.
    """
    x, y, z = (np.arange(a, b, dtype=np.uint32) for a, b in zip(start, stop, strict=True))
    number = np.arange(variables.start, variables.stop, dtype=np.uint32)
    across = (x * np.uint32(2654435761))[None, :] + (y * np.uint32(2246822519))[:, None]
    planes = (z * np.uint32(3266489917))[None, :] + (number * np.uint32(668265263))[:, None]
    bits = across + planes[:, :, None, None]
    bits = (bits ^ (bits >> np.uint32(15))) * np.uint32(2246822519)
    field: NDArray[np.float64] = ((bits >> np.uint32(24)) + 1) / 256.0
    cells = spikes(size, variables) - np.array(start)
    inside = ((cells >= 0) & (cells < np.subtract(stop, start))).all(axis=-1)
    i, j, k = cells[inside].T
    np.add.at(field, (np.nonzero(inside)[0], k, j, i), SPIKE)
    return field


def check_size(size: Shape, steps: int) -> None:
    """Refuse a run whose field would vanish.

    Raises :class:`runner.programs.apps.common.errors.AppUsageError`.
    """
    check_updates("--steps", steps, most_steps(size), size)


def most_steps(size: Shape) -> int:
    """Steps after which the slowest wave has decayed to about 1e-140."""
    slowest = sum(2 * NEAR * math.cos(math.pi / (n + 1)) for n in size)
    return most_updates(CENTRE + slowest)
