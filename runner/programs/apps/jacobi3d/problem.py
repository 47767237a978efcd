"""The problem of Jacobi3D: weights of the stencil, start values, largest number of iterations."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from runner.programs.apps.common.decay import check_updates, most_updates
from runner.programs.apps.common.grid import Shape

DEPTH = 2
"""Ghost cells on every side: the reach of the 13-point star."""
FACE_BYTES = 8 * DEPTH
"""Bytes of a message for each cell of a face."""

FLOPS_PER_CELL = 15
"""3 multiplications and 12 additions (Martin 2018, figure B.1)."""

DAMPING = 0.8
"""Weight of the new value.

The fourth-order Jacobi update amplifies the shortest waves by 1 - w * 32 / 15 in each iteration.
Undamped (w = 1) that is -1.133, which is unstable; it is stable for w < 0.9375. With 0.8 the factor
is -0.707, and every component of the error decays.
"""

WEIGHTS = (1 - DAMPING, DAMPING * 16 / 90, -DAMPING / 90)
"""Weights of the centre, the 6 neighbours at distance 1 and the 6 at distance 2; their sum is 1."""


def initial_field(size: Shape, start: Shape, stop: Shape) -> NDArray[np.float64]:
    """Start values of a block with its ghost cells, array [z][y][x].

    The value depends only on the global cell and consists of sums and products of exact numbers, so
    every decomposition has the same bits. It has no symmetry that could hide a swapped face. It is
    positive inside the box and zero outside (Dirichlet).
    """
    axes = [np.arange(a - DEPTH, b + DEPTH) for a, b in zip(start, stop, strict=True)]
    x, y, z = axes
    along_x, along_y, along_z = (
        _profile(cells, n, lean)
        for cells, n, lean in zip(axes, size, (0.25, 0.5, 0.75), strict=True)
    )
    # (73 x + 179 y + 283 z) mod 101, split so that a plane costs one addition and one look-up.
    rough = 1.0 + (np.arange(303) % 101) / 404.0
    plane = (x * 73 % 101)[None, :] + (y * 179 % 101)[:, None]
    across = along_y[:, None] * along_x[None, :]
    field = np.empty((len(z), len(y), len(x)))
    for k, shift in enumerate((z * 283 % 101).tolist()):
        field[k] = across * along_z[k] * rough[plane + shift]
    return field


def _profile(cells: NDArray[np.int64], n: int, lean: float) -> NDArray[np.float64]:
    """An asymmetric hump on cells 0..n-1, zero elsewhere."""
    t = (cells + 1.0) / (n + 1.0)
    hump: NDArray[np.float64] = 4.0 * t * (1.0 - t) * (1.0 + lean * t)
    hump[(cells < 0) | (cells >= n)] = 0.0
    return hump


def check_size(size: Shape, iterations: int) -> None:
    """Refuse a run whose field would vanish.

    Raises :class:`runner.programs.apps.common.errors.AppUsageError`.
    """
    check_updates("--iterations", iterations, most_iterations(size), size)


def most_iterations(size: Shape) -> int:
    """Iterations after which the slowest wave has decayed to about 1e-140."""
    angles = [math.pi / (n + 1) for n in size]
    centre, near, far = WEIGHTS
    factor = centre + sum(2 * near * math.cos(a) + 2 * far * math.cos(2 * a) for a in angles)
    return most_updates(factor)
