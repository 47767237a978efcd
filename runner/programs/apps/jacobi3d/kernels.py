"""The numerical kernel of Jacobi3D, shared by all variants (see runner.runtimes.core.kernels).

A field is an array of doubles [z][y][x] with two ghost cells on every side. A box is ``z0, z1, y0,
y1, x0, x1`` in indices of that array, upper bounds excluded. All integers are unsigned, so that an
index needs no check for negative values.
"""

from __future__ import annotations

from typing import Any

from numba import carray

from runner.programs.apps.jacobi3d.stencil import update
from runner.runtimes.core.atomic import inner

KERNELS = {
    "stencil": ("float64", "float64", "uint64", "float64"),
}

_update = inner(update)


def stencil(source: Any, target: Any, geometry: Any, weights: Any) -> None:
    """See :func:`runner.programs.apps.jacobi3d.stencil.update`."""
    g = carray(geometry, (10,))
    _update(carray(source, g[2]), carray(target, g[2]), g, carray(weights, (3,)))
