"""Bodies at the start: a Plummer sphere, the same on every rank."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def plummer(count: int, seed: int) -> tuple[Array, Array]:
    """Positions with masses, (count, 4), and velocities, (count, 3), with zero total momentum.

    Units: total mass, gravitational constant and scale radius are 1.
    """
    dice = np.random.default_rng(seed)
    part = dice.uniform(0.001, 0.99, count)
    radius = 1.0 / np.sqrt(part ** (-2.0 / 3.0) - 1.0)
    bodies = np.empty((count, 4))
    bodies[:, :3] = radius[:, None] * _directions(dice, count)
    bodies[:, 3] = 1.0 / count
    # The share of the escape velocity has the density q^2 (1 - q^2)^3.5, by rejection.
    share = np.zeros(count)
    left = np.arange(count)
    while left.size:
        q, height = dice.uniform(0, 1, left.size), dice.uniform(0, 0.1, left.size)
        good = height < q**2 * (1 - q**2) ** 3.5
        share[left[good]] = q[good]
        left = left[~good]
    speed = share * np.sqrt(2.0) * (1.0 + radius**2) ** -0.25
    velocities = speed[:, None] * _directions(dice, count)
    velocities -= velocities.mean(axis=0)
    bodies[:, :3] -= bodies[:, :3].mean(axis=0)
    return bodies, velocities


def _directions(dice: np.random.Generator, count: int) -> Array:
    """Unit vectors."""
    vectors = dice.normal(size=(count, 3))
    directions: Array = vectors / np.linalg.norm(vectors, axis=1)[:, None]
    return directions
