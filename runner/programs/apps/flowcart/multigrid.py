"""The steps of the multigrid on consecutive cells, each one function for kernels and regions.

They are plain functions of the dialect of compiled regions. Cells ``first`` to ``last`` (excluded)
are updated; ``table`` holds the places of the six neighbours of each cell. Each value is one fixed
expression of its neighbours, so every partition gives the same bits. All integers are unsigned, so
that an index needs no check for negative values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

ZERO, ONE, TWO = np.uint64(0), np.uint64(1), np.uint64(2)
THREE, FOUR, FIVE, SIX = np.uint64(3), np.uint64(4), np.uint64(5), np.uint64(6)
DAMPING = 0.13333333333333333
RESTRICTION = 0.375
"""1/4 would be the coarse equation's own factor. 1/2 compensates for corrections without slope, but
diverges if the body is too thin for the coarser meshes."""


def smooth(old: Any, new: Any, right: Any, table: Any, work: Any, first: int, last: int) -> None:
    """Damped Jacobi update from ``old`` to ``new``; cut cells compute their geometry first.

    ``work`` are the steps of extra work of each cell.
    """
    for i in range(np.uint64(first), np.uint64(last)):
        # Newton's iteration for the root of 1 from a distant start: it converges to 1 and stays
        # there. If the compiler knew the start, it could drop the loop.
        steps = np.uint64(work[i])
        area = float(steps) if steps > ZERO else 1.0
        k = ZERO
        while k < steps:
            area = 0.5 * (area + np.divide(1.0, area))
            k += ONE
        at = i * SIX
        near = (
            (old[table[at]] + old[table[at + ONE]])
            + (old[table[at + TWO]] + old[table[at + THREE]])
            + (old[table[at + FOUR]] + old[table[at + FIVE]])
        )
        new[i] = old[i] + DAMPING * (area * right[i] - (6.0 * old[i] - near))


def restrict(
    values: Any,
    right: Any,
    table: Any,
    parents: Any,
    above: Any,
    above_right: Any,
    first: int,
    last: int,
    bounds: Any,
) -> None:
    """Sum the residuals into the right side of the parents, whose values begin at zero.

    ``bounds``: first and last parent, then first and last ghost of the parents' level.
    """
    for i in range(np.uint64(bounds[0]), np.uint64(bounds[1])):
        above_right[i] = 0.0
        above[i] = 0.0
    for i in range(np.uint64(bounds[2]), np.uint64(bounds[3])):
        above[i] = 0.0
    for i in range(np.uint64(first), np.uint64(last)):
        at = i * SIX
        near = (
            (values[table[at]] + values[table[at + ONE]])
            + (values[table[at + TWO]] + values[table[at + THREE]])
            + (values[table[at + FOUR]] + values[table[at + FIVE]])
        )
        above_right[parents[i]] += RESTRICTION * (right[i] - (6.0 * values[i] - near))


def prolong(above: Any, values: Any, parents: Any, first: int, last: int) -> None:
    """Add the parents' values to their children."""
    for i in range(np.uint64(first), np.uint64(last)):
        values[i] += above[parents[i]]


def gather(values: Any, places: Any, buffer: Any) -> None:
    """Copy the values at these places into a buffer."""
    for i in range(np.uint64(len(places))):
        buffer[i] = values[places[i]]
