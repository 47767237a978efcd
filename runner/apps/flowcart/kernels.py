"""The numerical kernels of the multigrid (see runner.native.kernels).

Cells are numbered from 0, and ghosts follow them. One more element at the end holds the zero of the
boundary. Each value is one fixed expression of its neighbours, so every partition gives the same
bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

KERNELS = {
    "smooth": ("float64", "float64", "float64", "uint64", "uint64", "uint64"),
    "residual": ("float64", "float64", "float64", "uint64", "uint64"),
    "restrict": ("float64", "float64", "float64", "uint64", "uint64"),
    "prolong": ("float64", "float64", "uint64", "uint64"),
    "gather": ("float64", "float64", "uint64", "uint64"),
    "scatter": ("float64", "float64", "uint64", "uint64"),
}

ONE = np.uint64(1)
SIX = np.uint64(6)


def smooth(u: Any, f: Any, new: Any, neighbours: Any, work: Any, geometry: Any) -> None:
    """Damped Jacobi update into ``new``, then back; cut cells compute their geometry first.

    ``geometry`` = cells, length of u.
    """
    g = carray(geometry, (2,))
    count, length = g[0], g[1]
    values, right = carray(u, length), carray(f, count)
    target = carray(new, count)
    table, extra = carray(neighbours, count * SIX), carray(work, count)
    for i in range(count):
        # Newton's iteration for the root of 1 from a distant start: it converges to 1 and stays
        # there. If the compiler knew the start, it could leave the loop out.
        area = float(extra[i]) if extra[i] > np.uint64(0) else 1.0
        k = np.uint64(0)
        while k < extra[i]:
            area = 0.5 * (area + np.divide(1.0, area))
            k += ONE
        at = i * SIX
        near = (
            (values[table[at]] + values[table[at + ONE]])
            + (values[table[at + np.uint64(2)]] + values[table[at + np.uint64(3)]])
            + (values[table[at + np.uint64(4)]] + values[table[at + np.uint64(5)]])
        )
        target[i] = values[i] + 0.13333333333333333 * (area * right[i] - (6.0 * values[i] - near))
    for i in range(count):
        values[i] = target[i]


def residual(u: Any, f: Any, r: Any, neighbours: Any, geometry: Any) -> None:
    """f - A u of every cell."""
    g = carray(geometry, (2,))
    count, length = g[0], g[1]
    values, right = carray(u, length), carray(f, count)
    target, table = carray(r, count), carray(neighbours, count * SIX)
    for i in range(count):
        at = i * SIX
        near = (
            (values[table[at]] + values[table[at + ONE]])
            + (values[table[at + np.uint64(2)]] + values[table[at + np.uint64(3)]])
            + (values[table[at + np.uint64(4)]] + values[table[at + np.uint64(5)]])
        )
        target[i] = right[i] - (6.0 * values[i] - near)


def restrict(r: Any, f: Any, u: Any, parents: Any, geometry: Any) -> None:
    """Sum the residuals into the right side of the parents, whose values begin at zero.

    ``geometry`` = cells, parents, length of the parents' u.
    """
    g = carray(geometry, (3,))
    count, above, length = g[0], g[1], g[2]
    source, target = carray(r, count), carray(f, above)
    values, table = carray(u, length), carray(parents, count)
    for i in range(above):
        target[i] = 0.0
    for i in range(length):
        values[i] = 0.0
    for i in range(count):
        # 1/4 would be the coarse equation's own factor. 1/2 makes up for corrections without slope,
        # but diverges if the body is too thin for the coarser meshes.
        target[table[i]] += 0.375 * source[i]


def prolong(u: Any, fine: Any, parents: Any, geometry: Any) -> None:
    """Add the parents' values to their children; ``geometry``: cells, parents, length of fine."""
    g = carray(geometry, (3,))
    count, above, length = g[0], g[1], g[2]
    source, target = carray(u, above), carray(fine, length)
    table = carray(parents, count)
    for i in range(count):
        target[i] += source[table[i]]


def gather(u: Any, buffer: Any, places: Any, geometry: Any) -> None:
    """Copy some values into a buffer; ``geometry`` = number of values, length of u."""
    g = carray(geometry, (2,))
    count, length = g[0], g[1]
    source, target, table = carray(u, length), carray(buffer, count), carray(places, count)
    for i in range(count):
        target[i] = source[table[i]]


def scatter(u: Any, buffer: Any, places: Any, geometry: Any) -> None:
    """The inverse of :func:`gather`."""
    g = carray(geometry, (2,))
    count, length = g[0], g[1]
    target, source, table = carray(u, length), carray(buffer, count), carray(places, count)
    for i in range(count):
        target[table[i]] = source[i]
