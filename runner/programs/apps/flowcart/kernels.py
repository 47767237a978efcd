"""The numerical kernels of the multigrid (see runner.runtimes.core.kernels).

They are the functions of :mod:`runner.programs.apps.flowcart.multigrid` on arrays whose lengths
stand in ``geometry``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from runner.programs.apps.flowcart import multigrid
from runner.runtimes.core.atomic import inner

KERNELS = {
    "smooth": ("float64", "float64", "float64", "uint32", "uint32", "uint64"),
    "restrict": ("float64", "float64", "uint32", "uint32", "float64", "float64", "uint64"),
    "prolong": ("float64", "float64", "uint32", "uint64"),
    "gather": ("float64", "uint32", "float64", "uint64"),
}
SIX = np.uint64(6)

_smooth = inner(multigrid.smooth)
_restrict = inner(multigrid.restrict)
_prolong = inner(multigrid.prolong)
_gather = inner(multigrid.gather)


def smooth(old: Any, new: Any, right: Any, table: Any, work: Any, geometry: Any) -> None:
    """``geometry`` = first and last cell, length of the values, cells of the level."""
    g = carray(geometry, (4,))
    length, count = g[2], g[3]
    _smooth(
        carray(old, length),
        carray(new, length),
        carray(right, count),
        carray(table, count * SIX),
        carray(work, count),
        g[0],
        g[1],
    )


def restrict(
    values: Any, right: Any, table: Any, parents: Any, above: Any, above_right: Any, geometry: Any
) -> None:
    """``geometry``: as for :func:`smooth`, the same two of the parents' level, then the bounds."""
    g = carray(geometry, (10,))
    length, count = g[2], g[3]
    _restrict(
        carray(values, length),
        carray(right, count),
        carray(table, count * SIX),
        carray(parents, count),
        carray(above, g[4]),
        carray(above_right, g[5]),
        g[0],
        g[1],
        g[6:],
    )


def prolong(above: Any, values: Any, parents: Any, geometry: Any) -> None:
    """``geometry``: as for :func:`smooth`, then the length of the parents' values."""
    g = carray(geometry, (5,))
    _prolong(carray(above, g[4]), carray(values, g[2]), carray(parents, g[3]), g[0], g[1])


def gather(values: Any, places: Any, buffer: Any, geometry: Any) -> None:
    """``geometry`` = number of places, length of the values."""
    g = carray(geometry, (2,))
    _gather(carray(values, g[1]), carray(places, g[0]), carray(buffer, g[0]))
