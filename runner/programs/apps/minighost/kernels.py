"""The numerical kernel of miniGhost, shared by all variants (see runner.runtimes.core.kernels)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from runner.programs.apps.minighost import stencil
from runner.runtimes.core.atomic import inner

KERNELS = {"advance": ("float64", "float64", "uint64", "uint64", "float64")}

_sweep = inner(stencil.sweep)
_outflow = inner(stencil.outflow)


def advance(source: Any, target: Any, geometry: Any, walls: Any, losses: Any) -> None:
    """Boundary and stencil of a box; see :mod:`runner.programs.apps.minighost.stencil`."""
    g = carray(geometry, (stencil.GEOMETRY,))
    u, v = carray(source, g[5]), carray(target, g[5])
    count = carray(walls, (1,))[0]
    w = carray(walls, np.uint64(1) + np.uint64(6) * count)
    _outflow(u, g, w, carray(losses, g[4] - g[3]))
    _sweep(u, v, g)
